// PyTorch's dispatcher as a host: a kernel is the operator torch.ops.<namespace>.<name> from when
// its library is opened by any host. This is what a kernel's source has of it.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_PYTORCH_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_PYTORCH_H_

#include <aten_bridge/interface/kernel_base.h>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What a device does before a kernel's state is made, and after it.
using AroundState = void (*)(const char* operator_name, void* stream, bool is_made);

/// A kernel of this library as it becomes an operator.
struct PyTorchKernel {
  const KernelBase* kernel;
  const char* name_space;
  at::DeviceType device;
  AroundState around_state;
};

/// Makes a kernel an operator. What cannot be one is left out: a kernel over a CallFrame, and one
/// whose name another library has taken. Of the latter, and of what fails, the library's table
/// tells. Throws nothing: a library is being opened.
ATEN_BRIDGE_INLINE void register_with_pytorch(const PyTorchKernel& kernel) noexcept;

/// Registers a kernel where a library's own objects are made.
struct RegisterWithPyTorch {
  template <class Exported>
  RegisterWithPyTorch(const Exported& exported, const char* name_space) {
    register_with_pytorch(
        {&exported.kernel, name_space, Exported::kDevice, Exported::kAroundState});
  }
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// The kernel is also an operator of PyTorch's. The linker refuses a second kernel of that name in
/// the library, also where no host looks up a C function.
#define ATEN_BRIDGE_ENTRY_PYTORCH(Name)                                                  \
  extern "C" {                                                                           \
  __attribute__((visibility("hidden"))) char aten_bridge_only_##Name;                    \
  }                                                                                      \
  static const ::aten_bridge::detail::RegisterWithPyTorch aten_bridge_of_pytorch_##Name( \
      aten_bridge_kernel_##Name, ATEN_BRIDGE_NAMESPACE);
#define ATEN_BRIDGE_ENTRY_POINTS_PYTORCH(Name) ""  // registered by name

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_PYTORCH_H_
