// Tensors as a host has them, and what a kernel must make of them, without PyTorch.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_OPERAND_H_
#define ATEN_BRIDGE_TESTS_FUZZ_OPERAND_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory.h"

namespace fuzz {

using Bytes = std::vector<unsigned char>;
using Ints = std::vector<int64_t>;

/// The dtypes whose values the fuzzer computes with, then those that it passes on.
enum class Type {
  kBool,
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kF32,
  kF64,
  kC64,
  kC128,
  kF16,
  kU64,
  kU16,
  kU32,
  kBF16,
  kF8E4,
  kF8E5
};

struct TypeInfo {
  const char* name;
  std::size_t size;
  int id;                 // MindSpore's number; 0 where it differs between versions
  int scalar_type;        // ATen's number
  int mantissa_bits = 0;  // for floats that C++ does not have
  int bias = 0;
  const char* older_name = nullptr;
};
inline constexpr TypeInfo kTypes[] = {
    {"bool", 1, 30, 11},
    {"uint8", 1, 37, 0},
    {"int8", 1, 32, 1},
    {"int16", 2, 33, 2},
    {"int32", 4, 34, 3, 0, 0, "int"},
    {"int64", 8, 35, 4},
    {"float32", 4, 43, 6, 0, 0, "float"},
    {"float64", 8, 44, 7},
    {"complex64", 8, 0, 9},
    {"complex128", 16, 0, 10},
    {"float16", 2, 42, 5, 10, 15},
    {"uint64", 8, 40, 29},
    {"uint16", 2, 38, 27},
    {"uint32", 4, 39, 28, 0, 0, "uint"},
    {"bfloat16", 2, 0, 15, 7, 127},
    {"float8e4m3fn", 1, 0, 24, 3, 7},
    {"float8e5m2", 1, 0, 23, 2, 15},
};
inline constexpr Type kAllTypes[] = {
    Type::kF32, Type::kF64,  Type::kI64, Type::kI32,  Type::kC128, Type::kF32,  Type::kI8,
    Type::kU8,  Type::kBool, Type::kI16, Type::kC64,  Type::kF16,  Type::kBF16,
#if PYTORCH_MINOR >= 6  // up to 2.4 nothing can be written to the latter, and 2.1 lacks the former
    Type::kU64, Type::kU16,  Type::kU32, Type::kF8E4, Type::kF8E5
#endif
};
inline const TypeInfo& info(Type type) { return kTypes[static_cast<int>(type)]; }

/// The one of a name; null if there is none.
inline const TypeInfo* find_type(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                         [&](const TypeInfo& type) { return name == type.name; });
  return found == std::end(kTypes) ? nullptr : found;
}

struct Operand {
  Type type = Type::kF32;
  Ints sizes;
  bool is_none = false;
  bool is_number = false;  // a Python number
  Bytes bytes;             // row-major

  int64_t numel() const {
    int64_t count = 1;
    for (const int64_t size : sizes) {
      count *= size;
    }
    return is_none ? 0 : count;
  }
  std::size_t byte_count() const { return static_cast<std::size_t>(numel()) * info(type).size; }
};

/// As in "float32 [2, 3]".
inline std::string text(const Operand& operand) {
  std::string text = operand.is_none ? "None" : std::string(info(operand.type).name) + " [";
  for (std::size_t i = 0; i < operand.sizes.size(); ++i) {
    text.append(i == 0 ? "" : ", ").append(std::to_string(operand.sizes[i]));
  }
  return operand.is_none ? text : text + "]";
}

inline Ints choose_sizes(Choices& choices) {
  static const Ints kSizes[] = {{2, 3}, {4},    {},           {1},       {3, 2}, {2, 3, 2},
                                {0},    {2, 0}, {1, 1, 1, 1}, {2, 1, 3}, {64},   {5, 7}};
  return choices.of(kSizes);
}

/// Calls `f` with a value of the C++ type.
template <class F>
auto with_type(Type type, F f) {
  switch (type) {
    case Type::kBool:
      return f(bool());
    case Type::kU8:
      return f(std::uint8_t());
    case Type::kI8:
      return f(std::int8_t());
    case Type::kI16:
      return f(std::int16_t());
    case Type::kI32:
      return f(std::int32_t());
    case Type::kI64:
      return f(std::int64_t());
    case Type::kF32:
      return f(float());
    case Type::kF64:
      return f(double());
    case Type::kC64:
      return f(std::complex<float>());
    case Type::kC128:
      return f(std::complex<double>());
    case Type::kF16:
    case Type::kBF16:
    case Type::kU16:
      return f(std::uint16_t());
    case Type::kF8E4:
    case Type::kF8E5:
      return f(std::uint8_t());
    case Type::kU32:
      return f(std::uint32_t());
    case Type::kU64:
      break;
  }
  return f(std::uint64_t());
}

template <class T>
std::vector<T> values(const Operand& operand) {
  std::vector<T> found(operand.bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < found.size(); ++i) {  // also for a vector of bools
    T value;
    std::memcpy(&value, operand.bytes.data() + i * sizeof(T), sizeof(T));
    found[i] = value;
  }
  return found;
}

template <class T>
void set_values(Operand& operand, const std::vector<T>& values) {
  operand.bytes.resize(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = values[i];
    std::memcpy(operand.bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

/// The bits of a float that C++ does not have, for a number that such a one can be: 0, or from 1
/// on.
inline std::uint16_t encode(const TypeInfo& type, double number) {
  if (number == 0) {
    return 0;
  }
  int exponent = 0;
  const double half = std::frexp(number, &exponent);  // from 1/2 on
  return static_cast<std::uint16_t>(((exponent - 1 + type.bias) << type.mantissa_bits) +
                                    static_cast<int>((2 * half - 1) * (1 << type.mantissa_bits)));
}
inline double decode(const TypeInfo& type, std::uint16_t bits) {
  const int mantissa = bits & ((1 << type.mantissa_bits) - 1);
  return bits == 0 ? 0
                   : std::ldexp(1 + std::ldexp(mantissa, -type.mantissa_bits),
                                (bits >> type.mantissa_bits) - type.bias);
}

/// Sets element after element to what `number_of` its index is.
template <class F>
void set_numbers(Operand& operand, F number_of) {
  with_type(operand.type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> numbers(static_cast<std::size_t>(operand.numel()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const TypeInfo& type = info(operand.type);
      if constexpr (std::is_unsigned_v<T>) {
        if (type.mantissa_bits > 0) {
          numbers[i] = static_cast<T>(encode(type, number_of(i)));
          continue;
        }
      }
      numbers[i] = static_cast<T>(number_of(i));
    }
    set_values(operand, numbers);
    return 0;
  });
}

/// Small integers, of which sums and products are exact in all types.
inline Operand choose_tensor(Choices& choices, Type type, Ints sizes) {
  Operand operand;
  operand.type = type;
  operand.sizes = std::move(sizes);
  const int seed = choices.byte();
  const std::size_t count = type == Type::kBool ? 2 : info(type).mantissa_bits > 0 ? 8 : 11;
  set_numbers(operand, [&](std::size_t i) {
    return static_cast<int>((static_cast<std::size_t>(seed) + 3 * i) % count);
  });
  return operand;
}

/// The one element of an operand: an integer, or the rest of the numbers.
struct Number {
  bool is_integer = false;
  bool is_complex = false;
  bool is_bool = false;
  __extension__ __int128 integer = 0;
  std::complex<double> real;
};
inline Number number_of(const Operand& operand) {
  Number number;
  with_type(operand.type, [&](auto zero) {
    using T = decltype(zero);
    const T value = values<T>(operand)[0];
    const TypeInfo& type = info(operand.type);
    if constexpr (std::is_integral_v<T>) {
      number.is_integer = type.mantissa_bits == 0;
      number.is_bool = operand.type == Type::kBool;
      number.integer = value;
      number.real = number.is_integer ? static_cast<double>(value)
                                      : decode(type, static_cast<std::uint16_t>(value));
    } else {
      number.is_complex = !std::is_floating_point_v<T>;
      number.real = std::complex<double>(value);
    }
    return 0;
  });
  return number;
}

/// Whether memory has the operand's values. Of zeros, whichever sign they have.
inline bool has_values(const void* memory, const Operand& operand) {
  return with_type(operand.type, [&](auto zero) {
    using T = decltype(zero);
    Operand found = operand;
    if (!found.bytes.empty()) {
      std::memcpy(found.bytes.data(), memory, found.bytes.size());
    }
    return values<T>(found) == values<T>(operand);
  });
}

/// What a call has to give. Any: an error, or the value where there is one.
enum class Outcome { kValue, kError, kAny };

/// The text of every error must begin with the kernel's name.
inline void check_text(const std::string& text, const char* kernel) {
  if (text.rfind(std::string(kernel) + ": ", 0) != 0) {
    fail("an error without the kernel's name:", text.c_str());
  }
}

inline bool is_known(Type type) { return type < Type::kF16; }
inline bool is_float(Type type) { return type == Type::kF32 || type == Type::kF64; }
inline bool is_complex(Type type) { return type == Type::kC64 || type == Type::kC128; }

}  // namespace fuzz

#endif  // ATEN_BRIDGE_TESTS_FUZZ_OPERAND_H_
