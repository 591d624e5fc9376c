// What the Python module is told: a kernel's description, and what its outputs would be.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_INTROSPECTION_ANSWERS_H_
#define ATEN_BRIDGE_HOSTS_INTROSPECTION_ANSWERS_H_

#include <aten_bridge/call/bind.h>
#include <aten_bridge/call/failure.h>
#include <aten_bridge/call/infer.h>
#include <aten_bridge/hosts/introspection/introspection.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

// An attribute of aten_bridge.mindspore's: True where it has counted the inputs.
inline constexpr const char* kCountedAttribute = "aten_bridge_counted";

/// Reads one entry of `kInputsAttribute`. Says whether the hooks are told about the input.
[[gnu::cold]] inline AbstractValue described_input(const std::string& entry, bool& is_tensor) {
  AbstractValue input;
  const bool is_number = entry.rfind('#', 0) == 0;
  const std::size_t begin = is_number ? 1 : 0;
  const std::size_t end = std::min(entry.find('='), entry.size());
  aten_bridge::find_dtype(entry.substr(begin, end - begin), input.dtype);
  input.typed = true;
  is_tensor = !is_number && !input.is_none();
  if (!is_tensor) {
    input.sizes.clear();
  }
  input.has_value = end < entry.size();
  if (input.has_value) {  // an int64; a bool's byte, and a float32, are its first bytes
    const int64_t integer = std::strtoll(entry.c_str() + end + 1, nullptr, 10);
    std::memcpy(input.value.data(), &integer, sizeof(integer));
  }
  return input;
}

/// Attributes as Python has them. It says itself what to do about a missing one.
class PythonAttributes final : public Attributes {
 public:
  explicit PythonAttributes(const PythonQuestion& question)
      : begin_(question.attributes),
        end_(begin_ + question.attribute_count),
        is_exact_(question.is_exact) {}

  bool has(const char* name) const override { return find(name) != end_; }
  std::string advice(const char* /*name*/) const override { return {}; }

 private:
  [[gnu::cold]] bool get_as(AttributeType type, const char* name, void* value) const override {
    const PythonAttribute* found = find(name);
    if (found == end_ || found->type != static_cast<int>(type)) {
      return false;
    }
    return visit_attribute_type(type, value, [&](auto* to) {
      read(*found, *to);
      return true;
    });
  }

  static void read(const PythonAttribute& a, bool& to) {
    to = *static_cast<const int64_t*>(a.data) != 0;
  }
  static void read(const PythonAttribute& a, int64_t& to) {
    to = *static_cast<const int64_t*>(a.data);
  }
  void read(const PythonAttribute& a, double& to) const {
    const double given = *static_cast<const double*>(a.data);
    to = is_exact_ ? given : widen(static_cast<float>(given));
  }
  static void read(const PythonAttribute& a, std::string& to) {
    to.assign(static_cast<const char*>(a.data), static_cast<std::size_t>(a.size));
  }
  /// The elements of a list: numbers as they lie, others as attributes of their own.
  template <class T>
  [[gnu::cold]] void read(const PythonAttribute& a, std::vector<T>& to) const {
    using Element =
        std::conditional_t<std::is_same_v<T, double>, double,
                           std::conditional_t<std::is_arithmetic_v<T>, int64_t, PythonAttribute>>;
    const auto* data = static_cast<const Element*>(a.data);
    to = std::vector<T>(static_cast<std::size_t>(a.size));
    for (std::size_t i = 0; i < to.size(); ++i) {
      T element{};
      if constexpr (std::is_arithmetic_v<T>) {
        read(PythonAttribute{nullptr, 0, 1, data + i}, element);
      } else {
        read(data[i], element);
      }
      to[i] = std::move(element);
    }
  }

  const PythonAttribute* find(const char* name) const {
    return std::find_if(begin_, end_, [&](const PythonAttribute& attribute) {
      return std::strcmp(attribute.name, name) == 0;
    });
  }

  const PythonAttribute* begin_;
  const PythonAttribute* end_;
  bool is_exact_;
};

/// Adds the attributes' names and types to a description in JSON.
class AttributesAsJson final : public AttributeVisitor {
 public:
  explicit AttributesAsJson(std::string& json) : json_(json) {}

  [[gnu::cold]] void visit(const AttributeInfo& attribute) override {
    json_.append(json_.back() == '[' ? "[" : ", [");
    append_json(json_, attribute.name);
    json_ += join({", ", static_cast<int>(attribute.type), ", "});
    append_text(json_, attribute.text);
    json_.append(attribute.is_required ? ", true]" : ", false]");
  }

 private:
  std::string& json_;
};

[[gnu::cold]] inline InputKind input_kind(const ParameterInfo& input) {
  if (input.kind == ParameterKind::kNumber) {
    return is_one_number(input.number) ? InputKind::kNumber : InputKind::kValue;
  }
  return input.kind == ParameterKind::kTensorList ? InputKind::kTensors : InputKind::kTensor;
}

/// Appends names, with a space behind each, to JSON as a list.
[[gnu::cold]] inline void append_names(std::string& json, std::string_view names) {
  json += '[';
  for (std::size_t end = 0; !names.empty(); names.remove_prefix(std::min(end + 1, names.size()))) {
    end = std::min(names.find(' '), names.size());
    json.append(json.back() == '[' ? "\"" : ", \"").append(names.substr(0, end)) += '"';
  }
  json += ']';
}

[[gnu::cold]] ATEN_BRIDGE_INLINE std::string description(const KernelBase& kernel,
                                                         at::DeviceType device, const char* hosts,
                                                         const char* entry_points) {
  const KernelDescriptor& info = kernel.info;
  std::string text = "{\"name\": ";
  append_json(text, info.operator_name);
  text += ", \"hosts\": ";
  append_names(text, hosts);
  text += ", \"entry_points\": ";
  append_names(text, entry_points);
  text += join({R"(, "device": ")", device == at::kCPU ? "cpu" : "cuda", R"(", "inputs": [)"});
  for (int i = 0; i < info.inputs; ++i) {
    const ParameterInfo& binding = info.bindings[i];
    const OperandCheck* check = find_check(info, Role::kInput, i);
    text.append(i == 0 ? "[" : ", [");
    append_json(text, check == nullptr ? "" : check->name());
    text += join({", ", static_cast<int>(input_kind(binding)), ", "});
    text.append(binding.optional ? "true]" : "false]");
  }
  text += join({"], \"outputs\": ", info.outputs});
  text.append(", \"meta\": ").append(info.has_meta ? "true" : "false");
  text.append(info.is_data_dependent ? ", \"data_dependent\": true" : "");
  text.append(info.is_strided ? ", \"strided\": true" : "");
  text.append(", \"gradient\": ").append(info.is_gradient ? "true" : "false");
  text.append(", \"side_effect\": ").append(info.has_side_effect() ? "true" : "false");
  if (info.has_side_effect()) {
    text.append(", \"changes_state\": ").append(info.changes_state ? "true" : "false");
  }
  text.append(", \"attributes\": [");
  AttributesAsJson attributes(text);
  kernel.visit_attributes(attributes);
  return text + "]}";
}

/// Faults in JSON, as `failures` of the table has them.
[[gnu::cold]] inline std::string as_json(const Faults& faults) {
  std::string json = "[";
  for (const Fault& fault : *faults) {
    json.append(json.size() == 1 ? "[" : ", [");
    for (const std::string* text : {&fault.expected, &fault.got, &fault.hint}) {
      append_text(json, *text);
      json += ", ";
    }
    json += join({static_cast<int>(fault.status), ", "});
    append_json(json, fault.subject);
    json += join({", ", fault.index, ", "});
    append_json(json, as_utf8(fault.name).c_str());
    json += ']';
  }
  return json + "]";
}

[[gnu::cold]] inline const char* list_failures() {
  std::string json = "[";
  recent_failures().for_each([&json](const Failure& failure) {
    json += json.size() == 1 ? "[" : ", [";
    append_json(json, failure.text.c_str());
    json += ", " + as_json(failure.faults) + "]";
  });
  return keep_answer(json + "]");
}

[[gnu::cold]] ATEN_BRIDGE_INLINE const char* infer_for_python(const KernelBase& kernel,
                                                              const PythonQuestion& question,
                                                              int* status) noexcept {
  try {
    *status = static_cast<int>(Status::kOk);
    const PythonAttributes given(question);
    if (question.input_count == kAttributesAlone) {  // calls no function of the kernel's
      check_pytorch(kernel.info.operator_name);
      Report report(kernel.info.operator_name);
      if (kernel.info.has_instance) {
        kernel.make_instance(given, report);
      }
      return keep_answer(report.ok() ? "[]" : as_json(report.faults()));
    }
    std::vector<AbstractValue> known;
    for (int i = 0; i < question.input_count; ++i) {
      const PythonInput& input = question.inputs[i];
      bool is_tensor = false;
      known.push_back(described_input(input.text, is_tensor));
      if (is_tensor) {
        known.back().sizes.assign(input.sizes, input.sizes + input.ndim);
      }
    }
    // Nothing is computed, so that no kernel changes a result.
    const HostMessages messages = {question.results, "", "", question.operands};
    std::string text = "[";
    for (const InferredOutput& output : infer(kernel, given, std::move(known), messages)) {
      text.append(text.size() == 1 ? "[" : ", [");
      append_json(text, std::string(dtype_name(output.dtype)).c_str());
      text += ", " + shape_text(output.sizes.data(), static_cast<int>(output.sizes.size())) + "]";
    }
    return keep_answer(text + "]");
  } catch (...) {
    *status = static_cast<int>(record_failure(kernel.info.operator_name, nullptr, 0).status);
    return last_error_text().c_str();  // not another library's aten_bridge_last_error()
  }
}

// ===--- the table ---===

inline TableEntry* first_entry = nullptr;
inline TableEntry** end_of_entries = &first_entry;

/// Whether a Python module, which says what matters to its host, has asked the library.
inline bool is_asked = false;

[[gnu::cold]] inline const char* describe_library() {
  is_asked = true;
  std::string json = join({R"({"pytorch": ")", TORCH_VERSION_MAJOR, ".", TORCH_VERSION_MINOR,
                           R"(", "cxx11_abi": )", _GLIBCXX_USE_CXX11_ABI != 0 ? "true" : "false",
                           R"(, "fault": )"});
  append_text(json, pytorch_fault());
  json += ", \"kernels\": [";
  for (const TableEntry* entry = first_entry; entry != nullptr; entry = entry->next) {
    json.append(entry == first_entry ? "" : ", ")
        .append(description(entry->kernel, entry->device, entry->hosts, entry->entry_points));
  }
  return keep_answer(json + "]}");
}

[[gnu::cold]] inline const char* infer_of_library(int kernel, const PythonQuestion* question,
                                                  int* status) {
  const TableEntry* entry = first_entry;
  for (; kernel > 0; --kernel) {
    entry = entry->next;
  }
  return infer_for_python(entry->kernel, *question, status);
}

#define ATEN_BRIDGE_TEXT_OF(x) #x
#define ATEN_BRIDGE_VERSION_TEXT(major, minor, patch) \
  ATEN_BRIDGE_TEXT_OF(major) "." ATEN_BRIDGE_TEXT_OF(minor) "." ATEN_BRIDGE_TEXT_OF(patch)

/// A host's ordinary code adds what it answers.
inline LibraryTable& library_table() {
  static LibraryTable table = {
      kPythonInterface,
      ATEN_BRIDGE_VERSION_TEXT(ATEN_BRIDGE_VERSION_MAJOR, ATEN_BRIDGE_VERSION_MINOR,
                               ATEN_BRIDGE_VERSION_PATCH),
      nullptr,
      &describe_library,
      &infer_of_library,
      nullptr,
      &list_failures};
  return table;
}
#undef ATEN_BRIDGE_VERSION_TEXT
#undef ATEN_BRIDGE_TEXT_OF

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// What the library has to tell. Libraries with a kernel have it. Protected: a library that was
/// opened before, for everybody to see, does not answer in this one's place.
extern "C" __attribute__((visibility("protected"))) inline const aten_bridge::detail::LibraryTable*
aten_bridge_library() {
  return &aten_bridge::detail::library_table();
}

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

inline const LibraryTable* (*exported_table)() = nullptr;

[[gnu::cold]] ATEN_BRIDGE_INLINE TableEntry::TableEntry(const KernelBase& kernel_of_entry,
                                                        at::DeviceType device_of_kernel,
                                                        const char* hosts_of_kernel,
                                                        const char* names_of_functions) noexcept
    : kernel(kernel_of_entry),
      device(device_of_kernel),
      hosts(hosts_of_kernel),
      entry_points(names_of_functions) {
  exported_table = &aten_bridge_library;
  *end_of_entries = this;
  end_of_entries = &next;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_INTROSPECTION_ANSWERS_H_
