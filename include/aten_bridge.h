// aten_bridge: a kernel written with PyTorch's ATen, called by another deep-learning framework.
//
//   #include <ATen/ops/leaky_relu.h>
//   #include <aten_bridge.h>
//
//   void leaky_relu(const at::Tensor& x, at::Tensor& y) { at::leaky_relu_out(y, x); }
//   ATEN_BRIDGE_EXPORT(LeakyRelu, leaky_relu);
//
// makes the C function `LeakyRelu` that MindSpore's ops.Custom("./leaky_relu.so:LeakyRelu", ...,
// func_type="aot") calls. The tensors are views of the host's memory, which is not copied
// (docs/writing-a-kernel.md has the exceptions).
//
// This is the umbrella header: what a kernel's source includes. It includes those of aten_bridge/,
// of which docs/inside.md has a table. Define ATEN_BRIDGE_CORE_ONLY to get just errors, dtypes,
// operands and attributes, none of which needs PyTorch.
//
// A source that nvcc compiles, or one with ATEN_BRIDGE_CUDA defined, has kernels for CUDA, any
// other kernels for the CPU. One with ATEN_BRIDGE_MINDSPORE_PLUGIN defined has kernels for the
// operators of MindSpore itself, not for ops.Custom; one with ATEN_BRIDGE_WITHOUT_MINDSPORE has
// them for PyTorch and JAX alone.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_H_
#define ATEN_BRIDGE_H_

#include <aten_bridge/core/arithmetic.h>
#include <aten_bridge/core/attributes.h>
#include <aten_bridge/core/config.h>
#include <aten_bridge/core/dtypes.h>
#include <aten_bridge/core/errors.h>
#include <aten_bridge/core/operand_desc.h>
#include <aten_bridge/hosts/mindspore/abi.h>
#include <aten_bridge/hosts/mindspore/frame.h>

// Ordinary code, which aten_bridge_add_kernel compiles once for all kernels of a build folder.
#if !defined(ATEN_BRIDGE_COMPILED) || defined(ATEN_BRIDGE_COMPILES)
#include <aten_bridge/core/report.h>
#include <aten_bridge/hosts/mindspore/attributes.h>
#define ATEN_BRIDGE_COMPILED_HERE
#endif  // ATEN_BRIDGE_COMPILED

#ifndef ATEN_BRIDGE_CORE_ONLY

#include <aten_bridge/hosts/introspection/introspection.h>
#include <aten_bridge/hosts/mindspore/custom.h>
#include <aten_bridge/kernel/gradient.h>
#include <aten_bridge/kernel/kernel.h>
#include <aten_bridge/tensors/device_cpu.h>

#include <type_traits>
#include <utility>

#ifdef ATEN_BRIDGE_CUDA
#include <aten_bridge/tensors/device_cuda.h>
#endif
#ifdef ATEN_BRIDGE_MINDSPORE_PLUGIN
#include <aten_bridge/hosts/mindspore/plugin.h>
#endif

#ifdef ATEN_BRIDGE_COMPILED_HERE
#include <aten_bridge/call/computed_results.h>
#include <aten_bridge/call/instance_cache.h>
#include <aten_bridge/call/results.h>
#include <aten_bridge/call/run.h>
#include <aten_bridge/hosts/introspection/answers.h>
#include <aten_bridge/hosts/mindspore/hooks.h>
#include <aten_bridge/hosts/mindspore/raw_call.h>
#include <aten_bridge/interface/differentiate.h>
#elif defined(ATEN_BRIDGE_HOST)
#error "A source for a host of its own is built with aten_bridge_add_kernel(... HEADER_ONLY)."
#endif  // ATEN_BRIDGE_COMPILED_HERE

// The hosts. The first one is MindSpore, in one of two ways, or a host of the source's own, which
// defines ATEN_BRIDGE_HOST and ATEN_BRIDGE_ENTRY before it includes this (call/host.h). Without
// one, a kernel is checked as for ops.Custom. The others each have a block, with what a source has
// of it and its ordinary code. A bit is that of the name's place in AtenBridgeAddKernel.cmake;
// ops.Custom and a source's own host have none.
#if defined(ATEN_BRIDGE_HOST)
#define ATEN_BRIDGE_ENTRY_OTHER ATEN_BRIDGE_ENTRY
#define ATEN_BRIDGE_ENTRY_POINTS_OTHER(Name) ""
#define ATEN_BRIDGE_FIRST_HOST(X, argument) X(OTHER, 0, argument)
#elif defined(ATEN_BRIDGE_MINDSPORE_PLUGIN)
#define ATEN_BRIDGE_HOST ::aten_bridge::detail::MindSporePlugin
#define ATEN_BRIDGE_FIRST_HOST(X, argument) X(MINDSPORE_PLUGIN, 2, argument)
#elif defined(ATEN_BRIDGE_WITHOUT_MINDSPORE)
#define ATEN_BRIDGE_HOST ::aten_bridge::detail::WithoutMindSpore
#define ATEN_BRIDGE_FIRST_HOST(X, argument)
#else
#define ATEN_BRIDGE_HOST ::aten_bridge::detail::MindSporeCustom
#define ATEN_BRIDGE_FIRST_HOST(X, argument) X(MINDSPORE, 0, argument)
#endif
#ifdef ATEN_BRIDGE_PYTORCH
#ifndef ATEN_BRIDGE_NAMESPACE
#error "ATEN_BRIDGE_PYTORCH needs ATEN_BRIDGE_NAMESPACE, a string: torch.ops.<namespace>."
#endif
#include <aten_bridge/hosts/pytorch/pytorch.h>
#ifdef ATEN_BRIDGE_COMPILED_HERE
#include <aten_bridge/hosts/pytorch/registry.h>
#endif  // ATEN_BRIDGE_COMPILED_HERE
#define ATEN_BRIDGE_IF_PYTORCH(X, argument) X(PYTORCH, 4, argument)
#else
#define ATEN_BRIDGE_IF_PYTORCH(X, argument)
#endif
#ifdef ATEN_BRIDGE_JAX
#include <aten_bridge/hosts/jax/jax.h>
#ifdef ATEN_BRIDGE_COMPILED_HERE
#include <aten_bridge/hosts/jax/call.h>
#endif  // ATEN_BRIDGE_COMPILED_HERE
#define ATEN_BRIDGE_IF_JAX(X, argument) X(JAX, 8, argument)
#else
#define ATEN_BRIDGE_IF_JAX(X, argument)
#endif
#define ATEN_BRIDGE_HOSTS(X, argument) \
  ATEN_BRIDGE_FIRST_HOST(X, argument)  \
  ATEN_BRIDGE_IF_PYTORCH(X, argument) ATEN_BRIDGE_IF_JAX(X, argument)

#define ATEN_BRIDGE_BIT(HOST, bit, argument) bit +  // NOLINT(bugprone-macro-parentheses)
#if defined(ATEN_BRIDGE_COMPILED) && ATEN_BRIDGE_COMPILED != ATEN_BRIDGE_HOSTS(ATEN_BRIDGE_BIT, ) \
                                                                 defined(ATEN_BRIDGE_CUDA)
#error "This source is for another DEVICE or HOST than aten_bridge_add_kernel was told."
#endif  // ATEN_BRIDGE_COMPILED

// Each source chooses what follows, so inline functions must not depend on it.
#ifdef ATEN_BRIDGE_CUDA
#define ATEN_BRIDGE_DEVICE ::aten_bridge::detail::CudaDevice
#else
#define ATEN_BRIDGE_DEVICE ::aten_bridge::detail::CpuDevice
#endif

#ifdef ATEN_BRIDGE_ERRORS_RETURN
#define ATEN_BRIDGE_ERROR_MODE ::aten_bridge::ErrorMode::kReturn
#else
#define ATEN_BRIDGE_ERROR_MODE ::aten_bridge::ErrorMode::kThrow
#endif

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// A kernel of a library, of which the host's C functions are made.
template <class K, class Device, class HostCall>
struct Exported {
  K kernel;

  static constexpr at::DeviceType kDevice = Device::kType;
  static constexpr auto kAroundState = &Device::around_state;

  operator const KernelBase&() const { return kernel; }  // NOLINT(*-explicit-*)

  static constexpr bool is_data_dependent() { return K::kTraits.is_data_dependent; }
  static constexpr bool is_strided() { return K::kTraits.is_strided; }

  /// A call of the host, or of one beside it.
  template <class H = HostCall, class... HostArgument>
  typename H::Result call(HostArgument... host_arguments) const {
    check<H>();
    if constexpr (K::kTraits.is_raw) {
      return run_raw<Device, H>(kernel, host_arguments...);
    } else {
      return run<Device, H>(kernel, call_sites, host_arguments...);
    }
  }

  /// The same of this kernel in another form (call/result_form.h).
  template <class H = HostCall, class... HostArgument>
  typename H::Result call_form(const KernelBase& form, HostArgument... host_arguments) const {
    check<H>();
    return run<Device, H>(form, call_sites, host_arguments...);
  }

  /// The thread's, of all kernels of this type, which take operands of the same kinds.
  static CallSiteCache& call_sites() {
    thread_local CallSiteCache* kept = nullptr;  // found sooner than what has a destructor
    return kept == nullptr ? *(kept = make_call_sites()) : *kept;
  }

  /// Checks that H is a host, and can call such a kernel.
  template <class H>
  static constexpr void check() {
    check_host<H>();
    static_assert(
        !K::kTraits.is_raw || std::is_base_of_v<CallFrame, H>,
        "aten_bridge: a kernel over a CallFrame is for MindSpore alone, whose call it is.");
    static_assert(std::is_empty_v<typename H::template Requirements<K>>,
                  "a host's Requirements are static_asserts alone");
  }

 private:
  [[gnu::cold, gnu::noinline]] static CallSiteCache* make_call_sites() {
    thread_local const CallSites kept;
    return kept.cache;  // NOLINT(clang-analyzer-*): not of this call, but of the thread
  }
};

/// From a name that several functions have, GCC deduces that there is no argument.
template <bool kIsOne>
constexpr void check_one_function() {
  static_assert(kIsOne,
                "aten_bridge: the name of a kernel's function is that of one function; this one is "
                "overloaded, by another of yours, of ATen or of the C library, which has a sincos: "
                "export a lambda that calls it, or rename it.");
}

template <bool kIsGradient, class Device, class HostCall, class... Argument>
constexpr auto export_kernel(const char* operator_name, ErrorMode error_mode,
                             Argument&&... arguments) {
  check_one_function<(sizeof...(Argument) > 0)>();
  const OperatorDescriptor descriptor{operator_name, error_mode};
  const auto make = [&] {
    if constexpr (kIsGradient) {
      return make_gradient_kernel(descriptor, std::forward<Argument>(arguments)...);
    } else {
      return make_kernel(descriptor, std::forward<Argument>(arguments)...);
    }
  };
  using Kernel = Exported<decltype(make()), Device, HostCall>;
  Kernel::template check<HostCall>();  // also where no function of that host calls it
  return Kernel{make()};
}

#ifdef __clang__
/// The same for Clang, which deduces nothing.
template <bool kIsGradient, class Device, class... Host>
constexpr auto export_kernel(const char* /*operator_name*/, ErrorMode /*error_mode*/, ...) {
  check_one_function<sizeof...(Host) == 0>();
}
#endif

}  // namespace aten_bridge::detail

/// ATEN_BRIDGE_EXPORT(Name, function, options...): exports a kernel, as the C functions that its
/// hosts look up: for MindSpore `Name` and hooks. `function` is a function, a lambda or a function
/// object, or aten_bridge::state<T(P...)>(). Its parameters, in any order:
///
///   const at::Tensor&, at::Tensor          the next input
///   const std::optional<at::Tensor>&       the next input, which may be None
///   at::TensorList                         all inputs that are left for it; at most one
///   at::Tensor&                            the next output, to be written in place
///   bool, int64_t, double, at::Scalar, std::string, std::vector<int64_t> and other values
///                                          the attribute of the next aten_bridge::attr option;
///                                          when there are no more, a bool, int64_t, double or
///                                          at::Scalar is the one element of the next input, and
///                                          std::optional of these may be None
///   aten_bridge::Workspace<T>              memory, see aten_bridge::workspace
///   result at::Tensor, std::tuple<at::Tensor…>, std::array<at::Tensor, N>   copied to the outputs
///
/// or it takes a `const aten_bridge::CallFrame&` alone and does with the call what it likes; what
/// such a kernel does to its outputs is not checked.
///
/// Options: aten_bridge::attr, aten_bridge::meta, aten_bridge::workspace, aten_bridge::input,
/// aten_bridge::output, aten_bridge::data_dependent, aten_bridge::strided and
/// aten_bridge::autograd; for PyTorch also aten_bridge::name, aten_bridge::composite,
/// aten_bridge::private_use and aten_bridge::autocast.
///
/// Where ATEN_BRIDGE_PYTORCH is defined, the kernel is also the operator
/// torch.ops.<ATEN_BRIDGE_NAMESPACE>.<name in snake_case>: see docs/pytorch.md. Where
/// ATEN_BRIDGE_JAX is, it is also a handler of XLA's: see docs/jax.md.
///
/// Where ATEN_BRIDGE_MINDSPORE_PLUGIN is defined, the kernel is that of MindSpore's own operator
/// `Name`, and takes the parameters of that operator in their order: tensors, which may have
/// strides and an offset, numbers, and also lists (at::IntArrayRef, std::vector<double>),
/// std::optional of these, and dtypes (at::ScalarType). One without outputs writes its first input
/// in place. There are no attributes and no state.
///
/// At namespace scope, once for each `Name` of a library. A call that fails throws a
/// std::runtime_error, or, where ATEN_BRIDGE_ERRORS_RETURN is defined before the header is
/// included, prints the text and returns a `Status`; either way `aten_bridge_last_error()` has it.
#define ATEN_BRIDGE_EXPORT(Name, ...) ATEN_BRIDGE_EXPORT_AS(Name, false, __VA_ARGS__)

/// ATEN_BRIDGE_EXPORT_GRAD(NameGrad, function, options...): exports the gradient kernel of a
/// function that returns its results, computed by PyTorch's autograd: it calls the function once
/// more, and differentiates what it did. `function` and the options are those of its
/// ATEN_BRIDGE_EXPORT; what they say of outputs has no meaning here.
///
/// Inputs: the inputs of `function`, then one gradient for each of its outputs, of that output's
/// dtype and shape (None: zeros). Outputs: one gradient for each input that is a tensor or may be
/// one, in their order, each tensor of an at::TensorList among them; of that input's dtype and
/// shape, zeros for integers, for bools, and where the result does not depend on the input; for
/// None a tensor of any shape, filled with zeros. Numbers have no gradient. Complex gradients
/// follow PyTorch's convention.
///
/// The inputs' memory is not written, and nothing of the graph is left after the call. The gradient
/// of a gradient is ATEN_BRIDGE_EXPORT_GRAD(NameGradGrad, aten_bridge::gradient(function), ...).
#define ATEN_BRIDGE_EXPORT_GRAD(Name, ...) ATEN_BRIDGE_EXPORT_AS(Name, true, __VA_ARGS__)

// A source may have a host of its own besides (call/host.h).
#ifndef ATEN_BRIDGE_ENTRY_BESIDE
#define ATEN_BRIDGE_ENTRY_BESIDE(Name)
#endif
#define ATEN_BRIDGE_ENTRY_OF(HOST, bit, Name) ATEN_BRIDGE_ENTRY_##HOST(Name)
#define ATEN_BRIDGE_NAME_OF(HOST, bit, argument) #HOST " "
#define ATEN_BRIDGE_ENTRY_POINTS_OF(HOST, bit, Name) ATEN_BRIDGE_ENTRY_POINTS_##HOST(Name)
#define ATEN_BRIDGE_EXPORT_AS(Name, is_gradient, ...)                                          \
  /* Bound before `Name` is declared, which may also be the name of the function. */           \
  static const auto aten_bridge_kernel_##Name =                                                \
      ::aten_bridge::detail::export_kernel<is_gradient, ATEN_BRIDGE_DEVICE, ATEN_BRIDGE_HOST>( \
          #Name, ATEN_BRIDGE_ERROR_MODE, __VA_ARGS__);                                         \
  ATEN_BRIDGE_HOSTS(ATEN_BRIDGE_ENTRY_OF, Name)                                                \
  ATEN_BRIDGE_ENTRY_BESIDE(Name)                                                               \
  ATEN_BRIDGE_ENTRY_TABLE(Name, "" ATEN_BRIDGE_HOSTS(ATEN_BRIDGE_NAME_OF, ),                   \
                          "" ATEN_BRIDGE_HOSTS(ATEN_BRIDGE_ENTRY_POINTS_OF, Name))             \
  static_assert(true, "") /* takes the semicolon */

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CORE_ONLY
#endif  // ATEN_BRIDGE_H_
