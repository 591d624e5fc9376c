// C functions as those of MindSpore's tutorial: get_torch_tensors() and output_memcpy().
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/neg.h>
#include <ms_ext.h>

#include <optional>
#include <stdexcept>
#include <vector>

namespace {

#ifdef ATEN_BRIDGE_CUDA
const c10::Device kDevice(c10::kCUDA, 0);
void finish() { cudaDeviceSynchronize(); }
#else
const c10::Device kDevice(c10::kCPU);
void finish() {}
#endif

void expect_slots(int nparam, int slots) {
  if (nparam < slots) {
    throw std::runtime_error("expected more slots");
  }
}

}  // namespace

extern "C" int NegateTensors(int nparam, void** params, int* ndims, int64_t** shapes,
                             const char** dtypes, void* /*stream*/, void* /*extra*/) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, kDevice);
  expect_slots(nparam, 2);
  at::neg_out(tensors[1], tensors[0]);
  finish();
  return 0;
}

// By a view whose values are computed when they are copied.
extern "C" int NegateSlots(int nparam, void** params, int* ndims, int64_t** shapes,
                           const char** dtypes, void* /*stream*/, void* /*extra*/) {
  const std::vector<int> inputs = {0};
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, inputs, kDevice);
  expect_slots(nparam, 2);
  output_memcpy(params[1], at::_neg_view(tensors[0].conj()));
  return 0;
}

// The rows of one and of another, in the order of the columns.
extern "C" int AddTransposed(int nparam, void** params, int* ndims, int64_t** shapes,
                             const char** dtypes, void* /*stream*/, void* /*extra*/) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, {1, 0}, kDevice);
  expect_slots(nparam, 3);
  output_memcpy(params[2], at::add(tensors[0], tensors[1]).t().contiguous().t());
  return 0;
}

extern "C" int Misuse(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                      void* /*stream*/, void* /*extra*/) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, {0, 1}, kDevice);
  expect_slots(nparam, 3);
  const at::Tensor x = tensors[0];
  switch (tensors[1].item<int64_t>()) {
    case 1:
      output_memcpy(params[2], at::Tensor());
      break;
    case 2:
      output_memcpy(params[2], x.to_sparse());
      break;
    case 3:
      get_torch_tensors(nparam, params, ndims, shapes, dtypes, {0, 100, -1}, kDevice);
      break;
    case 4:
      output_memcpy(nullptr, at::empty({2}, x.options()));
      break;
    case 5:
      output_memcpy(params[2], x.to(at::kMeta));
      break;
    case 6:
      get_torch_tensors(nparam, params, ndims, shapes, dtypes, c10::Device(at::kMeta));
      break;
    default:
      output_memcpy(nullptr, at::empty({0}, x.options()));
      output_memcpy(params[2], x);
  }
  return 0;
}

// In a library for CUDA: operands in memory of the CPU, or results that are there.
extern "C" int NegateOnTheCpu(int nparam, void** params, int* ndims, int64_t** shapes,
                              const char** dtypes, void* /*stream*/, void* /*extra*/) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, {0}, c10::kCPU);
  expect_slots(nparam, 2);
  output_memcpy(params[1], at::neg(tensors[0]));
  return 0;
}
extern "C" int CopyFromTheCpu(int nparam, void** params, int* ndims, int64_t** shapes,
                              const char** dtypes, void* /*stream*/, void* /*extra*/) {
  auto tensors = get_torch_tensors(nparam, params, ndims, shapes, dtypes, {0}, kDevice);
  expect_slots(nparam, 2);
  output_memcpy(params[1], at::neg(tensors[0]).cpu());
  return 0;
}
