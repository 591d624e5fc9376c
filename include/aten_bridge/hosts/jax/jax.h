// JAX as a host: for each kernel a handler of XLA's FFI, the C function NameJax, which JAX calls
// once aten_bridge.jax, the Python module, has registered it. This is what a kernel's source has of
// it.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_JAX_JAX_H_
#define ATEN_BRIDGE_HOSTS_JAX_JAX_H_

#include <aten_bridge/call/result_form.h>
#include <aten_bridge/hosts/jax/abi.h>
#include <aten_bridge/hosts/jax/attributes.h>
#include <aten_bridge/interface/kernel_base.h>

#include <atomic>
#include <type_traits>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

class JaxInstances;

/// A kernel of this library as XLA calls it.
struct JaxKernel {
  const KernelBase* kernel;
  CallSiteCache& (*call_sites)();
  at::DeviceType device;
  std::atomic<JaxInstances*> instances{nullptr};  // what is kept for it; made by the first call
};

/// The kernel that a call means, whose arrays are there; throws `Error` if there is none.
using FindForJax = JaxKernel&(const xla::CallFrame& frame);

/// One call of XLA's; null, or the error, which XLA then owns. Of the kernel that `find` says, or,
/// where that is null, of `kernel`.
template <class Device>
xla::Error* call_from_jax(const char* operator_name, FindForJax* find, JaxKernel* kernel,
                          const xla::CallFrame* frame) noexcept;

/// Finds a kernel whose results have sizes that depend on values in the form that a call wants.
template <const auto& kExported, JaxKernel& kValues>
JaxKernel& find_form(const xla::CallFrame& frame) {
  static constexpr auto kCallSites = &std::decay_t<decltype(kExported)>::call_sites;
  static JaxKernel sizes{&in_form<kExported>(ResultForm::kSizes), kCallSites, kExported.kDevice};
  static JaxKernel padded{&in_form<kExported>(ResultForm::kPadded), kCallSites, kExported.kDevice};
  const ResultForm form = result_form(JaxAttributes(frame.attributes));
  return form == ResultForm::kSizes ? sizes : form == ResultForm::kPadded ? padded : kValues;
}

/// That function where there is more than one form.
template <const auto& kExported, JaxKernel& kValues>
constexpr FindForJax* find_for_jax() {
  if constexpr (kExported.is_data_dependent()) {
    return &find_form<kExported, kValues>;
  } else {
    return nullptr;
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// The kernel is also a handler of XLA's.
#define ATEN_BRIDGE_ENTRY_JAX(Name)                                                        \
  static ::aten_bridge::detail::JaxKernel aten_bridge_jax_kernel_##Name{                   \
      &aten_bridge_kernel_##Name.kernel, &decltype(aten_bridge_kernel_##Name)::call_sites, \
      aten_bridge_kernel_##Name.kDevice};                                                  \
  extern "C" ATEN_BRIDGE_PUBLIC void* Name##Jax(const void* frame) {                       \
    return ::aten_bridge::detail::call_from_jax<ATEN_BRIDGE_DEVICE>(                       \
        #Name,                                                                             \
        ::aten_bridge::detail::find_for_jax<aten_bridge_kernel_##Name,                     \
                                            aten_bridge_jax_kernel_##Name>(),              \
        &aten_bridge_jax_kernel_##Name,                                                    \
        static_cast<const ::aten_bridge::detail::xla::CallFrame*>(frame));                 \
  }
#define ATEN_BRIDGE_ENTRY_POINTS_JAX(Name) #Name "Jax "

#endif  // ATEN_BRIDGE_HOSTS_JAX_JAX_H_
