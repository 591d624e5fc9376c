// What aten_bridge.mindspore and aten_bridge.jax, the Python modules, ask a kernel through ctypes.
// They have what MindSpore's hooks lack, all inputs with shapes and dtypes at once, and they can
// report errors in Python.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_INTROSPECTION_INTROSPECTION_H_
#define ATEN_BRIDGE_HOSTS_INTROSPECTION_INTROSPECTION_H_

#include <aten_bridge/interface/kernel_base.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Of the structures below and of what Describe says: the module refuses another one.
constexpr int kPythonInterface = 2;

/// One input: a tensor, None, or a number. The module declares the same structures.
struct PythonInput {
  const char* text;  // as in `kInputsAttribute`
  int ndim;
  const int64_t* sizes;  // of a tensor
};

struct PythonAttribute {
  const char* name;
  int type;          // an AttributeType
  int64_t size;      // of a list
  const void* data;  // int64_t (also of bools), double, char, or attributes of a list's own
};

/// Instead of a number of inputs: the question is about the attributes alone.
constexpr int kAttributesAlone = -1;

/// Appends `text` to JSON as a string.
[[gnu::cold]] inline void append_json(std::string& json, const char* text) {
  json += '"';
  for (; *text != '\0'; ++text) {
    if (static_cast<unsigned char>(*text) < ' ') {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned int>(*text));
      json += escaped;
    } else {
      json.append(*text == '"' || *text == '\\' ? "\\" : "").append(1, *text);
    }
  }
  json += '"';
}

/// A text for Python, valid until the thread's next.
[[gnu::cold]] inline const char* keep_answer(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer)
}

/// What a kernel is, in JSON: {"interface": 2, "version": "0.1.0", "inputs": [["tensor", "x"],
/// ...], "outputs": 1, "meta": true, "attributes": [["negative_slope", "a float", false], ...]}, of
/// a gradient kernel "gradient": true, of one whose calls must all be made "side_effect": true, of
/// one for CUDA "device": "cuda"; an input has its name from its check or "", an attribute whether
/// the operator must set it. Valid until the thread's next call.
ATEN_BRIDGE_INLINE const char* describe(const KernelBase& kernel, at::DeviceType device);

/// The outputs in JSON, [["float32", [2, -1]], ...], or, where `*status` is not kOk, the text of an
/// error; of kAttributesAlone inputs what is wrong with attributes, [["slope", "expected ..."],
/// ...]. Valid until the thread's next call.
ATEN_BRIDGE_INLINE const char* infer_for_python(const KernelBase& kernel,
                                                const HostMessages& messages,
                                                const PythonInput* inputs, int input_count,
                                                const PythonAttribute* attributes,
                                                int attribute_count, int* status) noexcept;

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// What a kernel is, for the module and for tests.
#define ATEN_BRIDGE_ENTRY_DESCRIBE(Name)                                       \
  extern "C" ATEN_BRIDGE_PUBLIC const char* Name##Describe() {                 \
    return ::aten_bridge::detail::describe(aten_bridge_kernel_##Name,          \
                                           aten_bridge_kernel_##Name.kDevice); \
  }

/// The functions that the module calls.
#define ATEN_BRIDGE_ENTRY_PYTHON(Name)                                                           \
  ATEN_BRIDGE_ENTRY_DESCRIBE(Name)                                                               \
  extern "C" ATEN_BRIDGE_PUBLIC const char* Name##Infer(                                         \
      const ::aten_bridge::detail::PythonInput* inputs, int input_count,                         \
      const ::aten_bridge::detail::PythonAttribute* attributes, int attribute_count,             \
      int* status) {                                                                             \
    return ::aten_bridge::detail::infer_for_python(                                              \
        aten_bridge_kernel_##Name, ATEN_BRIDGE_HOST::kMessages, inputs, input_count, attributes, \
        attribute_count, status);                                                                \
  }

#endif  // ATEN_BRIDGE_HOSTS_INTROSPECTION_INTROSPECTION_H_
