// A second source file of the same library, which brings in torch/extension.h by ms_ext.h alone.
#include "ms_ext.h"

// Keeps its first input for ever and adds it to every later one.
extern "C" int AddFirst(int nparam, void** params, int* ndims, int64_t** shapes,
                        const char** dtypes, void* stream, void* extra) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCPU);
  static at::Tensor first = tensors[0];
  torch::add_out(tensors[1], tensors[0], first);
  return 0;
}

// What output_memcpy makes of a lazy conjugate.
extern "C" int Conjugate(int nparam, void** params, int* ndims, int64_t** shapes,
                         const char** dtypes, void* stream, void* extra) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCPU);
  output_memcpy(params[1], tensors[0].conj());
  return 0;
}

// What output_memcpy refuses.
extern "C" int CopySparse(int nparam, void** params, int* ndims, int64_t** shapes,
                          const char** dtypes, void* stream, void* extra) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCPU);
  output_memcpy(params[1], tensors[0].to_sparse());
  return 0;
}
extern "C" int CopyUndefined(int nparam, void** params, int* ndims, int64_t** shapes,
                             const char** dtypes, void* stream, void* extra) {
  output_memcpy(params[1], at::Tensor());
  return 0;
}
extern "C" int CopyToNull(int nparam, void** params, int* ndims, int64_t** shapes,
                          const char** dtypes, void* stream, void* extra) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCPU);
  output_memcpy(nullptr, tensors[0]);
  return 0;
}
extern "C" int AskForCuda(int nparam, void** params, int* ndims, int64_t** shapes,
                          const char** dtypes, void* stream, void* extra) {
  get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCUDA);
  return 0;
}
