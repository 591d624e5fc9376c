// Raw kernels: a function that takes MindSpore's call as it is, and tensors over its memory.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_RAW_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_RAW_H_

#include <aten_bridge/hosts/mindspore/frame.h>
#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/kernel/parameters.h>
#include <aten_bridge/tensors/views.h>

#include <cstddef>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Locates the operands at `indices`, or all where it is null, for a raw kernel.
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
      report.add(Status::kCount, name,
                 {"one of the call's ", detail::count_text(frame.size(), "slot")});
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

/// Makes the device current for a raw kernel.
template <class Device>
void enter(CallFrame& frame, Device& device) {
  device.enter();
  if (device.device().is_cuda()) {
    frame.set_cuda_device(device.device().index());
  }
}

/// One call of a raw kernel (raw_call.h). Its operands are its own business, also after the body.
template <class Device, class HostCall, class... HostArgument>
typename HostCall::Result run_raw(const KernelBase& kernel, HostArgument... host_arguments);

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_RAW_H_
