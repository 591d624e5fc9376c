// MindSpore's ops.Custom: `extra` has attributes; how many of the operands are inputs is not told.
// Its hooks are asked before the first call, and for shapes and dtypes.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_CUSTOM_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_CUSTOM_H_

#include <aten_bridge/call/failure.h>
#include <aten_bridge/call/result_form.h>
#include <aten_bridge/hosts/mindspore/abi.h>
#include <aten_bridge/hosts/mindspore/call.h>
#include <aten_bridge/hosts/mindspore/raw.h>
#include <aten_bridge/kernel/kernel.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

class MindSporeCustom : public MindSporeCall {
 public:
  static constexpr HostMessages kMessages =
      messages("the arguments of the call, out_shape and out_dtype with the kernel");

  template <class K>
  struct Requirements {
    static_assert(K::kTraits.outputs > 0 || K::kTraits.lists_outputs || K::kTraits.is_raw,
                  "aten_bridge: a kernel has at least one output: an at::Tensor& parameter, which "
                  "is not const, or a result; a function that is called for its effect alone has "
                  "aten_bridge::side_effect().");
    static_assert(reads_numbers_only(K::kBindings),
                  "aten_bridge: only bool, int64_t, double, at::Scalar and std::optional of these "
                  "are read from an input; a parameter of another type takes an attribute: add "
                  "aten_bridge::attr(\"name\") for it.");
  };

  using MindSporeCall::MindSporeCall;

  /// MindSpore 2.10 has an `extra` for each operator and its inputs' shapes, in both modes.
  std::uint64_t call_site(int count) const {
    return extra() == nullptr
               ? MindSporeCall::call_site(count)
               : static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(extra()));
  }

  MindSporeAttributes attributes() const { return MindSporeAttributes(extra()); }

  /// Null where the host has called no Init (hosts before about 1.9), or Init met an error.
  /// no_sanitize: the dynamic type of `extra` is a class of the host's, unknown here.
  __attribute__((no_sanitize("vptr"))) Instance* instance() const {
    return extra() == nullptr
               ? nullptr
               : static_cast<Instance*>(static_cast<AotExtra*>(extra())->kernel_data);
  }
};

/// What a kernel for other hosts alone has to be.
class WithoutMindSpore : public MindSporeCustom {
 public:
  template <class K>
  struct Requirements : MindSporeCustom::Requirements<K> {
    static_assert(!K::kTraits.is_raw,
                  "aten_bridge: a kernel over a CallFrame is for MindSpore alone: add MINDSPORE to "
                  "HOSTS.");
  };
};

/// How the inputs of a call lie in memory: strides for each, null where it is row-major.
struct InputStrides {
  const int64_t* const* strides = nullptr;
  int count = 0;
};

/// Those of this thread's next call of a kernel with strided().
inline thread_local InputStrides next_strides;

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// Tells how the inputs of this thread's next call of a kernel with strided() lie in memory, behind
/// their data pointers: for each of the first `count` operands its strides, of 0 or more elements,
/// or null. Valid until the call ends. Libraries with such a kernel for MindSpore have this
/// function.
extern "C" __attribute__((visibility("protected"))) inline void aten_bridge_set_strides(
    const int64_t* const* strides, int count) {
  aten_bridge::detail::next_strides = {strides, count};
}

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// A call of a kernel with strided(), by a host that may have told strides. ops.Custom tells none:
/// it makes inputs row-major.
class MindSporeStrided : public MindSporeCustom {
 public:
  static constexpr bool kStridesInputs = true;

  MindSporeStrided(const char* operator_name, int nparam, void** params, int* ndims,
                   int64_t** shapes, const char** dtypes, void* stream, void* extra)
      : MindSporeCustom(operator_name, nparam, params, ndims, shapes, dtypes, stream, extra),
        inputs_(std::exchange(next_strides, {})) {}

  void describe(OperandDescs operands) const {
    MindSporeCustom::describe(operands);
    for (int i = 0; i < std::min(inputs_.count, operands.size()); ++i) {
      operands[i].strides = inputs_.strides[i];
    }
  }

 private:
  InputStrides inputs_;
};

/// A call of ops.Custom. Where the sizes of the results depend on values, it says in which form it
/// wants them.
template <const auto& kExported>
[[gnu::always_inline]] inline int call_custom(int nparam, void** params, int* ndims,
                                              int64_t** shapes, const char** dtypes, void* stream,
                                              void* extra) {
  using HostCall = std::conditional_t<kExported.is_strided(), MindSporeStrided, MindSporeCustom>;
  if constexpr (kExported.is_strided()) {
    // An inline function is emitted only where something refers to it.
    asm volatile("" : : "r"(&aten_bridge_set_strides));
  }
  if constexpr (kExported.is_data_dependent()) {
    const KernelDescriptor& info = kExported.kernel.info;
    ResultForm form = ResultForm::kValues;
    try {
      form = result_form(MindSporeAttributes(extra));
    } catch (...) {
      return MindSporeCustom::fail(record_failure(info.operator_name, nullptr, 0), info.error_mode);
    }
    return kExported.template call_form<HostCall>(in_form<kExported>(form), nparam, params, ndims,
                                                  shapes, dtypes, stream, extra);
  } else {
    return kExported.template call<HostCall>(nparam, params, ndims, shapes, dtypes, stream, extra);
  }
}

/// An error leaves a hook as a std::runtime_error whatever the kernel's `ErrorMode`: there is no
/// code to return, and hosts with infer hooks catch.
ATEN_BRIDGE_INLINE std::vector<std::vector<int64_t>> infer_sizes(const KernelBase& kernel,
                                                                 const int* ndims, int64_t** shapes,
                                                                 void* extra);
ATEN_BRIDGE_INLINE std::vector<int> infer_types(const KernelBase& kernel,
                                                const std::vector<int>& types, void* extra);

/// Prepares what the host keeps for the kernel: its attributes, and how much memory its workspaces
/// take. Leaves errors alone, since the host would drop their text: the first call meets them
/// again. Keeps no shape, since one Init may serve calls of several, and sees -1 for a size and -2
/// for a rank that are not known yet.
ATEN_BRIDGE_INLINE int init(const KernelBase& kernel, const int* ndims, int64_t** shapes,
                            const char** dtypes, void* extra) noexcept;

/// What a hook of a kernel returns: MindSpore 2.10 has another type for one output than for
/// several.
template <bool kSeveral, class T>
auto as_returned(std::vector<T> outputs) {
  if constexpr (kSeveral) {
    return outputs;
  } else {
    T output(std::move(outputs.front()));
    return output;
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

// clang warns of C functions that return C++ classes, as the infer hooks do.
#ifdef __clang__
#define ATEN_BRIDGE_RETURNS_CLASSES(...)                                                           \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wreturn-type-c-linkage\"") \
      __VA_ARGS__ _Pragma("clang diagnostic pop")
#else
#define ATEN_BRIDGE_RETURNS_CLASSES(...) __VA_ARGS__
#endif

/// What MindSpore's hooks of an exported kernel return.
#define ATEN_BRIDGE_AS_RETURNED(Name) \
  ::aten_bridge::detail::as_returned< \
      decltype(aten_bridge_kernel_##Name.kernel)::kTraits.has_several_outputs()>

/// The kernel's C function, and MindSpore's hooks.
#define ATEN_BRIDGE_ENTRY_MINDSPORE(Name)                                                         \
  ATEN_BRIDGE_ENTRY_MINDSPORE_CALL(Name,                                                          \
                                   ::aten_bridge::detail::call_custom<aten_bridge_kernel_##Name>) \
  extern "C" ATEN_BRIDGE_PUBLIC int Name##Init(int* ndims, int64_t** shapes, const char** dtypes, \
                                               void* extra) {                                     \
    return ::aten_bridge::detail::init(aten_bridge_kernel_##Name, ndims, shapes, dtypes, extra);  \
  }                                                                                               \
  ATEN_BRIDGE_RETURNS_CLASSES(                                                                    \
      extern "C" ATEN_BRIDGE_PUBLIC auto Name##InferShape(int* ndims, int64_t** shapes,           \
                                                          void* extra) {                          \
        return ATEN_BRIDGE_AS_RETURNED(Name)(                                                     \
            ::aten_bridge::detail::infer_sizes(aten_bridge_kernel_##Name, ndims, shapes, extra)); \
      } extern "C" ATEN_BRIDGE_PUBLIC auto Name##InferType(std::vector<int> types, void* extra) { \
        return ATEN_BRIDGE_AS_RETURNED(Name)(                                                     \
            ::aten_bridge::detail::infer_types(aten_bridge_kernel_##Name, types, extra));         \
      })
#define ATEN_BRIDGE_INSTANTIATE_MINDSPORE(Device)                                               \
  ATEN_BRIDGE_INSTANTIATE_CALL(run, MindSporeCustom, Device, CallSiteCache& (*call_sites)(), )  \
  ATEN_BRIDGE_INSTANTIATE_CALL(run, MindSporeStrided, Device, CallSiteCache& (*call_sites)(), ) \
  ATEN_BRIDGE_INSTANTIATE_CALL(run_raw, MindSporeCustom, Device, )
#define ATEN_BRIDGE_ENTRY_POINTS_MINDSPORE(Name) \
  "" #Name " " #Name "Init " #Name "InferShape " #Name "InferType "

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_CUSTOM_H_
