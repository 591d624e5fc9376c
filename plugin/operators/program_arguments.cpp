// Makes the arguments of a program's nodes from literals, by the types of the operator's schema.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_builder.h"
#include "program_operator.h"

#include <ATen/ScalarOps.h>
#include <c10/core/MemoryFormat.h>

#include <optional>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;

/// The number of a word, of one of PyTorch's enumerations.
std::optional<int64_t> number_of_word(c10::TypeKind type, const Literal& literal) {
  struct Word {
    c10::TypeKind type;
    const char* text;
    int64_t number;
  };
  static constexpr c10::TypeKind kFormat = c10::TypeKind::MemoryFormatType;
  static constexpr Word kWords[] = {
      {c10::TypeKind::LayoutType, "strided", static_cast<int64_t>(c10::Layout::Strided)},
      {kFormat, "contiguous_format", static_cast<int64_t>(c10::MemoryFormat::Contiguous)},
      {kFormat, "preserve_format", static_cast<int64_t>(c10::MemoryFormat::Preserve)},
      {kFormat, "channels_last", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast)},
      {kFormat, "channels_last_3d", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast3d)},
  };
  DType dtype = DType::kNone;
  if (literal.kind != Literal::Kind::kWord) {
    return std::nullopt;
  }
  if (type == c10::TypeKind::ScalarTypeType) {
    return find_dtype(literal.text, dtype)
               ? std::optional<int64_t>(static_cast<int64_t>(scalar_type(dtype)))
               : std::nullopt;
  }
  for (const Word& word : kWords) {
    if (word.type == type && word.text == literal.text) {
      return word.number;
    }
  }
  return std::nullopt;
}

c10::complex<double> complex_of(const Literal& literal) {
  return {literal.real, literal.imaginary};
}

}  // namespace

Program::Source Program::Builder::default_of(const Call& call, const c10::Argument& argument) {
  if (!argument.default_value().has_value()) {
    raise_in_line(call.line, join({"expected the argument '", argument.name(), "' of ",
                                   call.operator_name, ", got none"}));
  }
  return constant(*argument.default_value());
}

Program::Source Program::Builder::constant(c10::IValue value) {
  Source source;
  source.constant = std::move(value);
  return source;
}

Program::Source Program::Builder::value(int line, const std::string& name, bool is_list) const {
  Source source;
  source.form = Source::Form::kValue;
  source.value = find_value(line, name, is_list);
  return source;
}

void Program::Builder::refuse(const Call& call, const c10::Argument& argument) {
  raise_in_line(call.line, join({"argument '", argument.name(), "' of ", call.operator_name,
                                 ": expected ", argument.type()->str(), ", got another"}));
}

Program::Source Program::Builder::source_of(const Call& call, const c10::Argument& argument,
                                            const Literal& literal) const {
  c10::TypePtr type = argument.real_type();  // type() has ints for enumerations
  if (type->kind() == c10::TypeKind::OptionalType) {
    if (literal.kind == Literal::Kind::kNone) {
      return {};
    }
    type = element_of(type);
  }
  if (literal.kind == Literal::Kind::kList && type->kind() == c10::TypeKind::ListType) {
    return list_of(call, argument, element_of(type), literal);
  }
  if (type->kind() == c10::TypeKind::ListType && literal.kind == Literal::Kind::kNumber) {
    Literal list;  // an int for an int[2]
    list.elements.push_back(literal);
    return list_of(call, argument, element_of(type), list);
  }
  return single(call, argument, type, literal);
}

Program::Source Program::Builder::single(const Call& call, const c10::Argument& argument,
                                         const c10::TypePtr& type, const Literal& literal) const {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::ListType:
      if (literal.kind == Literal::Kind::kValue) {
        return value(call.line, literal.text, !is_tensor(type));
      }
      if (is_tensor(type) && literal.kind == Literal::Kind::kNumber) {
        return number(call.line, literal, Type::kTensor);
      }
      if (is_tensor(type) && literal.kind == Literal::Kind::kBool) {
        return constant(at::native::wrapped_scalar_tensor(literal.flag));
      }
      if (is_tensor(type) && literal.kind == Literal::Kind::kComplex) {
        return constant(at::native::wrapped_scalar_tensor(complex_of(literal)));
      }
      break;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      if (literal.kind == Literal::Kind::kNumber) {
        return number(call.line, literal, Type::kInt);
      }
      if (literal.kind == Literal::Kind::kBool) {
        return constant(static_cast<int64_t>(literal.flag));
      }
      break;
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
      if (const auto value = number_of_word(type->kind(), literal)) {
        return constant(*value);
      }
      break;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      if (literal.kind == Literal::Kind::kNumber) {
        return number(call.line, literal, Type::kFloat);
      }
      break;
    case c10::TypeKind::NumberType:
      if (literal.kind == Literal::Kind::kNumber) {
        return number(call.line, literal, Type::kScalar);
      }
      if (literal.kind == Literal::Kind::kComplex) {
        return constant(complex_of(literal));
      }
      if (literal.kind == Literal::Kind::kBool) {
        return constant(literal.flag);
      }
      break;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      if (literal.kind == Literal::Kind::kBool) {
        return constant(literal.flag);
      }
      break;
    case c10::TypeKind::StringType:
      if (literal.kind == Literal::Kind::kText) {
        return constant(literal.text);
      }
      break;
    case c10::TypeKind::DeviceObjType:
      if (literal.kind == Literal::Kind::kWord && literal.text == "cpu") {
        return constant(c10::Device(at::kCPU));
      }
      break;
    default:
      break;
  }
  refuse(call, argument);
}

Program::Source Program::Builder::number(int line, const Literal& literal, Type type) const {
  check_known(line, {literal.number});
  if (!literal.number.is_known(is_known_here_)) {
    raise_in_line(line,
                  "expected sizes of lines that run wherever it runs, got one of a line that "
                  "need not have run");
  }
  Source source;
  source.form = Source::Form::kNumber;
  source.type = type;
  source.number = literal.number;
  return literal.number.is_constant() ? constant(value_of(source, {})) : source;
}

Program::Source Program::Builder::list_of(const Call& call, const c10::Argument& argument,
                                          const c10::TypePtr& type, const Literal& literal) const {
  Source source;
  const bool is_optional = type->kind() == c10::TypeKind::OptionalType;
  const c10::TypePtr element = is_optional ? element_of(type) : type;
  for (const Literal& each : literal.elements) {
    source.elements.push_back(is_optional && each.kind == Literal::Kind::kNone
                                  ? Source()
                                  : single(call, argument, element, each));
  }
  switch (element->kind()) {
    case c10::TypeKind::TensorType:
      source.form = is_optional ? Source::Form::kOptionalTensors : Source::Form::kTensors;
      return source;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      source.form = Source::Form::kInts;
      return source;
    case c10::TypeKind::FloatType:
      source.form = Source::Form::kFloats;
      return source;
    case c10::TypeKind::BoolType: {
      c10::List<bool> flags;
      for (const Source& each : source.elements) {
        flags.push_back(each.constant.toBool());
      }
      return constant(std::move(flags));
    }
    case c10::TypeKind::NumberType: {
      c10::List<at::Scalar> scalars;
      for (const Source& each : source.elements) {
        if (each.form != Source::Form::kConstant) {
          refuse(call, argument);
        }
        scalars.push_back(each.constant.toScalar());
      }
      return constant(std::move(scalars));
    }
    default:
      refuse(call, argument);
  }
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
