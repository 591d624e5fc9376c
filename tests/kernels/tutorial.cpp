// Source in the manner of MindSpore's tutorial, as its users have it: C functions with the host's
// seven parameters, ms_ext.h after torch/extension.h, and no word of the bridge.
#include <string.h>
#include <torch/extension.h>

#include "ms_ext.h"

extern "C" int LeakyRelu(int nparam, void** params, int* ndims, int64_t** shapes,
                         const char** dtypes, void* stream, void* extra) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCPU);
  auto x = tensors[0];
  auto y = tensors[1];
  torch::leaky_relu_out(y, x);
  return 0;
}

// Slots by index, and a result that is not contiguous.
extern "C" int Transpose(int nparam, void** params, int* ndims, int64_t** shapes,
                         const char** dtypes, void* stream, void* extra) {
  std::vector<int> vecp;
  vecp.push_back(0);
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, vecp, c10::kCPU);
  output_memcpy(params[1], tensors[0].t());
  return 0;
}

// Autograd on a clone: the gradient of sum(x * x).
extern "C" int SquareGrad(int nparam, void** params, int* ndims, int64_t** shapes,
                          const char** dtypes, void* stream, void* extra) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCPU);
  auto x = tensors[0].clone().requires_grad_();
  (x * x).sum().backward();
  output_memcpy(params[1], x.grad());
  return 0;
}

// Writes to its input.
extern "C" int NegateInPlace(int nparam, void** params, int* ndims, int64_t** shapes,
                             const char** dtypes, void* stream, void* extra) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::kCPU);
  tensors[0].neg_();
  tensors[1].copy_(tensors[0]);
  return 0;
}

// A tutorial's source is often a Python module too, which would need libtorch_python.
PYBIND11_MODULE(test_tutorial, module) {
  module.def("negated", [](const torch::Tensor& x) { return -x; });
}
