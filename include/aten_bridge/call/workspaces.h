// Workspaces: how much memory a kernel wants, and from whom it gets it.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_WORKSPACES_H_
#define ATEN_BRIDGE_CALL_WORKSPACES_H_

#include <aten_bridge/call/host.h>
#include <aten_bridge/interface/operands.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The bytes of workspace `index`; throws `Error` if they are not to be had.
inline std::size_t workspace_bytes(const KernelDescriptor& kernel, int index, int64_t elements,
                                   const ElementLayout& layout) {
  int64_t bytes = 0;
  if (elements < 0 || __builtin_mul_overflow(elements, static_cast<int64_t>(layout.size), &bytes) ||
      __builtin_add_overflow(bytes, static_cast<int64_t>(layout.slack), &bytes)) {
    raise(Status::kShape,
          {kernel.operator_name, ": workspace ", index,
           ": expected a size from 0 to 2^63 bytes, got ", count_text(elements, "element")});
  }
  return static_cast<std::size_t>(bytes);
}

/// What the kernel wants to have: at each call, and before the first, for the host to provide it.
inline c10::SmallVector<std::size_t, 2> measure_workspaces(const KernelBase& kernel,
                                                           const Arguments& arguments) {
  const auto count = static_cast<std::size_t>(kernel.info.workspaces);
  // With elements: g++ 12 warns where resize() could copy memory that nobody wrote.
  c10::SmallVector<int64_t, 2> elements = {0, 0};
  c10::SmallVector<ElementLayout, 2> layouts = {{}, {}};
  elements.resize(count);
  layouts.resize(count);
  kernel.measure_workspaces(arguments, elements.data(), layouts.data());
  c10::SmallVector<std::size_t, 2> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(workspace_bytes(kernel.info, static_cast<int>(i), elements[i], layouts[i]));
  }
  return bytes;
}

/// Memory for a call: what `given(index)` has, if that is large enough, and PyTorch's elsewhere.
/// A host asks for sizes once, and calls with other shapes may follow.
template <class Given>
Memories take_workspaces(const KernelBase& kernel, const Arguments& arguments,
                         c10::Allocator* allocator, const Given& given) {
  Memories workspaces;
  for (const std::size_t bytes : measure_workspaces(kernel, arguments)) {
    const HostMemory memory = given(static_cast<int>(workspaces.size()));
    workspaces.push_back({memory.data, bytes, {}});
    if (memory.bytes < bytes || memory.data == nullptr) {
      workspaces.back().owner = allocator->allocate(bytes);
      workspaces.back().data = workspaces.back().owner.get();
    }
  }
  return workspaces;
}

/// Calls the kernel's function with memory that is there during the call. Out of line: what has no
/// workspaces does not pay for them.
template <class Device, class HostCall>
[[gnu::noinline]] void invoke_with_workspaces(const KernelBase& kernel, const Device& device,
                                              const HostCall& host, Arguments& arguments) {
  const auto given = [&](int index) {
    const HostMemory memory = host.host_workspace(index);
    return memory.data != nullptr && device.reaches(memory.data) ? memory : HostMemory();
  };
  Memories workspaces = take_workspaces(kernel, arguments, Device::allocator(), given);
  arguments.workspaces = workspaces.data();
  HostCall::invoke(kernel, arguments);
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_WORKSPACES_H_
