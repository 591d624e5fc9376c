// What the two entry points of MindSpore have in common.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_CALL_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_CALL_H_

#include <aten_bridge/call/failure.h>
#include <aten_bridge/call/host.h>
#include <aten_bridge/hosts/mindspore/abi.h>
#include <aten_bridge/hosts/mindspore/frame.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// One call: the adapter of either entry point is this and what that adds.
class MindSporeCall : public CallFrame, public HostCallDefaults {
 public:
  using Result = int;

  MindSporeCall(const char* operator_name, int nparam, void** params, int* ndims, int64_t** shapes,
                const char** dtypes, void* stream, void* extra)
      : CallFrame(operator_name, nparam, params, ndims, shapes, dtypes, stream, extra),
        extra_(extra) {}
  using CallFrame::input_count;
  using CallFrame::size;
  using CallFrame::stream;

  HostMemory host_workspace(int index) const {
    return index < workspace_count() ? HostMemory{workspace(index), workspace_bytes(index)}
                                     : HostMemory();
  }

  /// In a graph each call site of a kernel has an `extra` of its own; in PyNative mode those of a
  /// plugin share one, and differ by their shapes (MindSpore 2.10). More parameters than operands
  /// may come, which have no sizes.
  std::uint64_t call_site(int count) const {
    auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(extra_));
    if (count > 0) {
      number = with_sizes(number, sizes(0), ndim(0));
      number = with_sizes(number, sizes(count - 1), ndim(count - 1));
    }
    return number;
  }

  using CallFrame::describe;
  [[gnu::always_inline]] void describe(OperandDescs operands) const {
    for (int i = 0; i < operands.size(); ++i) {
      if (!describe(i, operands[i])) {
        const OperandDesc faulty = operands[i];
        add_fault(i, operands.name(i), faulty, operands.refuse(i));
      }
    }
  }

  static int succeed() { return static_cast<int>(Status::kOk); }

  /// Hands a failure to the host.
  [[gnu::cold, gnu::noinline]] static int fail(const Failure& failure, ErrorMode mode) {
    if (mode == ErrorMode::kThrow) {
      throw std::runtime_error(failure.text);
    }
    std::fprintf(stderr, "%s\n", failure.text.c_str());
    return static_cast<int>(failure.status);
  }

 protected:
  /// What MindSpore calls things; `operands` differ between its entry points.
  static constexpr HostMessages messages(const char* operands) {
    return {"out_shape and out_dtype", "let out_shape return the shape of the result",
            "let out_dtype return the dtype of the result", operands};
  }

  void* extra() const { return extra_; }

 private:
  void* extra_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// The templates that a kernel's source only declares: `run` also has `call_sites,`.
#define ATEN_BRIDGE_INSTANTIATE_CALL(run, HostCall, Device, ...)                       \
  template int run<Device, HostCall>(const KernelBase& kernel, __VA_ARGS__ int nparam, \
                                     void** params, int* ndims, int64_t** shapes,      \
                                     const char** dtypes, void* stream, void* extra);

/// The kernel's C function, which calls `function`.
#define ATEN_BRIDGE_ENTRY_MINDSPORE_CALL(Name, function)                                          \
  extern "C" ATEN_BRIDGE_PUBLIC int Name(int nparam, void** params, int* ndims, int64_t** shapes, \
                                         const char** dtypes, void* stream, void* extra) {        \
    return function(nparam, params, ndims, shapes, dtypes, stream, extra);                        \
  }

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_CALL_H_
