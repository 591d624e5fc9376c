// Dtypes: the element types that hosts name and PyTorch has, in one table.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CORE_DTYPES_H_
#define ATEN_BRIDGE_CORE_DTYPES_H_

#include <aten_bridge/core/config.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

// The one list of dtypes, in the order of their numbers, which the Python modules have too: the
// enumerator, the name in MindSpore 2.10, bytes, and the type in C++, which only files that include
// PyTorch expand. MindSpore also has "hifloat8" and "int4", which PyTorch lacks, and "string" and
// "typetype" for arguments that are not tensors.
#define ATEN_BRIDGE_DTYPES(X)                             \
  X(kBool, "bool", 1, bool)                               \
  X(kUInt8, "uint8", 1, std::uint8_t)                     \
  X(kInt8, "int8", 1, std::int8_t)                        \
  X(kUInt16, "uint16", 2, std::uint16_t)                  \
  X(kInt16, "int16", 2, std::int16_t)                     \
  X(kUInt32, "uint32", 4, std::uint32_t)                  \
  X(kInt32, "int32", 4, std::int32_t)                     \
  X(kUInt64, "uint64", 8, std::uint64_t)                  \
  X(kInt64, "int64", 8, std::int64_t)                     \
  X(kFloat16, "float16", 2, c10::Half)                    \
  X(kBFloat16, "bfloat16", 2, c10::BFloat16)              \
  X(kFloat32, "float32", 4, float)                        \
  X(kFloat64, "float64", 8, double)                       \
  X(kComplex64, "complex64", 8, c10::complex<float>)      \
  X(kComplex128, "complex128", 16, c10::complex<double>)  \
  X(kFloat8E4M3FN, "float8e4m3fn", 1, c10::Float8_e4m3fn) \
  X(kFloat8E5M2, "float8e5m2", 1, c10::Float8_e5m2)

#define ATEN_BRIDGE_DTYPE(dtype, name, itemsize, T) dtype,
/// The element types that hosts name and PyTorch has: kNone, which is no tensor but Python's None,
/// then kBool, kUInt8, kInt8, and so on to kInt64, kFloat16, kBFloat16, kFloat32, kFloat64,
/// kComplex64, kComplex128, kFloat8E4M3FN and kFloat8E5M2. (The bridge has no std::vector of it:
/// g++ makes such templates of enumerations visible, whatever the pragma says.)
enum class DType : std::uint8_t { kNone, ATEN_BRIDGE_DTYPES(ATEN_BRIDGE_DTYPE) };
#undef ATEN_BRIDGE_DTYPE

}  // namespace aten_bridge

namespace aten_bridge::detail {

struct DTypeInfo {
  char text[16];  // the name, and zeros, of which the first ends it
  DType dtype;
  std::uint8_t itemsize;  // bytes

  constexpr std::string_view name() const { return text; }
};

#define ATEN_BRIDGE_DTYPE(dtype, name, itemsize, T) {name, DType::dtype, itemsize},
inline constexpr DTypeInfo kDTypes[] = {{"none", DType::kNone, 0},
                                        ATEN_BRIDGE_DTYPES(ATEN_BRIDGE_DTYPE)};
#undef ATEN_BRIDGE_DTYPE

/// Whether a host's table, of entries that have a `dtype`, has each dtype once.
template <class Table>
constexpr bool has_each_dtype(const Table& table) {
  for (const DTypeInfo& info : kDTypes) {
    int entries = 0;
    for (const auto& entry : table) {
      entries += entry.dtype == info.dtype ? 1 : 0;
    }
    if (entries != 1 && info.dtype != DType::kNone) {
      return false;
    }
  }
  return true;
}

// Older hosts leave the width out where it is 32.
inline constexpr DTypeInfo kOlderDTypes[] = {
    {"int", DType::kInt32, 4},
    {"uint", DType::kUInt32, 4},
    {"float", DType::kFloat32, 4},
};

inline const DTypeInfo& dtype_info(DType dtype) noexcept {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

/// Null for a name that is not in the tables. Never guesses.
inline const DTypeInfo* find_dtype(std::string_view name) noexcept {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name() == name) {
      return &info;
    }
  }
  for (const DTypeInfo& info : kOlderDTypes) {
    if (info.name() == name) {
      return &info;
    }
  }
  return nullptr;
}

/// "bool|uint8|...": all that a tensor can be.
[[gnu::cold]] inline std::string dtype_names() {
  std::string text;
  for (const DTypeInfo& info : kDTypes) {
    if (info.dtype != DType::kNone) {
      text.append(text.empty() ? "" : "|").append(info.name());
    }
  }
  return text;
}

}  // namespace aten_bridge::detail

namespace aten_bridge {

/// The host's name of a dtype, such as "float32"; "none" for kNone.
inline std::string_view dtype_name(DType dtype) noexcept {
  return detail::dtype_info(dtype).name();
}

/// The dtype of that name, as MindSpore and NumPy have them; false, and kNone, if it does not
/// exist.
[[gnu::noinline]] inline bool find_dtype(std::string_view name, DType& dtype) noexcept {
  const detail::DTypeInfo* const info = detail::find_dtype(name);
  dtype = info == nullptr ? DType::kNone : info->dtype;
  return info != nullptr;
}

/// Whether that is the dtype's name. "float32" is compared at once: its end can be read where the
/// seven letters before it do not end the text. (A loop over letters costs 50 instructions instead
/// of 23, and std::strcmp() of glibc 2.36, called, 91.)
inline bool has_name(DType dtype, const char* name) noexcept {
  const char* expected = detail::dtype_info(dtype).text;
  if (name[0] != '\0' && name[1] != '\0' && name[2] != '\0' && name[3] != '\0' && name[4] != '\0' &&
      name[5] != '\0' && name[6] != '\0') {
    std::uint64_t letters = 0;
    std::uint64_t expected_letters = 0;
    std::memcpy(&letters, name, sizeof(letters));
    std::memcpy(&expected_letters, expected, sizeof(letters));
    if (letters != expected_letters || name[7] == '\0') {
      return letters == expected_letters;
    }
  }
  return std::strcmp(name, expected) == 0;
}

/// Bytes of one element; 0 for kNone.
inline std::size_t dtype_itemsize(DType dtype) noexcept {
  return detail::dtype_info(dtype).itemsize;
}

}  // namespace aten_bridge

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CORE_DTYPES_H_
