// The same cell for the GPU, as in the tutorial: all that follows the matrix product is one CUDA
// kernel, and so is all that comes before it in the gradient.
#include <ATen/Dispatch.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <aten_bridge.h>

#include <tuple>

namespace {

using at::Tensor;
using aten_bridge::input;

/// An element's three gates, and the derivatives of their functions.
template <class T>
struct Gates {
  T input, output, candidate, of_candidate;

  /// `before`: a row of the gates before their functions, `state` of each.
  __device__ Gates(const T* before, int64_t state, int64_t column)
      : input(sigmoid(before[column])), output(sigmoid(before[state + column])) {
    const T x = before[2 * state + column];
    candidate = x > 0 ? x : expm1(x);
    of_candidate = x > 0 ? T(1) : exp(x);
  }
  static __device__ T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
};

template <class T>
__global__ void to_results(const T* before, const T* old_cell, T* new_h, T* new_cell, int64_t state,
                           int64_t elements) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < elements) {
    const Gates<T> gates(before + i / state * 3 * state, state, i % state);
    new_cell[i] = old_cell[i] + gates.candidate * gates.input;
    new_h[i] = tanh(new_cell[i]) * gates.output;
  }
}

template <class T>
__global__ void to_gradients(const T* before, const T* old_cell, const T* grad_h,
                             const T* grad_cell, T* of_gates, T* of_cell, int64_t state,
                             int64_t elements) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < elements) {
    const int64_t row = i / state * 3 * state;
    const int64_t column = i % state;
    const Gates<T> gates(before + row, state, column);
    const T t = tanh(old_cell[i] + gates.candidate * gates.input);
    of_cell[i] = gates.output * (1 - t * t) * grad_h[i] + grad_cell[i];
    of_gates[row + column] = gates.candidate * of_cell[i] * gates.input * (1 - gates.input);
    of_gates[row + state + column] = t * grad_h[i] * gates.output * (1 - gates.output);
    of_gates[row + 2 * state + column] = gates.input * of_cell[i] * gates.of_candidate;
  }
}

/// Calls a CUDA kernel with a thread for each element, on the host's stream.
template <class... Parameter, class... Argument>
void launch(void (*kernel)(Parameter...), int64_t elements, Argument... arguments) {
  if (elements > 0) {
    kernel<<<(elements + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(arguments...,
                                                                                  elements);
  }
}

std::tuple<Tensor, Tensor> lltm(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                const Tensor& old_h, const Tensor& old_cell) {
  const Tensor before = at::addmm(bias, at::cat({old_h, input}, 1), weights.t());
  const Tensor new_h = at::empty_like(old_h);
  const Tensor new_cell = at::empty_like(old_cell);
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "lltm", [&] {
    launch(to_results<scalar_t>, old_h.numel(), before.const_data_ptr<scalar_t>(),
           old_cell.const_data_ptr<scalar_t>(), new_h.mutable_data_ptr<scalar_t>(),
           new_cell.mutable_data_ptr<scalar_t>(), old_h.size(1));
  });
  return {new_h, new_cell};
}
ATEN_BRIDGE_EXPORT(Lltm, lltm, input("input").rank(2), input("weights").sizes("3*state", "all"),
                   input("bias").sizes("3*state"), input("old_h").sizes("batch", "state"),
                   input("old_cell").sizes("batch", "state"),
                   aten_bridge::meta([](const Tensor&, const Tensor&, const Tensor&,
                                        const Tensor& old_h, const Tensor& old_cell) {
                     return std::tuple<Tensor, Tensor>(at::empty_like(old_h),
                                                       at::empty_like(old_cell));
                   }));

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> lltm_grad(
    const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
    const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell) {
  const Tensor x = at::cat({old_h, input}, 1);
  const Tensor before = at::addmm(bias, x, weights.t());
  const Tensor of_gates = at::empty_like(before);
  const Tensor of_cell = at::empty_like(old_cell);
  const int64_t state = old_h.size(1);
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "lltm_grad", [&] {
    launch(to_gradients<scalar_t>, old_h.numel(), before.const_data_ptr<scalar_t>(),
           old_cell.const_data_ptr<scalar_t>(), grad_h.const_data_ptr<scalar_t>(),
           grad_cell.const_data_ptr<scalar_t>(), of_gates.mutable_data_ptr<scalar_t>(),
           of_cell.mutable_data_ptr<scalar_t>(), state);
  });
  const Tensor of_x = of_gates.mm(weights);
  return {of_x.slice(1, state), of_gates.t().mm(x), of_gates.sum(0), of_x.slice(1, 0, state),
          of_cell};
}
ATEN_BRIDGE_EXPORT(LltmGrad, lltm_grad, input("input").rank(2),
                   input("weights").sizes("3*state", "all"), input("bias").sizes("3*state"),
                   input("old_h").sizes("batch", "state"),
                   input("old_cell").sizes("batch", "state"),
                   input("grad_h").sizes("batch", "state"),
                   input("grad_cell").sizes("batch", "state"));

}  // namespace
