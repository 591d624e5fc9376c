// Results in PyTorch: nobody else's memory.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_RESULTS_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_RESULTS_H_

#include <ATen/ops/empty_like.h>
#include <aten_bridge/hosts/pytorch_operands.h>
#include <aten_bridge/kernel_base.h>

#include <algorithm>
#include <cstddef>
#include <string>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Adds results that are none to the report; `who` gave them.
inline void add_undefined(const Tensors& results, const char* who, Report& report) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) {
      report.add(Status::kOutput, {"output ", std::to_string(i),
                                   ": expected a tensor, got an undefined tensor from the ", who});
    }
  }
}

/// Whether a result has the memory of an input, or of a result before it.
inline bool is_shared(const Arguments& arguments, const Tensors& results, std::size_t index) {
  const at::Tensor& result = results[index];
  return std::any_of(arguments.operands, arguments.operands + arguments.inputs,
                     [&](const Operand& input) {
                       return input.view.defined() && shares_memory(result, input.view);
                     }) ||
         std::any_of(results.data(), results.data() + index,
                     [&](const at::Tensor& other) { return shares_memory(result, other); });
}

/// Whether the kernel has kept a result or its memory, in its state or in a constant.
inline bool is_held(const at::Tensor& result) {
  return result.use_count() > 1 || (result.has_storage() && result.storage().use_count() > 1);
}

/// Copies results that have the memory of others: autograd and the caller write to them. PyTorch
/// sees to it itself where it traces.
inline void separate(const Arguments& arguments, Purpose purpose, Tensors& results) {
  for (std::size_t i = 0; i < results.size() && purpose != Purpose::kTrace; ++i) {
    at::Tensor& result = results[i];
    if (arguments.kernel->records && result.requires_grad()) {
      result = result.detach();
    }
    if (purpose == Purpose::kInfer) {
      result = is_shared(arguments, results, i) ? at::empty_like(result) : result;
    } else if (is_shared(arguments, results, i) ||
               (arguments.kernel->returns_results && is_held(result))) {
      result = result.clone();
    }
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_RESULTS_H_
