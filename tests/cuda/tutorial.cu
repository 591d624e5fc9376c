// leaky_relu.cu of MindSpore's tutorial: a C function that waits for the host's stream. It does not
// wait for its own work, which a host with a non-blocking stream relies on; the second one does.
#include <string.h>
#include <torch/extension.h>

#include "ms_ext.h"

extern "C" int LeakyRelu(int nparam, void** params, int* ndims, int64_t** shapes,
                         const char** dtypes, void* stream, void* extra) {
  cudaStream_t custream = static_cast<cudaStream_t>(stream);
  cudaStreamSynchronize(custream);
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCUDA);
  auto x = tensors[0];
  auto y = tensors[1];
  torch::leaky_relu_out(y, x);
  return 0;
}

extern "C" int Transpose(int nparam, void** params, int* ndims, int64_t** shapes,
                         const char** dtypes, void* stream, void* extra) {
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
  std::vector<int> slots = {0};
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, slots, c10::kCUDA);
  output_memcpy(params[1], tensors[0].t());
  return 0;
}

// One for the CPU beside them: each call says where its operands are.
extern "C" int TransposeOnCpu(int nparam, void** params, int* ndims, int64_t** shapes,
                              const char** dtypes, void* stream, void* extra) {
  std::vector<int> slots = {0};
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, slots, c10::kCPU);
  output_memcpy(params[1], tensors[0].t());
  return 0;
}

extern "C" int CopyFromCpu(int nparam, void** params, int* ndims, int64_t** shapes,
                           const char** dtypes, void* stream, void* extra) {
  output_memcpy(params[1], torch::zeros({3}));
  return 0;
}
