// One operand of a call as memory: all that a view needs, whatever the host.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CORE_OPERAND_DESC_H_
#define ATEN_BRIDGE_CORE_OPERAND_DESC_H_

#include <aten_bridge/core/dtypes.h>
#include <aten_bridge/core/errors.h>

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
struct OperandDesc {
  void* data = nullptr;            ///< may be null for None and where `numel` is 0
  const int64_t* sizes = nullptr;  ///< `ndim` sizes of 0 or more; may be null where `ndim` is 0
  int ndim = 0;
  int64_t numel = 0;  ///< number of elements; 0 for None
  DType dtype = DType::kNone;
  const int64_t* strides = nullptr;  ///< `ndim`, in elements; null: row-major, dense
  int64_t offset = 0;                ///< where the first element is after `data`, in elements

  bool is_none() const noexcept { return dtype == DType::kNone; }

  /// "float32 [2, 3]" or "None".
  [[gnu::cold, gnu::noinline]] std::string text() const {
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

namespace aten_bridge::detail {

/// Whether the rank is possible and there are sizes for it.
inline bool has_form(int64_t ndim, const int64_t* sizes) {
  return ndim >= 0 && ndim <= kMaxNdim && (ndim == 0 || sizes != nullptr);
}

/// What is wrong with a shape for which has_form() is false.
[[gnu::cold]] inline Fault form_fault(int64_t ndim) {
  if (ndim < 0 || ndim > kMaxNdim) {
    return {"a rank from 0 to ", kMaxNdim, kGot, ndim};
  }
  return {count_text(ndim, "size"), kGot, "a null shape"};
}

[[gnu::cold, gnu::noinline]] inline void add_size_fault(const OperandName& name,
                                                        const OperandDesc& desc, int64_t size,
                                                        Report& report) {
  const char* const expected = size < 0 ? "sizes of 0 or more" : "fewer than 2^63 bytes";
  report.add(Status::kShape, name, {expected, kGot, desc.text()});
}

[[gnu::cold, gnu::noinline]] inline void add_null_fault(const OperandName& name,
                                                        const OperandDesc& desc, Report& report) {
  report.add(Status::kNullPointer, name,
             {"a pointer to ", count_text(desc.numel, "element"), kGot, "null with ", desc.text()});
}

/// Sets `numel` of an operand that is complete except for it. False, with the report, if a size is
/// impossible, or if there is no memory for the elements.
[[gnu::always_inline]] inline bool count_elements(OperandDesc& desc, const OperandName& name,
                                                  Report& report) {
  const auto itemsize = static_cast<int64_t>(dtype_itemsize(desc.dtype));
  bool empty = false;
  int64_t bytes = itemsize;  // every size of 0 is taken as 1, as strides do
  for (int i = 0; i < desc.ndim; ++i) {
    const int64_t size = desc.sizes[i];
    if (size < 0 || __builtin_mul_overflow(bytes, size == 0 ? 1 : size, &bytes)) {
      add_size_fault(name, desc, size, report);
      return false;
    }
    empty = empty || size == 0;
  }
  desc.numel = empty ? 0 : bytes / itemsize;
  if (desc.data == nullptr && !empty) {
    add_null_fault(name, desc, report);
    return false;
  }
  return true;
}

/// Completes a description that a host made; false, with the report, if something is wrong with it.
[[gnu::noinline]] inline bool complete(OperandDesc& desc, const OperandName& name, Report& report) {
  desc.numel = 0;
  if (!has_form(desc.ndim, desc.sizes)) {
    report.add(Status::kShape, name, form_fault(desc.ndim));
    return false;
  }
  if (desc.is_none()) {
    return true;
  }
  if (!count_elements(desc, name, report)) {
    return false;
  }
  if (desc.numel == 1) {  // whatever its strides are
    desc.data = static_cast<char*>(desc.data) +
                desc.offset * static_cast<int64_t>(dtype_itemsize(desc.dtype));
    desc.strides = nullptr;
    desc.offset = 0;
  }
  return true;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CORE_OPERAND_DESC_H_
