// What both doors of MindSpore have in common, and tensors for who takes a call as it comes.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_CALL_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_CALL_H_

#include <aten_bridge/call/failure.h>
#include <aten_bridge/call/host.h>
#include <aten_bridge/hosts/mindspore/frame.h>
#include <aten_bridge/kernel/parameters.h>
#include <aten_bridge/tensors/views.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Locates the operands at `indices`, or all where it is null, for who takes a call as it comes.
/// What else may be wrong with them is another's business.
template <class Device>
[[gnu::cold, gnu::noinline]] void locate_operands(const CallFrame& frame, Device& device,
                                                  const std::vector<int>* indices) {
  if (!device.is_one_of_several()) {
    return;
  }
  Report report(frame.operator_name());
  const std::size_t count =
      indices == nullptr ? static_cast<std::size_t>(frame.size()) : indices->size();
  for (std::size_t i = 0; i < count; ++i) {
    const int index = indices == nullptr ? static_cast<int>(i) : (*indices)[i];
    const OperandName name{Role::kSlot, index};
    Report ignored(frame.operator_name());
    OperandDesc desc;
    if (index >= 0 && index < frame.size() && frame.read(index, name, desc, ignored)) {
      device.locate(desc, name, report);
    }
  }
  report.raise_if_failed();
}

}  // namespace aten_bridge::detail

namespace aten_bridge {

/// Views of the operands at `indices`, in that order. They are ordinary contiguous tensors over
/// the host's memory, undefined where the host passed None; what is written to them the host
/// sees. Throws one `Error` for all operands that are wrong, named "slot <index>".
inline std::vector<at::Tensor> tensors(const CallFrame& frame, c10::ArrayRef<int> indices) {
  std::vector<at::Tensor> views;
  views.reserve(indices.size());
  const c10::Device device =
      frame.cuda_device() < 0
          ? c10::Device(at::kCPU)
          : c10::Device(at::kCUDA, static_cast<c10::DeviceIndex>(frame.cuda_device()));
  Report report(frame.operator_name());
  for (const int index : indices) {
    const OperandName name{Role::kSlot, index};
    if (index < 0 || index >= frame.size()) {
      report.add(Status::kCount, {name.text(), ": expected one of the call's ",
                                  detail::count_text(frame.size(), "slot")});
      continue;
    }
    OperandDesc desc;
    if (frame.read(index, name, desc, report)) {
      if (!detail::is_aligned(desc)) {
        detail::add_alignment_fault(name, desc, report);
        continue;
      }
      views.push_back(detail::make_view<true>(desc, name, device, /*allocator=*/nullptr, report));
    }
  }
  report.raise_if_failed();
  return views;
}

/// Views of all inputs, then all outputs.
inline std::vector<at::Tensor> tensors(const CallFrame& frame) {
  std::vector<int> indices(static_cast<std::size_t>(frame.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = static_cast<int>(i);
  }
  return tensors(frame, indices);
}

}  // namespace aten_bridge

namespace aten_bridge::detail {

template <>
struct Parameter<const CallFrame&> {
  static constexpr ParameterKind kKind = ParameterKind::kFrame;
  static const CallFrame& get(const Arguments& arguments, int /*index*/) {
    return *static_cast<const CallFrame*>(arguments.frame);
  }
};

/// Makes the device current for who takes the call as it comes.
template <class Device>
void enter(CallFrame& frame, Device& device) {
  device.enter();
  if (device.device().is_cuda()) {
    frame.set_cuda_device(device.device().index());
  }
}

/// One call: the adapter of either door is this and what the door adds.
class MindSporeCall : public CallFrame, public HostCallDefaults {
 public:
  using Result = int;

  MindSporeCall(const char* operator_name, int nparam, void** params, int* ndims, int64_t** shapes,
                const char** dtypes, void* stream, void* extra)
      : CallFrame(operator_name, nparam, params, ndims, shapes, dtypes, stream, extra),
        extra_(extra) {}
  using CallFrame::workspace_count;

  HostMemory host_workspace(int index) const { return {workspace(index), workspace_bytes(index)}; }

  /// In a graph each place that calls a kernel has an `extra` of its own; in PyNative mode those of
  /// a plugin share one, and differ by their shapes (MindSpore 2.10).
  /// More parameters than operands may come, which have no sizes.
  std::uint64_t call_site(int count) const {
    auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(extra_));
    for (const int i : {0, count - 1}) {
      const bool has_sizes = i >= 0 && i < count && sizes(i) != nullptr && ndim(i) <= kMaxNdim;
      for (int d = 0; has_sizes && d < ndim(i); ++d) {
        number = 31 * number + static_cast<std::uint64_t>(sizes(i)[d]);
      }
    }
    return number;
  }

  template <class Device>
  const void* make_frame(Device& device) {
    locate_operands(*this, device, /*indices=*/nullptr);
    enter(*this, device);
    return static_cast<const CallFrame*>(this);
  }

  static int succeed() { return static_cast<int>(Status::kOk); }

  /// Hands a failure to the host.
  [[gnu::cold]] static int fail(const Failure& failure, ErrorMode mode) {
    if (mode == ErrorMode::kThrow) {
      throw std::runtime_error(failure.text);
    }
    std::fprintf(stderr, "%s\n", failure.text.c_str());
    return static_cast<int>(failure.status);
  }

 protected:
  /// What MindSpore calls things; `operands` differ between its doors.
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

/// The kernel's C function.
#define ATEN_BRIDGE_ENTRY_MINDSPORE_CALL(Name)                                                    \
  extern "C" ATEN_BRIDGE_PUBLIC int Name(int nparam, void** params, int* ndims, int64_t** shapes, \
                                         const char** dtypes, void* stream, void* extra) {        \
    return aten_bridge_kernel_##Name.call(nparam, params, ndims, shapes, dtypes, stream, extra);  \
  }

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_CALL_H_
