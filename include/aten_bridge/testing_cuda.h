// The simulated host's side for CUDA: calls a kernel as a host on the GPU does, with operands in
// device memory, on a non-blocking stream of its own.
//
//   aten_bridge::testing::Cuda cuda;
//   aten_bridge::testing::Library library("./leaky_relu_cuda.so");
//   aten_bridge::testing::Call call = library.call("LeakyRelu");
//   call.on(cuda).input<float>({2, 2}, {0.0f, -0.1f, -0.2f, 1.0f}).output<float>({2, 2});
//   call.run().output<float>(0);   // {0.0f, -0.001f, -0.002f, 1.0f}
//
//   aten_bridge::testing::CudaGraph graph(call);   // the call, captured
//   graph.replay().output<float>(0);
//
// How a missing ordering is seen: before the call the stream is stopped, and the inputs' values are
// sent behind the stop. They arrive 2 ms after the kernel's function has returned, so that work on
// another stream reads bytes of 0xff (NaN, -1) in their place. The results are fetched by the
// stream after the call. A kernel that waits for the stream opens the stop after 0.2 s:
// Result::waited() says so. (So may a kernel's first call, in which CUDA, its libraries and the
// kernel's state start. Many streams at once share CUDA's 8 queues:
// CUDA_DEVICE_MAX_CONNECTIONS=32 keeps them apart.)
//
// Device memory has guard zones as the host's has: a write beside a buffer is a std::logic_error.
//
// Needs the CUDA runtime (link CUDA::cudart), not nvcc. Errors of CUDA's are std::runtime_error.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TESTING_CUDA_H_
#define ATEN_BRIDGE_TESTING_CUDA_H_

#include <aten_bridge/testing.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace aten_bridge::testing {
namespace detail {

inline void check_cuda(cudaError_t error, const char* call) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorName(error) + " (" +
                             cudaGetErrorString(error) + ')');
  }
}
#define ATEN_BRIDGE_TESTING_CUDA(call) ::aten_bridge::testing::detail::check_cuda(call, #call)

/// The device is current while it lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    ATEN_BRIDGE_TESTING_CUDA(cudaGetDevice(&previous_));
    ATEN_BRIDGE_TESTING_CUDA(cudaSetDevice(device));
  }
  ~CurrentDevice() { cudaSetDevice(previous_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int previous_ = 0;
};

/// Stops a stream until it is opened, or its time is over.
class Gate {
 public:
  /// What is launched from here on does not begin.
  void close(cudaStream_t stream) {
    is_open_ = false;
    is_over_ = false;
    ATEN_BRIDGE_TESTING_CUDA(cudaLaunchHostFunc(stream, &Gate::wait, this));
  }

  /// Returns whether it was still closed. Before that, work on other streams has its time.
  bool open() {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
    return !is_over_;
  }

 private:
  static void CUDART_CB wait(void* gate) {
    auto& self = *static_cast<Gate*>(gate);
    std::unique_lock<std::mutex> lock(self.mutex_);
    self.is_over_ = !self.changed_.wait_for(lock, std::chrono::milliseconds(200),
                                            [&] { return self.is_open_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  bool is_over_ = false;
};

/// A buffer's place on the device, and memory on the way there that the stream copies from and to
/// without the host: pageable memory would make it wait.
class Mirror {
 public:
  explicit Mirror(Buffer& buffer) : buffer_(&buffer) {
    ATEN_BRIDGE_TESTING_CUDA(cudaMalloc(&device_, buffer.block_size()));
    ATEN_BRIDGE_TESTING_CUDA(cudaMallocHost(&staging_, buffer.block_size()));
  }
  ~Mirror() {
    cudaFree(device_);
    cudaFreeHost(staging_);
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  Buffer* buffer() const { return buffer_; }
  void* data() const { return static_cast<unsigned char*>(device_) + Buffer::kGuard; }

  /// Fills the device's memory with 0xff.
  void poison() { ATEN_BRIDGE_TESTING_CUDA(cudaMemset(device_, 0xff, buffer_->block_size())); }

  void send(cudaStream_t stream) {
    buffer_->copy_to(staging_);
    ATEN_BRIDGE_TESTING_CUDA(
        cudaMemcpyAsync(device_, staging_, buffer_->block_size(), cudaMemcpyHostToDevice, stream));
  }
  void fetch(cudaStream_t stream) {
    ATEN_BRIDGE_TESTING_CUDA(
        cudaMemcpyAsync(staging_, device_, buffer_->block_size(), cudaMemcpyDeviceToHost, stream));
  }
  void arrive() { buffer_->copy_from(staging_); }

 private:
  Buffer* buffer_;
  void* device_ = nullptr;
  void* staging_ = nullptr;
};

class CudaRun final : public DeviceRun {
 public:
  CudaRun(int device, cudaStream_t stream) : device_(device), stream_(stream) {}

  void* place(Buffer& buffer) override {
    const CurrentDevice current(device_);
    for (const auto& mirror : mirrors_) {
      if (mirror->buffer() == &buffer) {
        return mirror->data();
      }
    }
    mirrors_.push_back(std::make_unique<Mirror>(buffer));
    return mirrors_.back()->data();
  }

  void* stream() override { return stream_; }

  bool around(const std::function<void()>& launch) override {
    std::exception_ptr failure;
    const auto attempt = [&](const auto& body) {
      try {
        body();
      } catch (...) {
        failure = failure == nullptr ? std::current_exception() : failure;
      }
    };
    {
      const CurrentDevice current(device_);
      for (const auto& mirror : mirrors_) {
        mirror->poison();
      }
      ATEN_BRIDGE_TESTING_CUDA(cudaDeviceSynchronize());
      gate_.close(stream_);
      attempt([&] {
        for (const auto& mirror : mirrors_) {
          mirror->send(stream_);
        }
      });
    }
    attempt(launch);  // with the device that is current outside
    const CurrentDevice current(device_);
    attempt([&] {
      for (const auto& mirror : mirrors_) {
        mirror->fetch(stream_);
      }
    });
    const bool waited = !gate_.open();
    ATEN_BRIDGE_TESTING_CUDA(cudaStreamSynchronize(stream_));
    for (const auto& mirror : mirrors_) {
      mirror->arrive();
    }
    if (failure != nullptr) {
      std::rethrow_exception(failure);
    }
    return waited;
  }

 private:
  int device_;
  cudaStream_t stream_;
  Gate gate_;
  std::vector<std::unique_ptr<Mirror>> mirrors_;
};

}  // namespace detail

/// A host on a GPU, with a stream that nothing else is ordered with.
class Cuda final : public Device {
 public:
  /// Makes a non-blocking stream on `device`.
  explicit Cuda(int device = 0) : device_(device), owns_stream_(true) {
    const detail::CurrentDevice current(device);
    ATEN_BRIDGE_TESTING_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }

  /// Uses `stream` of `device`: one of the host's, null, cudaStreamLegacy, cudaStreamPerThread.
  Cuda(int device, cudaStream_t stream) : device_(device), stream_(stream), owns_stream_(false) {}

  ~Cuda() override {
    if (owns_stream_) {
      cudaStreamDestroy(stream_);
    }
  }
  Cuda(const Cuda&) = delete;
  Cuda& operator=(const Cuda&) = delete;

  /// How many devices there are; 0 also without a driver.
  static int device_count() {
    int count = 0;
    const bool failed = cudaGetDeviceCount(&count) != cudaSuccess;
    cudaGetLastError();
    return failed ? 0 : count;
  }

  int device() const { return device_; }
  cudaStream_t stream() const { return stream_; }

  std::unique_ptr<DeviceRun> make_run() override {
    return std::make_unique<detail::CudaRun>(device_, stream_);
  }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
  bool owns_stream_;
};

/// A call captured as a CUDA graph. Each replay sends the inputs again, see Call::set_input. The
/// call, and the device it is `on`, must outlive the graph.
class CudaGraph {
 public:
  /// Calls the kernel in the calling thread while the stream is captured. `call` is on a `Cuda`,
  /// and not on the default stream, else this throws std::logic_error. Not to be replayed if
  /// `captured()` is not ok.
  explicit CudaGraph(Call& call) : call_(call) {
    captured_ = call.prepare();
    if (!captured_.ok()) {
      return;
    }
    launch_ = call.make_launch();
    if (launch_->device == nullptr) {
      throw std::logic_error("the call is on the CPU: say on(cuda) of it");
    }
    const auto stream = static_cast<cudaStream_t>(launch_->device->stream());
    if (stream == nullptr || stream == cudaStreamLegacy) {
      throw std::logic_error(
          "CUDA does not capture the default stream: make the call on a Cuda with another");
    }
    ATEN_BRIDGE_TESTING_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    call.call_kernel(*launch_, captured_);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (!captured_.ok()) {
      cudaGetLastError();
      if (graph != nullptr) {
        cudaGraphDestroy(graph);
      }
      return;
    }
    detail::check_cuda(ended, "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiateWithFlags(&exec_, graph, 0);
    cudaGraphDestroy(graph);
    detail::check_cuda(made, "cudaGraphInstantiateWithFlags");
  }
  ~CudaGraph() {
    if (exec_ != nullptr) {
      cudaGraphExecDestroy(exec_);
    }
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  /// How the call went while it was captured. It has no outputs.
  const Result& captured() const { return captured_; }

  Result replay() {
    if (exec_ == nullptr) {
      throw std::logic_error("nothing was captured: " + captured_.error());
    }
    Result result;
    const auto stream = static_cast<cudaStream_t>(launch_->device->stream());
    call_.work(*launch_, result, [&] { ATEN_BRIDGE_TESTING_CUDA(cudaGraphLaunch(exec_, stream)); });
    return result;
  }

 private:
  Call& call_;
  Result captured_;
  std::unique_ptr<Call::Launch> launch_;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace aten_bridge::testing

#endif  // ATEN_BRIDGE_TESTING_CUDA_H_
