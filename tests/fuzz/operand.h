// Tensors as a host has them, and what a kernel must make of them, without PyTorch.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_OPERAND_H_
#define ATEN_BRIDGE_TESTS_FUZZ_OPERAND_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "memory.h"

namespace fuzz {

using Bytes = std::vector<unsigned char>;
using Ints = std::vector<int64_t>;

/// The dtypes whose values the fuzzer computes with, and two that it passes on.
enum class Type { kBool, kU8, kI8, kI16, kI32, kI64, kF32, kF64, kC64, kC128, kF16, kU64 };

struct TypeInfo {
  const char* name;
  std::size_t size;
  int id;  // MindSpore's number; 0 where it differs between versions
};
inline constexpr TypeInfo kTypes[] = {
    {"bool", 1, 30},     {"uint8", 1, 37},      {"int8", 1, 32},    {"int16", 2, 33},
    {"int32", 4, 34},    {"int64", 8, 35},      {"float32", 4, 43}, {"float64", 8, 44},
    {"complex64", 8, 0}, {"complex128", 16, 0}, {"float16", 2, 42}, {"uint64", 8, 40},
};
inline constexpr Type kAllTypes[] = {Type::kF32, Type::kF64, Type::kI64, Type::kI32,  Type::kC128,
                                     Type::kF32, Type::kI8,  Type::kU8,  Type::kBool, Type::kI16,
                                     Type::kC64, Type::kF16, Type::kU64};
inline const TypeInfo& info(Type type) { return kTypes[static_cast<int>(type)]; }

struct Operand {
  Type type = Type::kF32;
  Ints sizes;
  bool is_none = false;
  bool is_number = false;  // of Python's
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
      return f(std::uint16_t());
    case Type::kU64:
      break;
  }
  return f(std::uint64_t());
}

template <class T>
std::vector<T> values(const Operand& operand) {
  std::vector<T> found(operand.bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < found.size(); ++i) {  // of a vector of bools, too
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

/// Small integers, of which sums and products are exact in all types.
inline Operand choose_tensor(Choices& choices, Type type, Ints sizes) {
  Operand operand;
  operand.type = type;
  operand.sizes = std::move(sizes);
  const int seed = choices.byte();
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> numbers(static_cast<std::size_t>(operand.numel()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<T>(type == Type::kBool ? (seed + i) % 2 : (seed + 3 * i) % 11);
    }
    set_values(operand, numbers);
    return 0;
  });
  return operand;
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

inline bool is_known(Type type) { return type != Type::kF16 && type != Type::kU64; }

}  // namespace fuzz

#endif  // ATEN_BRIDGE_TESTS_FUZZ_OPERAND_H_
