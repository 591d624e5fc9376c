// One call of a raw kernel.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_RAW_CALL_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_RAW_CALL_H_

#include <aten_bridge/call/failure.h>
#include <aten_bridge/hosts/mindspore/raw.h>
#include <aten_bridge/tensors/scope.h>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

template <class Device, class HostCall, class... HostArgument>
typename HostCall::Result run_raw(const KernelBase& kernel, HostArgument... host_arguments) {
  const KernelDescriptor& info = kernel.info;
  try {
    check_pytorch(info.operator_name);
    HostCall host(info.operator_name, host_arguments...);
    const KernelScope scope(info.records);
    Device device(info.operator_name, host.stream(), info.records);
    locate_operands(host, device, /*indices=*/nullptr);
    enter(host, device);
    Arguments arguments;
    arguments.kernel = &info;
    arguments.frame = static_cast<const CallFrame*>(&host);
    HostCall::invoke(kernel, arguments);
    device.finish();
    return HostCall::succeed();
  } catch (...) {
    return HostCall::fail(
        record_failure(info.operator_name, nullptr, 0, Device::leftover() + HostCall::advice()),
        info.error_mode);
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_RAW_CALL_H_
