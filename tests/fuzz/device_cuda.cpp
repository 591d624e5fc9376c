// Kernels for CUDA, on the fake runtime (tests/cuda), whose memory the CPU can read.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "device.h"

namespace fuzz::device {
namespace {

void* pages_of_the_device(std::size_t bytes) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes + Memory::kPage) != cudaSuccess) {
    return nullptr;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return reinterpret_cast<void*>((address + Memory::kPage - 1) / Memory::kPage * Memory::kPage);
}

}  // namespace

Memory& memory() {
  static Memory memory(&pages_of_the_device);
  return memory;
}

Memory* other_memory() {
  static Memory memory;
  return &memory;
}

bool takes_any_address() { return false; }

bool has_sparse_tensors() { return false; }
void* choose_stream(Choices& choices) {
  static cudaStream_t stream = nullptr;
  if (stream == nullptr && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != 0) {
    fail("no stream for the fuzzer");
  }
  return choices.one_in(4) ? nullptr : stream;
}

bool begin_capture(void* stream) {
  const bool begins = cudaStreamBeginCapture(static_cast<cudaStream_t>(stream),
                                             cudaStreamCaptureModeThreadLocal) == cudaSuccess;
  cudaGetLastError();
  return begins;
}

bool end_capture(void* stream) {
  cudaGraph_t graph = nullptr;
  const auto of = static_cast<cudaStream_t>(stream);
  const bool has_graph = cudaStreamEndCapture(of, &graph) == cudaSuccess;
  cudaGetLastError();
  if (has_graph) {
    cudaGraphExec_t exec = nullptr;
    cudaGraphInstantiateWithFlags(&exec, graph, 0);
    cudaGraphLaunch(exec, of);
    wait();
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
  return has_graph;
}

void wait() {
  if (cudaDeviceSynchronize() != cudaSuccess) {
    fail("the device cannot be waited for");
  }
}

}  // namespace fuzz::device
