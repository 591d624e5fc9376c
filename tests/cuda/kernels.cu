// Kernels of the tests for CUDA: what the bridge promises about device, stream and errors. Those of
// the first part do nothing but CUDA calls, and no ATen operator.
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <aten_bridge.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace {

using aten_bridge::attr;

cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

void copy(const at::Tensor& x, at::Tensor& y, cudaStream_t stream) {
  C10_CUDA_CHECK(cudaMemcpyAsync(y.mutable_data_ptr(), x.const_data_ptr(), x.nbytes(),
                                 cudaMemcpyDeviceToDevice, stream));
}

//===--- without ATen's operators ---===//

void copy(const at::Tensor& x, at::Tensor& y) { copy(x, y, current_stream()); }
ATEN_BRIDGE_EXPORT(Copy, static_cast<void (*)(const at::Tensor&, at::Tensor&)>(copy));

// A kernel as it must not be: its work is not ordered with the host's.
void copy_on_another_stream(const at::Tensor& x, at::Tensor& y) { copy(x, y, cudaStreamLegacy); }
ATEN_BRIDGE_EXPORT(CopyOnAnotherStream, copy_on_another_stream);

// Another one: it makes the host wait.
void copy_and_wait(const at::Tensor& x, at::Tensor& y) {
  copy(x, y);
  C10_CUDA_CHECK(cudaStreamSynchronize(current_stream()));
}
ATEN_BRIDGE_EXPORT(CopyAndWait, copy_and_wait);

// y: the device of x, of y, PyTorch's current one and CUDA's; whether the stream is the host's.
void describe_call(const aten_bridge::CallFrame& frame) {
  const auto views = aten_bridge::tensors(frame);
  int current = -1;
  C10_CUDA_CHECK(cudaGetDevice(&current));
  const int64_t values[] = {views[0].device().index(), views[1].device().index(),
                            c10::cuda::current_device(), current,
                            current_stream() == frame.stream() ? 1 : 0};
  C10_CUDA_CHECK(cudaMemcpyAsync(views[1].mutable_data_ptr(), values, sizeof(values),
                                 cudaMemcpyHostToDevice, current_stream()));
}
ATEN_BRIDGE_EXPORT(DescribeCall, describe_call);

// Leaves another device and stream current, and throws or not.
void change_state(const at::Tensor& x, bool throws, at::Tensor& y) {
  copy(x, y);
  c10::cuda::setCurrentCUDAStream(c10::cuda::getDefaultCUDAStream());
  C10_CUDA_CHECK(cudaSetDevice(c10::cuda::device_count() - 1));
  if (throws) {
    throw std::runtime_error("on purpose");
  }
}
ATEN_BRIDGE_EXPORT(ChangeState, change_state, attr("throws", false));

// Leaves a CUDA error behind that nobody asks for.
void leave_error(const at::Tensor& x, bool throws, at::Tensor& y) {
  copy(x, y);
  cudaSetDevice(1000);
  if (throws) {
    throw std::runtime_error("on purpose");
  }
}
ATEN_BRIDGE_EXPORT(LeaveError, leave_error, attr("throws", false));

// A CUDA call that PyTorch asks about.
void fail_loudly(const at::Tensor& x, at::Tensor& y) {
  copy(x, y);
  C10_CUDA_CHECK(cudaSetDevice(1000));
}
ATEN_BRIDGE_EXPORT(FailLoudly, fail_loudly);

// y = the numbers of the inputs behind x.
void copy_numbers(const at::Tensor& x, double real, int64_t integer, std::optional<bool> flag,
                  at::Tensor& y) {
  copy(x, y);
  const double values[] = {real, static_cast<double>(integer), flag.value_or(true) ? 1.0 : 0.0};
  C10_CUDA_CHECK(cudaMemcpyAsync(y.mutable_data_ptr(), values, sizeof(values),
                                 cudaMemcpyHostToDevice, current_stream()));
}
ATEN_BRIDGE_EXPORT(CopyNumbers, copy_numbers);

// Where the last kernel had its own memory.
std::atomic<const void*> last_temporary = nullptr;

// By way of a workspace, which is the host's memory where it knew the size.
void copy_twice(const at::Tensor& x, aten_bridge::Workspace<float> buffer, at::Tensor& y) {
  last_temporary = buffer.data();
  C10_CUDA_CHECK(cudaMemcpyAsync(buffer.data(), x.const_data_ptr(), x.nbytes(),
                                 cudaMemcpyDeviceToDevice, current_stream()));
  C10_CUDA_CHECK(cudaMemcpyAsync(y.mutable_data_ptr(), buffer.data(), x.nbytes(),
                                 cudaMemcpyDeviceToDevice, current_stream()));
}
int64_t numel(const at::Tensor& x) { return x.numel(); }
ATEN_BRIDGE_EXPORT(CopyTwice, copy_twice, aten_bridge::workspace(numel));

// By way of a temporary of PyTorch's.
void copy_by_temporary(const at::Tensor& x, at::Tensor& y) {
  const at::Tensor buffer = at::empty(x.sizes(), x.options());
  last_temporary = buffer.const_data_ptr();
  C10_CUDA_CHECK(cudaMemcpyAsync(buffer.mutable_data_ptr(), x.const_data_ptr(), x.nbytes(),
                                 cudaMemcpyDeviceToDevice, current_stream()));
  copy(buffer, y);
}
ATEN_BRIDGE_EXPORT(CopyByTemporary, copy_by_temporary);

// By way of a temporary in memory of the CPU.
void copy_by_pinned_memory(const at::Tensor& x, at::Tensor& y) {
  at::Tensor buffer = at::empty(x.sizes(), x.options().device(at::kCPU).pinned_memory(true));
  last_temporary = buffer.const_data_ptr();
  buffer.copy_(x, /*non_blocking=*/true);
  y.copy_(buffer, /*non_blocking=*/true);
}
ATEN_BRIDGE_EXPORT(CopyByPinnedMemory, copy_by_pinned_memory);

void wait_for(c10::cuda::CUDAStream of, c10::cuda::CUDAStream by) {
  cudaEvent_t event = nullptr;
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  C10_CUDA_CHECK(cudaEventRecord(event, of));
  C10_CUDA_CHECK(cudaStreamWaitEvent(by, event, 0));
  C10_CUDA_CHECK(cudaEventDestroy(event));
}

// On a stream of its own, which waits for the host's. Where the host's does not wait for it in
// turn, which is a mistake, it is slow.
void copy_by_fork(const at::Tensor& x, bool joins, at::Tensor& y) {
  const c10::cuda::CUDAStream host = c10::cuda::getCurrentCUDAStream();
  static const c10::cuda::CUDAStream side =
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, host.device_index());
  wait_for(host, side);
  {
    const c10::cuda::CUDAStreamGuard guard(side);
    if (!joins) {
      const auto slowly = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
      C10_CUDA_CHECK(cudaLaunchHostFunc(side, slowly, nullptr));
    }
    copy_by_temporary(x, y);
  }
  if (joins) {
    wait_for(side, host);
  }
}
ATEN_BRIDGE_EXPORT(CopyByFork, copy_by_fork, attr("joins", true));

// By way of another kernel, and once more.
void copy_by_another(const at::Tensor& x, at::Tensor& y) {
  void* params[] = {x.data_ptr(), y.data_ptr()};
  int ndims[] = {1, 1};
  int64_t size = x.numel();
  int64_t* shapes[] = {&size, &size};
  const char* dtypes[] = {"float32", "float32"};
  CopyByTemporary(2, params, ndims, shapes, dtypes, current_stream(), nullptr);
  copy_by_temporary(x, y);
}
ATEN_BRIDGE_EXPORT(CopyByAnother, copy_by_another);

// Asks the stream, which is stopped, whether it is ready, and leaves the answer behind.
void ask_whether_ready(const at::Tensor& x, at::Tensor& y) {
  copy(x, y);
  cudaStreamQuery(current_stream());
}
ATEN_BRIDGE_EXPORT(AskWhetherReady, ask_whether_ready);

// A kernel that records a graph.
ATEN_BRIDGE_EXPORT(CopyRecording, static_cast<void (*)(const at::Tensor&, at::Tensor&)>(copy),
                   aten_bridge::autograd());

// Writes 4 bytes more than there are.
void copy_too_much(const at::Tensor& x, at::Tensor& y) {
  C10_CUDA_CHECK(cudaMemsetAsync(y.mutable_data_ptr(), 0, x.nbytes() + 4, current_stream()));
}
ATEN_BRIDGE_EXPORT(CopyTooMuch, copy_too_much);

//===--- kernels of their own and ATen's operators ---===//

__global__ void add_one(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) {
    y[i] = x[i] + 1;
  }
}

void launch_add_one(const at::Tensor& x, int64_t threads, at::Tensor& y) {
  const auto blocks = static_cast<unsigned int>((x.numel() + threads - 1) / threads);
  add_one<<<blocks, static_cast<unsigned int>(threads), 0, current_stream()>>>(
      x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), x.numel());
}
// More than 1024 threads are a launch that fails.
ATEN_BRIDGE_EXPORT(AddOne, launch_add_one, attr("threads", 256));

// Temporaries of PyTorch's allocator: a chain of `steps` operators, each with a new tensor.
at::Tensor chain(const at::Tensor& x, int64_t steps) {
  at::Tensor y = x;
  for (int64_t i = 0; i < steps; ++i) {
    y = at::add(at::mul(y, 2), -1);
  }
  return y;
}
ATEN_BRIDGE_EXPORT(Chain, chain, attr("steps", 8));

// Reads a value back to the host.
at::Tensor scale_by_first(const at::Tensor& x) { return at::mul(x, x.flatten()[0].item<double>()); }
ATEN_BRIDGE_EXPORT(ScaleByFirst, scale_by_first);

at::Tensor to_the_cpu(const at::Tensor& x) { return x.cpu(); }
ATEN_BRIDGE_EXPORT(ToTheCpu, to_the_cpu);

}  // namespace

extern "C" ATEN_BRIDGE_PUBLIC const void* temporary() { return last_temporary; }

// Whether PyTorch's current stream is the default one of device 0, and the device too.
extern "C" ATEN_BRIDGE_PUBLIC bool state_is_default() {
  return c10::cuda::current_device() == 0 &&
         c10::cuda::getCurrentCUDAStream() == c10::cuda::getDefaultCUDAStream();
}
