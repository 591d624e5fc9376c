// Devices. A kernel is for the CPU or for CUDA, as its source was compiled; memory of the other is
// an error. For each there is a class that stands for one call on it. Both have the same members,
// which are called in this order:
//
//   T device(name, stream, records)  whether it can be used; autograd needs more than others
//   device.locate(...)               whether the kernel can use an operand's memory
//   device.fetch(...)                the same of a number, which moves to memory of the CPU
//   device.enter()                   device and host's stream become PyTorch's current ones
//   device.allocator()               for the memory of the call
//   device.finish()                  whether the body left an error behind
//
// T::around_state(name, stream, is_made) is called before a kernel's state is made, and after it.
// The destructor makes current what was current before. T::leftover() is for after a failure.
//
// This is that of the CPU.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TENSORS_DEVICE_CPU_H_
#define ATEN_BRIDGE_TENSORS_DEVICE_CPU_H_

#include <aten_bridge/core/operand_desc.h>
#include <aten_bridge/tensors/torch.h>
#include <c10/core/CPUAllocator.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <string>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// cuPointerGetAttributes of the CUDA driver, which says where memory lies.
using QueryPointer = int (*)(unsigned int count, const int* attributes, void** values,
                             std::uintptr_t pointer);

/// Null in a process that has no driver loaded, and so no memory of CUDA either.
[[gnu::cold]] inline QueryPointer find_cuda_driver() noexcept {
  void* driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  return driver == nullptr
             ? nullptr
             : reinterpret_cast<QueryPointer>(dlsym(driver, "cuPointerGetAttributes"));
}

/// Stands for a driver that has not been looked for.
inline int unknown_cuda_driver(unsigned int /*count*/, const int* /*attributes*/, void** /*values*/,
                               std::uintptr_t /*pointer*/) {
  return -1;
}
inline std::atomic<QueryPointer> cuda_driver{&unknown_cuda_driver};

/// What the library's first call finds is kept; where it finds none, calls with a stream look
/// again.
[[gnu::cold, gnu::noinline]] inline QueryPointer look_for_cuda_driver() noexcept {
  const QueryPointer found = find_cuda_driver();
  QueryPointer unknown = &unknown_cuda_driver;
  cuda_driver.compare_exchange_strong(unknown, found);
  return found;
}

/// The number of the device whose memory that is, and which alone can use it; else -1.
inline int find_cuda_device(QueryPointer query, const void* pointer) noexcept {
  constexpr int kAttributes[] = {2, 8, 9};  // memory type, managed, device
  constexpr unsigned int kDeviceMemory = 2;
  unsigned int type = 0;
  unsigned int managed = 0;  // memory of both; a bool of the driver's is 4 bytes or fewer
  int device = -1;
  void* values[] = {&type, &managed, &device};
  const int failed = query(3, kAttributes, values, reinterpret_cast<std::uintptr_t>(pointer));
  return failed == 0 && type == kDeviceMemory && managed == 0 ? device : -1;
}

/// A call on the CPU.
class CpuDevice {
 public:
  static constexpr at::DeviceType kType = at::kCPU;

  explicit CpuDevice(const char* /*operator_name*/, void* stream, bool /*records*/ = false)
      : query_(cuda_driver.load(std::memory_order_relaxed)) {
    if (query_ == &unknown_cuda_driver || (stream != nullptr && query_ == nullptr)) {
      query_ = look_for_cuda_driver();
    }
  }

  /// False, with the report, if the kernel cannot use the operand's memory.
  bool locate(const OperandDesc& desc, const OperandName& name, Report& report) const {
    return query_ == nullptr || desc.data == nullptr || desc.numel == 0 || look(desc, name, report);
  }

  bool fetch(const OperandDesc& desc, void* /*memory*/, const OperandName& name,
             Report& report) const {
    return locate(desc, name, report);
  }

  /// Whether there may be other memory than this one's.
  bool is_one_of_several() const { return query_ != nullptr; }

  void enter() const {}
  static c10::Device device() { return at::kCPU; }
  static c10::Allocator* allocator() { return c10::GetAllocator(at::kCPU); }
  static bool reaches(const void* /*memory*/) { return true; }
  static bool is_of_host(const void* /*memory*/) { return true; }
  void finish() const {}
  static void around_state(const char* /*operator_name*/, void* /*stream*/, bool /*is_made*/) {}
  static std::string leftover() { return {}; }

 private:
  [[gnu::cold]] bool look(const OperandDesc& desc, const OperandName& name, Report& report) const {
    const int device = find_cuda_device(query_, desc.data);
    if (device >= 0) {
      report.add(Status::kDevice, name,
                 {"memory of the CPU", kGot, "memory of cuda:", device, " with ", desc.text(), kDo,
                  "this kernel was built for the CPU: run the operator on the CPU, or build ",
                  "the kernel for CUDA"});
    }
    return device < 0;
  }

  QueryPointer query_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_TENSORS_DEVICE_CPU_H_
