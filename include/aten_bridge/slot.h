// One operand of a call as memory: all that a view needs, whatever the host.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_SLOT_H_
#define ATEN_BRIDGE_SLOT_H_

#include <aten_bridge/dtypes.h>
#include <aten_bridge/errors.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Ranks over this are taken for garbage; many ATen operators refuse them too.
inline constexpr int kMaxNdim = 64;

}  // namespace aten_bridge::detail

namespace aten_bridge {

/// One checked operand of a call, whatever the host: all that a view needs.
struct Slot {
  void* data = nullptr;            ///< may be null for None and where `numel` is 0
  const int64_t* sizes = nullptr;  ///< `ndim` sizes of 0 or more; may be null where `ndim` is 0
  int ndim = 0;
  int64_t numel = 0;  ///< number of elements; 0 for None
  DType dtype = DType::kNone;
  const int64_t* strides = nullptr;  ///< `ndim`, in elements; null: row-major, dense
  int64_t offset = 0;                ///< of the first element behind `data`, in elements

  bool is_none() const noexcept { return dtype == DType::kNone; }

  /// "float32 [2, 3]" or "None".
  std::string text() const {
    return is_none() ? "None"
                     : std::string(dtype_name(dtype)) + ' ' + detail::shape_text(sizes, ndim);
  }
};

/// How an input lies in memory; no strides: row-major, dense.
struct Layout {
  std::vector<int64_t> strides;
  std::size_t offset = 0;
};

}  // namespace aten_bridge

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_SLOT_H_
