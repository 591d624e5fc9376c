// Reads the schemas of PyTorch's dispatcher.
//
// SPDX-License-Identifier: Apache-2.0

#include "operator_schema.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <tuple>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

template <class T>
void set_type(Argument& argument) {
  argument.form = Argument::Form::kAttribute;
  argument.type = detail::Value<T>::kType;
  argument.text = detail::Value<T>::kText;
}

bool is_int(const c10::Type& type) {
  return type.kind() == c10::TypeKind::IntType || type.kind() == c10::TypeKind::SymIntType;
}

/// Sets what a list of such elements is; false if there is no attribute of the kind.
bool set_list(const c10::Type& element, Argument& argument) {
  if (const auto* optional = element.castRaw<c10::OptionalType>()) {
    argument.form = Argument::Form::kTensors;
    argument.is_optional = true;
    return optional->getElementType()->kind() == c10::TypeKind::TensorType;
  }
  if (is_int(element)) {
    set_type<std::vector<int64_t>>(argument);
    return true;
  }
  switch (element.kind()) {
    case c10::TypeKind::TensorType:
      argument.form = Argument::Form::kTensors;
      return !argument.is_optional;
    case c10::TypeKind::BoolType:
      set_type<std::vector<bool>>(argument);
      return true;
    case c10::TypeKind::FloatType:
      set_type<std::vector<double>>(argument);
      return true;
    case c10::TypeKind::StringType:
      set_type<std::vector<std::string>>(argument);
      return true;
    default:
      return false;
  }
}

/// The same of any type.
bool set_form(const c10::Type& type, Argument& argument) {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) {
    argument.is_optional = true;
    return set_form(*optional->getElementType(), argument);
  }
  if (const auto* list = type.castRaw<c10::ListType>()) {
    return set_list(*list->getElementType(), argument);
  }
  if (is_int(type)) {
    set_type<int64_t>(argument);
    return true;
  }
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      argument.form = Argument::Form::kTensor;
      return true;
    case c10::TypeKind::BoolType:
      set_type<bool>(argument);
      return true;
    case c10::TypeKind::FloatType:
      set_type<double>(argument);
      return true;
    case c10::TypeKind::NumberType:
      set_type<at::Scalar>(argument);
      return true;
    case c10::TypeKind::StringType:
      set_type<std::string>(argument);
      return true;
    case c10::TypeKind::ScalarTypeType:
      set_type<at::ScalarType>(argument);
      return true;
    default:
      return false;
  }
}

/// Whether an argument is a Dimname or a list of these, which a schema calls strings: named tensors
/// are PyTorch's alone. The names are all that such arguments of ATen 2.11 have.
bool is_dimension_name(const Argument& argument) {
  constexpr const char* kNames[] = {"dim",     "dim0",  "dim1",    "dim2",   "dims",
                                    "end_dim", "names", "out_dim", "outdim", "start_dim"};
  return argument.form == Argument::Form::kAttribute &&
         (argument.type == AttributeType::kString || argument.type == AttributeType::kStrings) &&
         std::find(std::begin(kNames), std::end(kNames), argument.name) != std::end(kNames);
}

/// Whether an argument is a running statistic: aten::batch_norm and its like bring these up to date
/// in place, and their schemas do not say so (PyTorch 2.11).
bool is_statistic(const std::string& name) {
  return name == "running_mean" || name == "running_var";
}

Argument read_argument(const c10::Argument& given, std::string& fault) {
  Argument argument;
  argument.name = given.name();
  argument.is_written = is_statistic(argument.name);
  argument.length = given.N().value_or(0);
  const bool is_known = set_form(*given.real_type(), argument);
  const bool has_default = given.default_value().has_value();
  if (has_default) {
    argument.fallback = *given.default_value();
  }
  if (!is_known) {
    argument.form = Argument::Form::kDefault;
    if (!has_default && given.real_type()->kind() != c10::TypeKind::OptionalType) {
      fault = detail::join({"its argument '", argument.name, "' is a ", given.real_type()->str()});
    }
  }
  if (is_dimension_name(argument)) {
    fault = detail::join({"its argument '", argument.name, "' names dimensions"});
  }
  argument.is_required =
      argument.form == Argument::Form::kAttribute && !has_default && !argument.is_optional;
  return argument;
}

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name
                                    : detail::join({name.name, ".", name.overload_name});
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

}  // namespace

Schema read_schema(const c10::FunctionSchema& schema) {
  Schema read;
  read.name = full_name(schema.operator_name());
  bool has_tensor = false;
  for (const c10::Argument& argument : schema.arguments()) {
    std::string fault;
    read.arguments.push_back(read_argument(argument, fault));
    has_tensor = has_tensor || read.arguments.back().form == Argument::Form::kTensor ||
                 read.arguments.back().form == Argument::Form::kTensors;
    if (writes(argument)) {
      fault = detail::join({"it writes its argument '", argument.name(),
                            "'; use an overload that returns its results"});
    }
    if (!fault.empty()) {
      read.fault = std::move(fault);
      read.is_writing = writes(argument);
    }
  }
  // All lists of tensors but the last have a length that is an attribute of their name.
  bool is_last = true;
  for (auto argument = read.arguments.rbegin(); argument != read.arguments.rend(); ++argument) {
    if (argument->form == Argument::Form::kTensors) {
      argument->is_required = !is_last;
      is_last = false;
    }
  }
  for (const c10::Argument& result : schema.returns()) {
    if (result.real_type()->kind() != c10::TypeKind::TensorType && read.fault.empty()) {
      read.fault = detail::join({"it returns a value of type ", result.real_type()->str()});
    }
  }
  read.results = static_cast<int>(schema.returns().size());
  if (read.fault.empty()) {
    read.is_factory = read.results > 0 && !has_tensor;
    read.fault = read.results == 0 ? "it returns nothing" : !has_tensor ? "it takes no tensor" : "";
  }
  return read;
}

std::vector<c10::OperatorHandle> find_overloads(const std::string& name) {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::vector<c10::OperatorHandle> found;
  for (const c10::OperatorName& one : dispatcher.getAllOpNames()) {
    if (one.name == name) {
      if (const auto handle = dispatcher.findSchema(one)) {
        found.push_back(*handle);
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const c10::OperatorHandle& a, const c10::OperatorHandle& b) {
              return a.operator_name().overload_name < b.operator_name().overload_name;
            });
  return found;
}

std::optional<c10::OperatorHandle> find_overload(const std::string& name) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  return c10::Dispatcher::singleton().findSchema(
      {name.substr(0, dot), dot == name.size() ? "" : name.substr(dot + 1)});
}

std::optional<c10::OperatorHandle> find_out(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  const std::size_t results = schema.returns().size();
  for (const c10::OperatorHandle& handle : find_overloads(schema.name())) {
    const auto& others = handle.schema().arguments();
    const bool has_count = others.size() == arguments.size() + results;
    if (has_count &&
        std::equal(arguments.begin(), arguments.end(), others.begin(),
                   [](const c10::Argument& a, const c10::Argument& b) {
                     return !b.is_out() && a.name() == b.name() && *a.real_type() == *b.real_type();
                   }) &&
        std::all_of(others.begin() + static_cast<std::ptrdiff_t>(arguments.size()), others.end(),
                    [](const c10::Argument& out) {
                      return out.is_out() && out.real_type()->kind() == c10::TypeKind::TensorType;
                    })) {
      return handle;
    }
  }
  return std::nullopt;
}

bool depends_on_values(const c10::OperatorHandle& handle) {
  return handle.operator_name().name == "aten::_pack_padded_sequence" ||  // has no tag
         handle.hasTag(at::Tag::dynamic_output_shape) ||
         handle.hasTag(at::Tag::data_dependent_output);
}

bool is_random(const c10::OperatorHandle& handle) {
  return handle.hasTag(at::Tag::nondeterministic_seeded);
}

c10::IValue read_value(const Argument& argument, const Attributes& attributes, Report& report) {
  const char* const name = argument.name.c_str();
  if (!attributes.has(name)) {
    if (argument.is_required) {
      attributes.add_fault(name, argument.text, report);
    }
    return argument.fallback;
  }
  const auto get = [&](auto value) {
    return detail::get_attribute(attributes, name, value) ? c10::IValue(value) : c10::IValue();
  };
  c10::IValue found = detail::visit_attribute_type(
      argument.type, static_cast<void*>(nullptr),
      [&](auto* type) { return get(std::remove_pointer_t<decltype(type)>()); });
  // What also stands for a value of another type, as in PyTorch.
  int64_t integer = 0;
  std::vector<int64_t> integers;
  if (argument.type == AttributeType::kNumber) {
    found = get(at::Scalar());
  } else if (argument.type == AttributeType::kDtype) {
    found = get(at::ScalarType::Undefined);
  } else if (found.isNone() && attributes.get(name, integer)) {
    if (argument.type == AttributeType::kFloat) {
      found = static_cast<double>(integer);
    } else if (argument.type == AttributeType::kInts && argument.length > 0) {
      found = std::vector<int64_t>(static_cast<std::size_t>(argument.length), integer);
    }
  } else if (found.isNone() && attributes.get(name, integers)) {
    if (argument.type == AttributeType::kFloats) {
      found = std::vector<double>(integers.begin(), integers.end());
    } else if (argument.type == AttributeType::kBools && integers.empty()) {
      found = c10::List<bool>();
    }
  }
  if (!found.isNone()) {
    return found;
  }
  attributes.add_fault(name, argument.text, report);
  return {};
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
