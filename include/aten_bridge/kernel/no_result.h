// Kernels without results: functions that are called for their effect alone.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_KERNEL_NO_RESULT_H_
#define ATEN_BRIDGE_KERNEL_NO_RESULT_H_

#include <ATen/ops/scalar_tensor.h>
#include <aten_bridge/kernel/signature.h>

#include <optional>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Whether a function neither returns nor writes a tensor of its own.
template <class F>
constexpr bool has_no_result() {
  using Function = typename Body<F>::Function;
  using Parameters = typename Function::ParameterPackType;
  return !Body<F>::kHasState && std::is_void_v<typename Function::ResultType> &&
         Parameters::count(ParameterKind::kOutput) + Parameters::count(ParameterKind::kFrame) == 0;
}

/// Such a function as one that returns `true` once it is done: hosts know of a call by its results,
/// and MindSpore (2.10) never calls an operator without outputs.
template <class F, class ParameterPackType>
class WithResult;
template <class F, class... P>
class WithResult<F, ParameterPack<P...>> {
 public:
  constexpr explicit WithResult(F function) : function_(std::move(function)) {}

  at::Tensor operator()(P... arguments) const {
    at::TensorOptions options(at::kBool);
    (set_device(options, arguments), ...);
    function_(std::forward<P>(arguments)...);
    return at::scalar_tensor(true, options);
  }

 private:
  template <class T>
  static void set_device([[maybe_unused]] at::TensorOptions& options,
                         [[maybe_unused]] const T& argument) {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      options = argument.defined() ? options.device(argument.device()) : options;
    } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
      set_device(options, argument.value_or(at::Tensor()));
    } else if constexpr (std::is_same_v<T, at::TensorList>) {
      set_device(options, argument.empty() ? at::Tensor() : argument.front());
    }
  }

  F function_;
};

/// Its meta function.
inline at::Tensor meta_of_no_result() {
  return at::scalar_tensor(true, at::TensorOptions(at::kBool).device(at::kMeta));
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_KERNEL_NO_RESULT_H_
