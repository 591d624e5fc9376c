// Numbers: the one element of an input, as the kernel asks for it.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_INTERFACE_NUMBERS_H_
#define ATEN_BRIDGE_INTERFACE_NUMBERS_H_

#include <aten_bridge/core/attributes.h>
#include <aten_bridge/interface/operands.h>
#include <aten_bridge/tensors/views.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The one element of an input, before it becomes what the kernel asks for.
struct Number {
  enum class Type : std::uint8_t { kBool, kInt, kBigInt, kReal, kComplex };
  Type type = Type::kInt;
  int64_t integer = 0;                 // for kBool and kInt
  c10::complex<double> real = {0, 0};  // for kBigInt (2^63 and more, rounded), kReal, kComplex

  bool is_integer() const { return type == Type::kBool || type == Type::kInt; }  // in `integer`
};

template <class T>
T load(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));  // the data may have any alignment
  return value;
}

template <class T>
Number load_number(const void* data) {
  if constexpr (std::is_same_v<T, bool>) {
    return {Number::Type::kBool, load<std::uint8_t>(data) != 0, {}};
  } else if constexpr (std::is_integral_v<T>) {
    const T value = load<T>(data);
    const auto integer = static_cast<int64_t>(value);  // NOLINT(bugprone-signed-char-misuse)
    if (std::is_unsigned_v<T> && integer < 0) {
      return {Number::Type::kBigInt, 0, {static_cast<double>(value), 0}};
    }
    return {Number::Type::kInt, integer, {}};
  } else if constexpr (c10::is_complex<T>::value) {
    return {Number::Type::kComplex, 0, load<T>(data)};
  } else {
    return {Number::Type::kReal, 0, {static_cast<double>(load<T>(data)), 0}};
  }
}

/// `desc` has one element.
inline Number read_number(const OperandDesc& desc) {
  switch (desc.dtype) {
#define ATEN_BRIDGE_DTYPE(dtype, name, itemsize, T) \
  case DType::dtype:                                \
    return load_number<T>(desc.data);
    ATEN_BRIDGE_DTYPES(ATEN_BRIDGE_DTYPE)
#undef ATEN_BRIDGE_DTYPE
    case DType::kNone:
      break;
  }
  return {};
}

/// Converts without loss of more than a double's precision. False if that is not possible.
inline bool convert(const Number& number, int64_t& value) {
  const double real = number.real.real();
  switch (number.type) {
    case Number::Type::kBool:
    case Number::Type::kInt:
      value = number.integer;
      return true;
    case Number::Type::kReal:
      if (real >= -0x1p63 && real < 0x1p63 && real == std::trunc(real)) {
        value = static_cast<int64_t>(real);
        return true;
      }
      return false;
    default:
      return false;
  }
}

inline bool convert(const Number& number, bool& value) {
  int64_t integer = 0;
  const bool fits = convert(number, integer) && (integer == 0 || integer == 1);
  value = integer == 1;
  return fits;
}

inline bool convert(const Number& number, double& value) {
  value = number.is_integer() ? static_cast<double>(number.integer) : number.real.real();
  return number.type != Number::Type::kComplex;
}

inline bool convert(const Number& number, at::Scalar& value) {
  switch (number.type) {
    case Number::Type::kBool:
      value = number.integer != 0;
      return true;
    case Number::Type::kInt:
      value = number.integer;
      return true;
    case Number::Type::kReal:
      value = number.real.real();
      return true;
    case Number::Type::kComplex:
      value = number.real;
      return true;
    default:
      return false;
  }
}

/// The dtype that an input names; kNone for none.
inline DType read_dtype(const OperandDesc& desc) {
  int64_t number = 0;
  const bool is_dtype = desc.numel == 1 && convert(read_number(desc), number) && number > 0 &&
                        number < static_cast<int64_t>(std::size(kDTypes));
  return is_dtype ? static_cast<DType>(number) : DType::kNone;
}

/// Where an element of a list is, which may be a view: `desc` has up to one dimension.
inline char* element_of_list(const OperandDesc& desc, int64_t index) {
  const int64_t stride = desc.strides == nullptr || desc.ndim == 0 ? 1 : desc.strides[0];
  return static_cast<char*>(desc.data) +
         (desc.offset + index * stride) * static_cast<int64_t>(dtype_itemsize(desc.dtype));
}

/// Reads a list of int64_t or of double.
template <class List>
List list_as(const OperandDesc& desc) {
  List list;
  list.reserve(static_cast<std::size_t>(desc.numel));
  for (int64_t i = 0; i < desc.numel; ++i) {
    if constexpr (std::is_same_v<typename List::value_type, int64_t>) {
      list.push_back(load<int64_t>(element_of_list(desc, i)));
    } else {
      OperandDesc element = desc;
      element.data = element_of_list(desc, i);
      double value = 0;
      convert(read_number(element), value);
      list.push_back(desc.dtype == DType::kFloat32 ? widen(static_cast<float>(value)) : value);
    }
  }
  return list;
}

template <class T>
T number_as(const OperandDesc& desc) {
  T value{};
  if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>>) {
    value = list_as<T>(desc);
  } else if constexpr (std::is_same_v<T, at::ScalarType>) {
    value = scalar_type(read_dtype(desc));
  } else {
    convert(read_number(desc), value);
  }
  return value;
}

/// How the operand is not such a number.
[[gnu::cold]] inline Fault number_fault(ScalarInputType type, const OperandDesc& desc) {
  if (!is_one_number(type)) {
    return {type == ScalarInputType::kInts    ? "a list of ints"
            : type == ScalarInputType::kReals ? "a list of floats"
                                              : "the number of a dtype",
            kGot, desc.text()};
  }
  const char* expected = type == ScalarInputType::kBool   ? "a bool, 0 or 1"
                         : type == ScalarInputType::kInt  ? "an integer that an int64 can hold"
                         : type == ScalarInputType::kReal ? "a real number"
                                                          : "a number that an at::Scalar can hold";
  if (desc.numel != 1) {
    return {expected, " as one element", kGot, desc.text()};
  }
  const Number number = read_number(desc);
  const char* format = number.type == Number::Type::kComplex ? "%.17g%+.17gj" : "%.17g";
  char text[80];
  if (number.is_integer()) {
    std::snprintf(text, sizeof(text), "%lld", static_cast<long long>(number.integer));  // NOLINT
  } else {
    std::snprintf(text, sizeof(text), format, number.real.real(), number.real.imag());
  }
  return {expected, kGot, "the ", dtype_name(desc.dtype), " ", text};
}

inline bool is_number(ScalarInputType type, const OperandDesc& desc) {
  bool flag = false;
  int64_t integer = 0;
  double real = 0;
  at::Scalar any;
  if (type == ScalarInputType::kInts) {
    return desc.dtype == DType::kInt64 && desc.ndim <= 1;
  }
  if (type == ScalarInputType::kReals) {
    return desc.ndim <= 1 && desc.dtype != DType::kComplex64 && desc.dtype != DType::kComplex128;
  }
  if (type == ScalarInputType::kDtype) {
    return read_dtype(desc) != DType::kNone;
  }
  if (desc.numel != 1) {
    return false;
  }
  const Number number = read_number(desc);
  switch (type) {
    case ScalarInputType::kBool:
      return convert(number, flag);
    case ScalarInputType::kInt:
      return convert(number, integer);
    case ScalarInputType::kReal:
      return convert(number, real);
    default:
      return convert(number, any);
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_INTERFACE_NUMBERS_H_
