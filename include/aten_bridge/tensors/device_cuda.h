// CUDA: the host's stream becomes PyTorch's, captures, errors. As device_cpu.h says.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TENSORS_DEVICE_CUDA_H_
#define ATEN_BRIDGE_TENSORS_DEVICE_CUDA_H_

#include <ATen/ops/empty.h>
#include <aten_bridge/core/operand_desc.h>
#include <aten_bridge/tensors/torch.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
#include <ATen/core/CachingHostAllocator.h>
#endif

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// "cudaErrorInvalidValue (invalid argument)".
[[gnu::cold]] inline std::string cuda_error_text(cudaError_t error) {
  return join({cudaGetErrorName(error), " (", cudaGetErrorString(error), ")"});
}

[[gnu::cold]] inline std::string find_cuda_fault() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) {
    return {};
  }
  return join(
      {"expected a CUDA device, got ", error == cudaSuccess ? "none" : cuda_error_text(error),
       "; this kernel was built for CUDA: run the program where there is a GPU, or build the "
       "kernel for the CPU"});
}

/// Why CUDA cannot be used here; empty if it can.
inline const std::string& cuda_fault() {
  static const std::string fault = find_cuda_fault();
  return fault;
}

using CaptureId = unsigned long long;  // NOLINT(google-runtime-int): CUDA's type

/// The number of the capture that the stream is part of.
inline std::optional<CaptureId> find_capture(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CaptureId capture = 0;
  if (cudaStreamGetCaptureInfo(stream, &status, &capture) != cudaSuccess) {
    cudaGetLastError();
    return std::nullopt;
  }
  return status == cudaStreamCaptureStatusActive ? std::optional(capture) : std::nullopt;
}

/// While a stream is captured, what bodies allocate comes from memory that nobody gets afterwards,
/// since each replay of the graph writes to it: one pool of this library for all streams of a
/// capture on a device, and for all threads that call kernels then. Does nothing with PyTorch
/// before 2.4; memory of the CPU that is pinned is among it from 2.11 on.
class CapturePool {
 public:
  CapturePool(int device, CaptureId capture) : device_(device), capture_(capture) {
    const std::lock_guard<std::mutex> lock(mutex());
    if (users()[{device_, capture_}] == 0) {
      begin();
    }
    ++users()[{device_, capture_}];
  }

  ~CapturePool() {
    const std::lock_guard<std::mutex> lock(mutex());
    if (--users()[{device_, capture_}] == 0) {
      users().erase({device_, capture_});
      end();
    }
  }

  CapturePool(const CapturePool&) = delete;
  CapturePool& operator=(const CapturePool&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  /// Calls that are under way, by device and capture.
  static std::map<std::pair<int, CaptureId>, int>& users() {
    static std::map<std::pair<int, CaptureId>, int> users;
    return users;
  }

  /// Nobody else's: PyTorch's own have a 0 somewhere, those of other libraries another address.
  /// PyTorch (2.11) hashes the first number alone, and its tables double with each id that has the
  /// same one, so the capture is in it too.
  std::pair<CaptureId, CaptureId> id() const {
    constexpr CaptureId kSpread = 0x9e3779b97f4a7c15;
    return {reinterpret_cast<std::uintptr_t>(&users()) + static_cast<CaptureId>(device_) +
                kSpread * capture_,
            capture_};
  }

  void begin() const {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 4
    c10::cuda::CUDACachingAllocator::beginAllocateToPool(
        static_cast<c10::DeviceIndex>(device_), id(),
        [capture = capture_](cudaStream_t stream) { return find_capture(stream) == capture; });
#endif
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
    try {
      at::getHostAllocator(at::kCUDA)->begin_allocate_to_pool(
          id(), [capture = capture_](c10::Stream stream) {
            return find_capture(c10::cuda::CUDAStream(stream)) == capture;
          });
    } catch (...) {
      end_on_device();
      throw;
    }
#endif
  }

  void end() const noexcept {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
    try {
      at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(id());
    } catch (const std::exception&) {  // the allocator has no pools
    }
#endif
    end_on_device();
  }

  void end_on_device() const noexcept {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 4
    try {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(static_cast<c10::DeviceIndex>(device_),
                                                         id());
    } catch (const std::exception&) {  // likewise
    }
#endif
  }

  int device_;
  CaptureId capture_;
};

/// A call on CUDA. The host's stream is the current one during the body, so that what the body
/// launches runs after what the host has launched and before what it launches next, without waits.
/// (It may be a non-blocking one, which the default stream does not wait for.)
class CudaDevice {
 public:
  static constexpr at::DeviceType kType = at::kCUDA;

  /// Throws `Error` if there is no CUDA device, or if an error is pending from before the call: it
  /// would be taken for one of this kernel.
  explicit CudaDevice(const char* operator_name, void* stream, bool records = false)
      : operator_name_(operator_name), stream_(static_cast<cudaStream_t>(stream)) {
    if (!cuda_fault().empty()) {
      raise(Status::kDevice, {operator_name, ": ", cuda_fault()});
    }
    refuse_earlier(take_error());
    if (records && stream_ == cudaStreamPerThread) {
      raise(Status::kCuda, {operator_name,
                            ": expected a stream that is the same in all threads, got "
                            "cudaStreamPerThread; PyTorch's autograd works in threads of its own"});
    }
  }

  ~CudaDevice() {
    pool_.reset();
    scope_.reset();
    try {
      // The guard leaves another device current where this one has no context yet.
      if (previous_ >= 0 && c10::cuda::SetDevice(static_cast<c10::DeviceIndex>(previous_)) != 0) {
        cudaGetLastError();
      }
    } catch (const std::exception&) {  // it throws where CUDA cannot say which one is current
      cudaGetLastError();
    }
  }

  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  bool is_one_of_several() const { return true; }

  bool locate(const OperandDesc& desc, const OperandName& name, Report& report) {
    if (desc.data == nullptr || desc.numel == 0) {
      return true;
    }
    const int found = find_device(desc.data);
    if (found == kHostMemory) {
      report.add(Status::kDevice, name,
                 {"memory of a CUDA device", kGot, "memory of the CPU with ", desc.text(), kDo,
                  "this kernel was built for CUDA: run the operator on the GPU, or build the ",
                  "kernel for the CPU"});
      return false;
    }
    if (found == kManagedMemory || found == device_) {
      return true;
    }
    if (device_ >= 0) {
      report.add(Status::kDevice, name,
                 {"memory of cuda:", device_, " as ", first_.text(), kGot, "memory of cuda:", found,
                  " with ", desc.text()});
      return false;
    }
    device_ = found;
    first_ = name;
    return true;
  }

  /// Waits for the stream, unless the host has the number in memory of the CPU.
  bool fetch(OperandDesc& desc, void* memory, const OperandName& name, Report& report) const {
    if (desc.data == nullptr || desc.numel != 1) {
      return true;  // the fault is another
    }
    const int found = find_device(desc.data);
    const std::size_t bytes = dtype_itemsize(desc.dtype);
    if (found == kHostMemory) {
      std::memcpy(memory, desc.data, bytes);
    } else if (is_captured(stream_)) {
      report.add(Status::kCuda, name,
                 {"a number that can be read while the CUDA stream is captured", kGot,
                  "one in memory of the GPU, which may be written when the graph is replayed only",
                  kDo, "make it an attribute"});
      return false;
    } else {
      c10::cuda::OptionalCUDAGuard guard;
      if (found != kManagedMemory) {
        guard.set_device(to_device(found));
      }
      // Nothing on the stream is of this call yet.
      refuse_earlier(cudaMemcpyAsync(memory, desc.data, bytes, cudaMemcpyDefault, stream_));
      refuse_earlier(cudaStreamSynchronize(stream_));
    }
    desc.data = memory;
    return true;
  }

  void enter() {
    int current = -1;
    if (cudaGetDevice(&current) != cudaSuccess) {
      refuse_earlier(cudaGetLastError());
    }
    previous_ = current;
    device_ = device_ < 0 ? current : device_;  // nothing says which: the current one
    // Starts CUDA in PyTorch, which no other function of all its versions does.
    static const bool started = at::empty({0}, at::TensorOptions(to_device(device_))).defined();
    (void)started;
    const auto index = static_cast<c10::DeviceIndex>(device_);
    scope_.emplace(stream_ == nullptr || stream_ == cudaStreamLegacy
                       ? c10::cuda::getDefaultCUDAStream(index)
                       : c10::cuda::getStreamFromExternal(stream_, index));
    if (stream_ != nullptr && stream_ != cudaStreamLegacy) {
      if (const std::optional<CaptureId> capture = find_capture(stream_)) {
        pool_ = std::make_unique<CapturePool>(device_, *capture);
      }
    }
  }

  c10::Device device() const { return to_device(device_); }
  static c10::Allocator* allocator() { return c10::cuda::CUDACachingAllocator::get(); }
  bool reaches(const void* memory) const { return find_device(memory) == device_; }

  /// Whether it is memory of the CPU, and of nothing else.
  static bool is_of_host(const void* memory) { return find_device(memory) == kHostMemory; }

  void finish() const {
    const cudaError_t error = take_error();
    if (error != cudaSuccess) {
      raise(Status::kCuda,
            {operator_name_,
             ": a launch, or another CUDA call, of this kernel failed: ", cuda_error_text(error)});
    }
  }

  /// Throws `Error` while the stream is captured: the state would be made when the graph is
  /// replayed. Waits for a state that is made, which calls on other streams may use.
  [[gnu::cold]] static void around_state(const char* operator_name, void* host_stream,
                                         bool is_made) {
    const auto stream = static_cast<cudaStream_t>(host_stream);
    if (is_made) {
      cudaStreamSynchronize(stream);  // finish() asks how it went
    } else if (is_captured(stream)) {
      raise(Status::kCuda,
            {operator_name, ": expected a first call of this operator while the ",
             "CUDA stream is not captured, since its state is made in it; call it once ",
             "before the capture"});
    }
  }

  /// Until PyTorch's current stream has done its work.
  static void wait(c10::Device device) {
    c10::cuda::getCurrentCUDAStream(device.index()).synchronize();
  }

  /// What CUDA reports beside the failure of a call, so that the next call does not meet it.
  [[gnu::cold]] static std::string leftover() {
    const cudaError_t error = cuda_fault().empty() ? take_error() : cudaSuccess;
    return error == cudaSuccess ? std::string() : "; CUDA reports " + cuda_error_text(error);
  }

 private:
  static constexpr int kHostMemory = -1;
  static constexpr int kManagedMemory = -2;  // for the CPU and all devices

  static c10::Device to_device(int index) {
    return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
  }

  /// The number of the device whose memory that is, or one of the constants.
  static int find_device(const void* memory) {
    cudaPointerAttributes attributes = {};
    if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
      cudaGetLastError();  // CUDA before 11: memory that it does not know
      return kHostMemory;
    }
    return attributes.type == cudaMemoryTypeDevice    ? attributes.device
           : attributes.type == cudaMemoryTypeManaged ? kManagedMemory
                                                      : kHostMemory;
  }

  static bool is_captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(stream, &status);
    cudaGetLastError();  // the default stream's, which waits for a captured one
    return error != cudaSuccess || status != cudaStreamCaptureStatusNone;
  }

  /// Returns and clears the last error of this thread. "Not ready", the answer to whether an event
  /// is over, is recorded as one too, and is not reported.
  static cudaError_t take_error() {
    const cudaError_t error = cudaGetLastError();
    return error == cudaErrorNotReady ? cudaSuccess : error;
  }

  void refuse_earlier(cudaError_t error) const {
    if (error != cudaSuccess) {
      cudaGetLastError();
      raise(Status::kCuda,
            {operator_name_, ": not run: CUDA reports an error of an earlier operator or launch, ",
             cuda_error_text(error), "; CUDA_LAUNCH_BLOCKING=1 shows which"});
    }
  }

  const char* operator_name_;
  cudaStream_t stream_;
  int device_ = -1;
  int previous_ = -1;
  OperandName first_;  // the first operand on the device
  std::unique_ptr<CapturePool> pool_;
  std::optional<c10::cuda::CUDAStreamGuard> scope_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_TENSORS_DEVICE_CUDA_H_
