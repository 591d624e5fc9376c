// What PyTorch says in English alone, and the bridge has to understand: all phrases, in one place.
// pytorch_texts_test, which the matrix runs with each PyTorch, fails where one says it otherwise;
// tests/pytorch/test_pytorch_texts.py does for what PyTorch's Python part says.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TENSORS_PYTORCH_TEXTS_H_
#define ATEN_BRIDGE_TENSORS_PYTORCH_TEXTS_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

[[gnu::cold]] inline bool says(std::string_view text, std::initializer_list<const char*> phrases) {
  return std::any_of(phrases.begin(), phrases.end(), [&](const char* phrase) {
    return text.find(phrase) != std::string_view::npos;
  });
}

/// The text without the traceback of Python that pybind11 adds.
[[gnu::cold]] inline std::string without_traceback(const std::string& text) {
  return text.substr(0, text.find("\n\nAt:\n"));
}

/// Whether an error is about the data of a meta tensor: each way to it has words of its own, the
/// last of them PyTorch's Python part.
[[gnu::cold]] inline bool is_about_data(std::string_view text) {
  return says(text, {"meta tensor", "(e.g. FakeTensor" /* PyTorch 2.4 */,
                     "aten::_local_scalar_dense", "data-independent implementation"});
}

/// Whether an error says that an operator cannot be asked for shapes, not that these are wrong.
[[gnu::cold]] inline bool is_about_meta(std::string_view text) {
  return is_about_data(text) || says(text, {"Meta", "meta", "data pointer", "storage",
                                            "no fake impl" /* of torch.library.custom_op */});
}

/// The operator of which C++ has no function for meta tensors, such as "aten::bincount"; "" if an
/// error is about something else.
[[gnu::cold]] inline std::string operator_without_meta(const std::string& text) {
  for (const char* name : {"aten::", "convolution_overrideable"}) {
    const std::size_t begin = text.find(name);
    if (begin != std::string::npos && (says(text, {"Meta"}) || name[0] == 'c')) {
      return text.substr(begin, text.find_first_of(":' ,", begin + 6) - begin);
    }
  }
  return {};
}

/// Whether an error is about an output that an _out function would have resized, whose shape is
/// `shape`, such as "[0, 0]".
[[gnu::cold]] inline bool is_about_shape(std::string_view text, const std::string& shape) {
  return says(text, {"(0) must match", shape.c_str()});
}

/// Whether an error is about a tensor whose sizes are symbols, and of which somebody asked numbers.
/// Only a tensor of Python's can make them such (PyTorch 2.11); in 2.13 any, where there is Python.
[[gnu::cold]] inline bool asks_for_numbers(std::string_view text) {
  return says(text, {"symbolic s"}) ||  // sizes, shapes, strides
         (says(text, {"interpreter"}) && says(text, {"INTERNAL ASSERT"}));
}

/// Whether ATen has no kernel for a dtype: in PyTorch 2.6 its AT_DISPATCH macros have no exception
/// of their own, and 2.15 has theirs for the negation of bools too.
[[gnu::cold]] inline bool lacks_kernel(std::string_view text) {
  return says(text, {"\" not implemented for '"});
}

/// The argument of an operator that PyTorch refuses to record for gradients, and what follows it
/// in an error's text; "" if it refuses none.
[[gnu::cold]] inline std::string_view refused_argument(std::string_view text) {
  constexpr std::string_view kRefused = "not differentiable with respect to argument '";
  const std::size_t begin = text.find(kRefused);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin + kRefused.size());
}

/// Whether an error is of CUDA, and whether it is that a stream is captured.
[[gnu::cold]] inline bool is_of_cuda(std::string_view text) { return text.rfind("CUDA", 0) == 0; }
[[gnu::cold]] inline bool is_about_capture(std::string_view text) {
  return says(text, {"stream is capturing", "during capture", "graph capture"});
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_TENSORS_PYTORCH_TEXTS_H_
