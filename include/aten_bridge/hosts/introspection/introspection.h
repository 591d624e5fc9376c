// The table of a library: what the Python modules, and other libraries of the process, ask it. It
// is behind one C function, aten_bridge_library(), so that a kernel costs no C function but those
// that hosts look up. The Python modules have what MindSpore's hooks lack, all inputs with shapes
// and dtypes at once, and they can report errors in Python.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_INTROSPECTION_INTROSPECTION_H_
#define ATEN_BRIDGE_HOSTS_INTROSPECTION_INTROSPECTION_H_

#include <aten_bridge/interface/kernel_base.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The version of the structures below and of the JSON: the module refuses another one.
constexpr int kPythonInterface = 8;

// MindSpore 2.10 passes to the infer hooks the shapes, and to another the dtypes, of those inputs
// that are tensors; not how many they are, nor where None and Python's numbers stand between them.
// aten_bridge.mindspore, the Python module, adds that as an attribute: "float32;none;#int64=3", one
// entry for each input, numbers with a # and their value where it is known, of a float32 its bits.
// Without it a kernel has to trust that there are as many inputs as it takes.
inline constexpr const char* kInputsAttribute = "aten_bridge_inputs";

/// Splits "a;b;c".
[[gnu::cold]] inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// One input: a tensor, None, or a number. The module declares the same structures.
struct PythonInput {
  const char* text;  // as in `kInputsAttribute`
  int ndim;
  const int64_t* sizes;  // null where it is no tensor
};

struct PythonAttribute {
  const char* name;
  int type;          // an AttributeType
  int64_t size;      // how many elements, or characters
  const void* data;  // int64_t (also of bools), double, char, or attributes of a list's own
};

/// Instead of a number of inputs: the question is about the attributes alone.
constexpr int kAttributesAlone = -1;

/// A question about a kernel, from the module of one host. The module declares the same.
struct PythonQuestion {
  const char* results;   // HostMessages of the host
  const char* operands;  // the same
  bool is_exact;         // whether it carries floats as float64, not as float32
  const PythonInput* inputs;
  int input_count;  // or kAttributesAlone
  const PythonAttribute* attributes;
  int attribute_count;
};

/// What an input of a kernel may be given. The module declares the same.
enum class InputKind : std::uint8_t { kTensor, kTensors, kNumber, kValue };

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

/// The same of a text for people, which may be no UTF-8.
[[gnu::cold]] inline void append_text(std::string& json, const std::string& text) {
  append_json(json, for_people(as_utf8(text)).c_str());
}

/// A text for Python, valid until the thread's next.
[[gnu::cold]] inline const char* keep_answer(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept.c_str();  // NOLINT(clang-analyzer-cplusplus.InnerPointer)
}

/// What a library has to tell. Answers are valid until the thread's next question.
struct LibraryTable {
  // These three are the same in every interface.
  int interface;
  const char* version;  // the header's
  /// Gives up the operator of PyTorch's of that name on a device of that number, which another
  /// library takes over; null where PyTorch is no host.
  void (*release)(const char* qualified_name, int device);

  /// {"pytorch": "2.11", "cxx11_abi": true, "fault": "", "kernels": [{"name": "LeakyRelu", ...},
  /// ...]}: with what the library was built, why it does not fit the PyTorch of the process, and
  /// its kernels, as description() has them.
  const char* (*describe)();
  /// What infer_for_python() says of the kernel of that number.
  const char* (*infer)(int kernel, const PythonQuestion* question, int* status);
  /// {"operators": [["my_ops::leaky_relu", "LeakyRelu", "default", "out"], ...], "faults": ""}:
  /// what the kernels are in PyTorch, with their overloads, and why others did not become
  /// operators, a line each. With `replace`, kernels whose names are taken are registered now
  /// instead of others. Null where PyTorch is no host.
  const char* (*register_with_pytorch)(int replace);
  /// [["the text of an error", [["float32", "\"int32\" with shape [2]", "", 2, "input", 0, "x"],
  /// ...]], ...]: the last failures of calls and questions, the newest first, with the faults of
  /// their operands and attributes. A fault has what was expected, got and is to be done, its
  /// Status, its subject, the number of the operand or -1, and the name.
  const char* (*failures)();
};

/// A kernel of the table, which it adds itself to.
class TableEntry {
 public:
  /// `hosts` are names of the list in AtenBridgeAddKernel.cmake, `entry_points` the C functions
  /// that they look up: with a space behind each.
  ATEN_BRIDGE_INLINE TableEntry(const KernelBase& kernel, at::DeviceType device, const char* hosts,
                                const char* entry_points) noexcept;

  const KernelBase& kernel;
  const at::DeviceType device;
  const char* const hosts;
  const char* const entry_points;
  TableEntry* next = nullptr;
};

/// What a kernel is, in JSON: {"name": "LeakyRelu", "hosts": ["MINDSPORE"], "entry_points":
/// ["LeakyRelu", "LeakyReluInit", ...], "device": "cpu", "inputs": [["x", 0, false], ...],
/// "outputs": 1, "meta": true, "gradient": false, "side_effect": false, "attributes":
/// [["negative_slope", 2, "a float", false], ...]}. An input has its name from its check or "", its
/// InputKind and whether it may be None, an attribute the number of its type, what errors call
/// that, and whether the operator must set it. Three members are there only where they are true:
/// "changes_state" follows "side_effect" if that is a state which calls change; "data_dependent",
/// of a kernel whose results have sizes that depend on values, and "strided", of one that takes
/// inputs with strides, follow "meta".
ATEN_BRIDGE_INLINE std::string description(const KernelBase& kernel, at::DeviceType device,
                                           const char* hosts, const char* entry_points);

/// The outputs in JSON, [["float32", [2, -1]], ...], or, where `*status` is not kOk, the text of an
/// error; of kAttributesAlone inputs the faults of attributes, as `failures` has them. Valid until
/// the thread's next question.
ATEN_BRIDGE_INLINE const char* infer_for_python(const KernelBase& kernel,
                                                const PythonQuestion& question,
                                                int* status) noexcept;

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// An entry of the library's table.
#define ATEN_BRIDGE_ENTRY_TABLE(Name, hosts, entry_points)                 \
  static const ::aten_bridge::detail::TableEntry aten_bridge_entry_##Name( \
      aten_bridge_kernel_##Name, aten_bridge_kernel_##Name.kDevice, hosts, entry_points);

#endif  // ATEN_BRIDGE_HOSTS_INTROSPECTION_INTROSPECTION_H_
