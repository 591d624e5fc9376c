// Dtypes: the element types that hosts name and PyTorch has, in one table.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CORE_DTYPES_H_
#define ATEN_BRIDGE_CORE_DTYPES_H_

#include <aten_bridge/core/config.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

/// The element types that hosts name and PyTorch has. (The bridge has no std::vector of it: g++
/// makes such templates of enumerations visible, whatever the pragma says.)
enum class DType : std::uint8_t {
  kNone,  ///< no tensor: Python's None
  kBool,
  kUInt8,
  kInt8,
  kUInt16,
  kInt16,
  kUInt32,
  kInt32,
  kUInt64,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  kFloat8E4M3FN,
  kFloat8E5M2,
};

}  // namespace aten_bridge

namespace aten_bridge::detail {

struct DTypeInfo {
  std::string_view name;
  DType dtype;
  std::uint8_t itemsize;  // bytes
};

// The names that MindSpore 2.10 uses, in the order of the enumeration. It also has "hifloat8" and
// "int4", which PyTorch has not, and "string" and "typetype" for arguments that are no tensors.
inline constexpr DTypeInfo kDTypes[] = {
    {"none", DType::kNone, 0},
    {"bool", DType::kBool, 1},
    {"uint8", DType::kUInt8, 1},
    {"int8", DType::kInt8, 1},
    {"uint16", DType::kUInt16, 2},
    {"int16", DType::kInt16, 2},
    {"uint32", DType::kUInt32, 4},
    {"int32", DType::kInt32, 4},
    {"uint64", DType::kUInt64, 8},
    {"int64", DType::kInt64, 8},
    {"float16", DType::kFloat16, 2},
    {"bfloat16", DType::kBFloat16, 2},
    {"float32", DType::kFloat32, 4},
    {"float64", DType::kFloat64, 8},
    {"complex64", DType::kComplex64, 8},
    {"complex128", DType::kComplex128, 16},
    {"float8e4m3fn", DType::kFloat8E4M3FN, 1},
    {"float8e5m2", DType::kFloat8E5M2, 1},
};

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
    if (info.name == name) {
      return &info;
    }
  }
  for (const DTypeInfo& info : kOlderDTypes) {
    if (info.name == name) {
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
      text.append(text.empty() ? "" : "|").append(info.name);
    }
  }
  return text;
}

}  // namespace aten_bridge::detail

namespace aten_bridge {

/// The host's name of a dtype, such as "float32"; "none" for kNone.
inline std::string_view dtype_name(DType dtype) noexcept { return detail::dtype_info(dtype).name; }

/// The dtype of that name, as MindSpore and NumPy have them; false, and kNone, if there is none.
[[gnu::noinline]] inline bool find_dtype(std::string_view name, DType& dtype) noexcept {
  const detail::DTypeInfo* const info = detail::find_dtype(name);
  dtype = info == nullptr ? DType::kNone : info->dtype;
  return info != nullptr;
}

/// Bytes of one element; 0 for kNone.
inline std::size_t dtype_itemsize(DType dtype) noexcept {
  return detail::dtype_info(dtype).itemsize;
}

}  // namespace aten_bridge

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CORE_DTYPES_H_
