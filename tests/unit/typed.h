// What the tests of tests/kernels/typed_kernels.cpp share: calls through the simulated host, and
// calls by hand, with an `extra` and memory of the test's own.
#ifndef ATEN_BRIDGE_TESTS_UNIT_TYPED_H_
#define ATEN_BRIDGE_TESTS_UNIT_TYPED_H_

#include <aten_bridge/testing.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

using aten_bridge::testing::Call;
using aten_bridge::testing::Result;

/// A call of a kernel of tests/kernels/typed_kernels.cpp.
inline Call typed(const std::string& name) {
  static const aten_bridge::testing::Library library(TEST_TYPED);
  return library.call(name);
}

/// Adds a float32 input of ones.
inline Call& input_of_ones(Call& call, const std::vector<int64_t>& sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    elements *= size;
  }
  return call.input<float>(sizes, std::vector<float>(static_cast<std::size_t>(elements), 1));
}

/// A C function of the same library.
template <class Function>
Function typed_function(const std::string& name) {
  static void* const library = dlopen(TEST_TYPED, RTLD_LAZY | RTLD_LOCAL);
  return reinterpret_cast<Function>(aten_bridge::testing::detail::required_symbol(library, name));
}

/// The text that a kernel printed into its first output, or the error in its place.
inline std::string printed(const Result& result) {
  return result.ok() ? reinterpret_cast<const char*>(result.bytes(0).data()) : result.error();
}

/// `extra` with the attributes given, and how often which was asked for.
class CountingExtra final : public aten_bridge::testing::detail::AotExtra {
 public:
  using Attributes = aten_bridge::testing::detail::Attributes;
  explicit CountingExtra(Attributes attributes = {}) : extra_(std::move(attributes)) {}
  CountingExtra(const CountingExtra&) = delete;
  CountingExtra& operator=(const CountingExtra&) = delete;
  ~CountingExtra() override { extra_.kernel_data = kernel_data; }  // which deletes it

  bool has(std::string name) override { return extra_.has(name); }
  bool get_bool(std::string name) override { return extra_.get_bool(counted(name)); }
  int64_t get_int(std::string name) override { return extra_.get_int(counted(name)); }
  float get_float(std::string name) override { return extra_.get_float(counted(name)); }
  std::string get_string(std::string name) override { return extra_.get_string(counted(name)); }
  std::vector<int64_t> get_ints(std::string name) override {
    return extra_.get_ints(counted(name));
  }
  std::vector<float> get_floats(std::string name) override {
    return extra_.get_floats(counted(name));
  }
  std::vector<std::vector<int64_t>> get_int_lists(std::string name) override {
    return extra_.get_int_lists(counted(name));
  }
  std::vector<std::vector<float>> get_float_lists(std::string name) override {
    return extra_.get_float_lists(counted(name));
  }

  std::map<std::string, int> reads;  // by name

 private:
  const std::string& counted(const std::string& name) {
    ++reads[name];
    return name;
  }

  aten_bridge::testing::detail::Extra extra_;
};

/// Operands for a C function, float32 or as said, and what calls it.
class HandCall {
 public:
  HandCall& operand(void* data, std::vector<int64_t> sizes, const char* dtype) {
    params_.push_back(data);
    sizes_.push_back(std::move(sizes));
    dtypes_.push_back(dtype);
    return *this;
  }
  HandCall& workspace(void* data) {
    params_.push_back(data);
    return *this;
  }

  int init(const std::string& name, void* extra) {
    describe();
    return typed_function<aten_bridge::testing::InitFunction>(name + "Init")(
        ndims_.data(), shapes_.data(), dtypes_.data(), extra);
  }

  /// The text of the exception that it throws, or "".
  std::string run(const std::string& name, void* extra) {
    describe();
    try {
      typed_function<aten_bridge::testing::HostFunction>(name)(
          static_cast<int>(params_.size()), params_.data(), ndims_.data(), shapes_.data(),
          dtypes_.data(), /*stream=*/nullptr, extra);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

 private:
  void describe() {
    ndims_.clear();
    shapes_.clear();
    for (std::vector<int64_t>& sizes : sizes_) {
      ndims_.push_back(static_cast<int>(sizes.size()));
      shapes_.push_back(sizes.data());
    }
  }

  std::vector<void*> params_;
  std::vector<std::vector<int64_t>> sizes_;
  std::vector<const char*> dtypes_;
  std::vector<int> ndims_;
  std::vector<int64_t*> shapes_;
};

#endif  // ATEN_BRIDGE_TESTS_UNIT_TYPED_H_
