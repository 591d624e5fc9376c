// Autocast: the inputs of an operator in another dtype of floating point.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_AUTOCAST_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_AUTOCAST_H_

#include <aten_bridge/hosts/pytorch/operator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>
#include <c10/macros/Export.h>

#include <cstddef>
#include <utility>
#include <vector>

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 4
// Declared in <ATen/autocast_mode.h>, which includes all of ATen: with others, three of the 18
// seconds that cmake/package/aten_bridge.cpp took for PyTorch (2.11, g++ 12, -O2).
namespace at::autocast {
TORCH_API at::ScalarType get_autocast_dtype(at::DeviceType device_type);
TORCH_API at::Tensor cached_cast(at::ScalarType to_type, const at::Tensor& arg,
                                 at::DeviceType device_type);
}  // namespace at::autocast
namespace aten_bridge::detail {
using at::autocast::get_autocast_dtype;
}
#else
#include <ATen/autocast_mode.h>
#pragma GCC visibility push(hidden)
namespace aten_bridge::detail {
inline at::ScalarType get_autocast_dtype(at::DeviceType device) {
  return device == at::kCUDA                     ? at::autocast::get_autocast_gpu_dtype()
         : device == at::DeviceType::PrivateUse1 ? at::autocast::get_autocast_privateuseone_dtype()
                                                 : at::autocast::get_autocast_cpu_dtype();
}
}  // namespace aten_bridge::detail
#pragma GCC visibility pop
#endif

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The dispatcher's function for autocast. Tensors on autocast's device, not of float64, are cast
/// as PyTorch's own operators cast theirs.
class PyTorchAutocast final : public c10::OperatorKernel {
 public:
  PyTorchAutocast(PyTorchOperator& op, at::DeviceType device) : operator_(op), device_(device) {}

  /// The key of a device's autocast.
  static c10::DispatchKey key_of(at::DeviceType device) {
    return device == at::kCUDA                     ? c10::DispatchKey::AutocastCUDA
           : device == at::DeviceType::PrivateUse1 ? c10::DispatchKey::AutocastPrivateUse1
                                                   : c10::DispatchKey::AutocastCPU;
  }

  // NOLINTNEXTLINE(readability-named-parameter)
  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, c10::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(key_of(device_));
    at::ScalarType type = operator_.info().options.cast_to;
    if (type == at::ScalarType::Undefined) {
      type = get_autocast_dtype(device_);
    }
    const std::size_t count = operator_.inputs() + operator_.attributes.size();
    for (std::size_t i = 0; i < operator_.inputs(); ++i) {
      c10::IValue& value = (*stack)[stack->size() - count + i];
      if (value.isTensorList()) {
        std::vector<at::Tensor> list;
        for (const c10::IValue& element : value.toListRef()) {
          list.push_back(at::autocast::cached_cast(type, element.toTensor(), device_));
        }
        value = std::move(list);
      } else if (value.isTensor() && value.toTensor().defined()) {
        value = at::autocast::cached_cast(type, value.toTensor(), device_);
      }
    }
    handle.callBoxed(stack);
  }

 private:
  PyTorchOperator& operator_;
  at::DeviceType device_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_AUTOCAST_H_
