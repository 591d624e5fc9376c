// Parameters that are PyTorch's own optional, which before 2.2 was not std::optional.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_KERNEL_OLD_OPTIONAL_H_
#define ATEN_BRIDGE_KERNEL_OLD_OPTIONAL_H_

#include <aten_bridge/kernel/parameters.h>
#include <aten_bridge/kernel/values.h>
#include <aten_bridge/tensors/torch.h>

#include <optional>

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

template <>
struct Parameter<const c10::optional<at::Tensor>&> : OptionalInput<c10::optional<at::Tensor>> {};
template <>
struct Parameter<c10::optional<at::Tensor>> : OptionalInput<c10::optional<at::Tensor>> {};

template <class T>
struct Value<c10::optional<T>> : Value<std::optional<T>> {
  static c10::optional<T> get(const typename Value<std::optional<T>>::Stored& stored) {
    return stored.has_value() ? c10::optional<T>(Value<T>::get(*stored)) : c10::nullopt;
  }
};
template <class T>
inline constexpr bool kIsOptional<c10::optional<T>> = true;

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif

#endif  // ATEN_BRIDGE_KERNEL_OLD_OPTIONAL_H_
