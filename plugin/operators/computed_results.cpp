// Results of which nobody knows the sizes before they are computed.
//
// SPDX-License-Identifier: Apache-2.0

#include "computed_results.h"

#include "overload.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <memory>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

constexpr int64_t kColumns = 2 + detail::kMaxNdim;

using ComputedResults = std::vector<at::Tensor>;

/// Where this thread's next results are left; null: nowhere.
thread_local void** place_of_results = nullptr;

/// Whether a value is in an input's memory, which is the host's.
bool is_of_host(const Arguments& arguments, const at::Tensor& value) {
  const auto shares = [&](const at::Tensor& input) {
    return input.defined() && value.is_alias_of(input);
  };
  return std::any_of(arguments.operands, arguments.operands + arguments.inputs,
                     [&](const detail::Operand& input) { return shares(input.view); }) ||
         (arguments.list != nullptr &&
          std::any_of(arguments.list->begin(), arguments.list->end(), shares));
}

}  // namespace

void tell_sizes(const Arguments& arguments, at::TensorList results) {
  at::Tensor table = at::full({static_cast<int64_t>(results.size()), kColumns}, 0, at::kLong);
  auto* row = table.data_ptr<int64_t>();
  auto computed = std::make_unique<ComputedResults>();
  for (const at::Tensor& result : results) {
    const at::Tensor value = defined(result);
    const DType dtype = detail::dtype_of(value.scalar_type());
    if (dtype == DType::kNone) {
      detail::raise(Status::kDtype, {arguments.kernel->operator_name, ": expected ",
                                     detail::dtype_names(), ", got ", detail::tensor_text(value)});
    }
    if (value.dim() > detail::kMaxNdim) {
      detail::raise(Status::kShape,
                    {arguments.kernel->operator_name, ": expected results of at most ",
                     detail::kMaxNdim, " dimensions, got ", detail::tensor_text(value)});
    }
    row[0] = static_cast<int64_t>(dtype);
    row[1] = value.dim();
    std::copy(value.sizes().begin(), value.sizes().end(), row + 2);
    row += kColumns;
    if (place_of_results != nullptr) {
      computed->push_back(is_of_host(arguments, value) ? value.clone() : value);
    }
  }
  arguments.results->take(arguments, &table, 1);
  if (place_of_results != nullptr) {
    *place_of_results = computed.release();
  }
}

at::Tensor table_of_sizes(int64_t results) {
  return detail::make_meta({results, kColumns}, at::kLong);
}

}  // namespace aten_bridge::operators

/// Where this thread's next kernels of the task "sizes" leave their results; null: nowhere.
extern "C" ATEN_BRIDGE_PUBLIC void aten_bridge_operator_set_results(void** place) {
  aten_bridge::operators::place_of_results = place;
}

/// Copies them into memory of the sizes and dtypes that the kernel has told, row-major.
extern "C" ATEN_BRIDGE_PUBLIC void aten_bridge_operator_copy_results(const void* results,
                                                                     void* const* outputs) {
  const at::NoGradGuard guard;
  for (const at::Tensor& value :
       *static_cast<const aten_bridge::operators::ComputedResults*>(results)) {
    if (value.numel() > 0) {
      at::from_blob(*outputs, value.sizes(), value.scalar_type()).copy_(value);
    }
    ++outputs;
  }
}

extern "C" ATEN_BRIDGE_PUBLIC void aten_bridge_operator_free_results(void* results) {
  delete static_cast<aten_bridge::operators::ComputedResults*>(results);
}

#pragma GCC visibility pop
