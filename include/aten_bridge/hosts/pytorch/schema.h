// Schemas: what PyTorch's dispatcher knows of a kernel, told by its signature and its options.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_SCHEMA_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_SCHEMA_H_

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <aten_bridge/call/bind.h>
#include <aten_bridge/interface/kernel_base.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// "LeakyReluGrad" as "leaky_relu_grad", "LSTMCell" as "lstm_cell", "Conv2d" as "conv2d".
[[gnu::cold]] inline std::string snake_case(const std::string& name) {
  const auto is_upper = [&](std::size_t i) {
    return i < name.size() && std::isupper(static_cast<unsigned char>(name[i])) != 0;
  };
  const auto is_lower = [&](std::size_t i) {
    return i < name.size() && std::islower(static_cast<unsigned char>(name[i])) != 0;
  };
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins_word =
        i > 0 && is_upper(i) && name[i - 1] != '_' && (!is_upper(i - 1) || is_lower(i + 1));
    text.append(begins_word ? "_" : "")
        .append(1, static_cast<char>(std::tolower(static_cast<unsigned char>(name[i]))));
  }
  return text;
}

/// The operator's name in its namespace.
[[gnu::cold]] inline std::string operator_name_of(const KernelDescriptor& kernel) {
  return kernel.options.name != nullptr ? kernel.options.name : snake_case(kernel.operator_name);
}

/// An argument of an operator that is an attribute of its kernel.
struct SchemaAttribute {
  std::string name;
  AttributeType type;
  bool is_optional;
  bool is_required;
  c10::IValue fallback;
};

/// A default as the dispatcher has it; `value` is of that type, or null for None.
[[gnu::cold]] inline c10::IValue default_value(AttributeType type, const void* value) {
  if (value == nullptr) {
    return {};
  }
  if (type == AttributeType::kNumber) {
    return *static_cast<const at::Scalar*>(value);
  }
  if (type == AttributeType::kDtype) {
    return static_cast<int64_t>(*static_cast<const at::ScalarType*>(value));
  }
  return visit_attribute_type(type, value, [](const auto* given) { return c10::IValue(*given); });
}

/// The attributes in the order of an operator's arguments: those with a default last.
class SchemaAttributes final : public AttributeVisitor {
 public:
  [[gnu::cold]] explicit SchemaAttributes(const KernelBase& kernel) {
    kernel.visit_attributes(*this);
    std::stable_partition(attributes.begin(), attributes.end(),
                          [](const SchemaAttribute& a) { return a.is_required; });
  }

  [[gnu::cold]] void visit(const AttributeInfo& attribute) override {
    attributes.push_back({attribute.name, attribute.type, attribute.is_optional,
                          attribute.is_required,
                          default_value(attribute.type, attribute.fallback)});
  }

  std::vector<SchemaAttribute> attributes;
};

/// A type of the dispatcher, and the one that a schema shows where it is another.
struct SchemaType {
  c10::TypePtr type;
  c10::TypePtr shown;
};

[[gnu::cold]] inline SchemaType type_of(AttributeType type) {
  if (type == AttributeType::kDtype) {
    return {c10::IntType::get(), c10::ScalarTypeType::get()};
  }
  if (type == AttributeType::kNumber) {
    return {c10::NumberType::get(), c10::NumberType::get()};
  }
  return visit_attribute_type(type, static_cast<void*>(nullptr), [](auto* value) {
    const c10::TypePtr& plain = c10::getTypePtr<std::remove_pointer_t<decltype(value)>>();
    return SchemaType{plain, plain};
  });
}

[[gnu::cold]] inline SchemaType optional_of(const SchemaType& type) {
  return {c10::OptionalType::create(type.type), c10::OptionalType::create(type.shown)};
}

/// Whether an input of a gradient kernel is the gradient of a result.
inline bool is_of_result(const ParameterInfo& binding) {
  return binding.kind == ParameterKind::kTensor && binding.optional;
}

[[gnu::cold]] inline SchemaType type_of_input(const ParameterInfo& binding) {
  SchemaType type;
  switch (binding.kind) {
    case ParameterKind::kTensorList:
      return {c10::ListType::ofTensors(), c10::ListType::ofTensors()};
    case ParameterKind::kNumber:
      type = type_of(binding.number == ScalarInputType::kBool   ? AttributeType::kBool
                     : binding.number == ScalarInputType::kInt  ? AttributeType::kInt
                     : binding.number == ScalarInputType::kReal ? AttributeType::kFloat
                                                                : AttributeType::kNumber);
      break;
    default:
      type = {c10::TensorType::get(), c10::TensorType::get()};
  }
  return binding.optional ? optional_of(type) : type;
}

/// Whether `name` can be that of an argument, beside those that are there.
[[gnu::cold]] inline bool is_argument_name(const std::string& name,
                                           const std::vector<std::string>& others) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), is_word) &&
         std::find(others.begin(), others.end(), name) == others.end();
}

/// The names of the inputs: those of their checks, else numbers.
[[gnu::cold]] inline std::vector<std::string> input_names(const KernelDescriptor& kernel,
                                                          std::vector<std::string> taken) {
  const std::size_t attributes = taken.size();
  const bool has_one = kernel.inputs > 1 && is_of_result(kernel.bindings[kernel.inputs - 1]) &&
                       !is_of_result(kernel.bindings[kernel.inputs - 2]);
  int gradients = 0;
  for (int i = 0; i < kernel.inputs; ++i) {
    const OperandCheck* check = find_check(kernel, Role::kInput, i);
    std::string name = "input" + std::to_string(i);
    if (kernel.is_gradient && is_of_result(kernel.bindings[i])) {
      name = has_one ? "grad_output" : "grad_output" + std::to_string(gradients++);
    } else if (check != nullptr && is_argument_name(check->name(), taken)) {
      name = check->name();
    }
    taken.push_back(name);
  }
  return {taken.begin() + static_cast<std::ptrdiff_t>(attributes), taken.end()};
}

/// The operator's schema: inputs, attributes, and, of the overload that writes to tensors that it
/// is given, these. That one returns nothing: PyTorch 2.11 compiles no operator of a library whose
/// results are its arguments.
[[gnu::cold]] inline c10::FunctionSchema make_schema(const KernelDescriptor& kernel,
                                                     const std::string& qualified_name,
                                                     const std::vector<SchemaAttribute>& attributes,
                                                     bool is_out) {
  std::vector<std::string> names;
  bool has_required = false;
  for (const SchemaAttribute& attribute : attributes) {
    names.push_back(attribute.name);
    has_required = has_required || attribute.is_required;
  }
  const std::vector<std::string> inputs = input_names(kernel, names);
  names.insert(names.end(), inputs.begin(), inputs.end());
  int needed = kernel.inputs;  // behind these are only inputs that may be left out
  while (!has_required && needed > 0 && kernel.bindings[needed - 1].optional) {
    --needed;
  }
  std::vector<c10::Argument> arguments;
  for (int i = 0; i < kernel.inputs; ++i) {
    const SchemaType type = type_of_input(kernel.bindings[i]);
    const std::string& name = inputs[static_cast<std::size_t>(i)];
    if (i < needed) {
      arguments.emplace_back(name, type.type, type.shown);
    } else {
      arguments.push_back(c10::Argument(name, type.type, type.shown, {}, c10::IValue()));
    }
  }
  for (const SchemaAttribute& attribute : attributes) {
    SchemaType type = type_of(attribute.type);
    type = attribute.is_optional ? optional_of(type) : type;
    if (attribute.is_required) {
      arguments.emplace_back(attribute.name, type.type, type.shown);
    } else {
      arguments.push_back(
          c10::Argument(attribute.name, type.type, type.shown, {}, attribute.fallback));
    }
  }
  std::vector<c10::Argument> results;
  const c10::TypePtr tensor = c10::TensorType::get();
  if (kernel.lists_outputs) {
    results.emplace_back("", c10::ListType::ofTensors());
  }
  for (int i = 0; i < kernel.outputs && !kernel.lists_outputs; ++i) {
    if (!is_out) {
      results.emplace_back("", tensor);
      continue;
    }
    const OperandCheck* check = find_check(kernel, Role::kOutput, i);
    std::string name = kernel.outputs == 1 ? "out" : "out" + std::to_string(i);
    if (kernel.outputs > 1 && check != nullptr && is_argument_name(check->name(), names)) {
      name = check->name();
    }
    while (!is_argument_name(name, names)) {
      name += '_';
    }
    names.push_back(name);
    c10::AliasInfo alias;
    alias.setIsWrite(true);
    const auto symbol = c10::Symbol::fromQualString("alias::out" + std::to_string(i));
    alias.addBeforeSet(symbol);
    alias.addAfterSet(symbol);
    arguments.push_back(
        c10::Argument(name, tensor, tensor, {}, {}, /*kwarg_only=*/true, std::move(alias)));
  }
  return {qualified_name, is_out ? "out" : "", std::move(arguments), std::move(results)};
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_SCHEMA_H_
