// The kernel libraries that the tests open, as a host does.
#ifndef ATEN_BRIDGE_TESTS_UNIT_LIBRARIES_H_
#define ATEN_BRIDGE_TESTS_UNIT_LIBRARIES_H_

#include <aten_bridge/testing.h>

#include <string>

/// A call of a kernel of tests/kernels/kernels.cpp.
inline aten_bridge::testing::Call kernel(const std::string& name) {
  static const aten_bridge::testing::Library library(TEST_KERNELS);
  return library.call(name);
}

/// The same, built with ATEN_BRIDGE_ERRORS_RETURN.
inline aten_bridge::testing::Call returning_kernel(const std::string& name) {
  static const aten_bridge::testing::Library library(TEST_KERNELS_RETURN);
  return library.call(name);
}

/// A call of a kernel of tests/kernels/more_kernels.cpp, built for PyTorch 1.99.
inline aten_bridge::testing::Call other_pytorch_kernel(const std::string& name) {
  static const aten_bridge::testing::Library library(TEST_OTHER_PYTORCH);
  return library.call(name);
}

/// A call of a kernel of tests/kernels/gradient_kernels.cpp.
inline aten_bridge::testing::Call graded(const std::string& name) {
  static const aten_bridge::testing::Library library(TEST_GRADIENTS);
  return library.call(name);
}

/// A call of a function of tests/kernels/tutorial.cpp and tutorial_more.cpp.
inline aten_bridge::testing::Call tutorial(const std::string& name) {
  static const aten_bridge::testing::Library library(TEST_TUTORIAL);
  return library.call(name);
}

#endif  // ATEN_BRIDGE_TESTS_UNIT_LIBRARIES_H_
