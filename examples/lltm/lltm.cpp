// The recurrent cell of PyTorch's tutorial on C++ extensions, "long long-term memory": an LSTM
// without a forget gate, with ELU instead of a tanh. Its gradient is written by hand.
#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <aten_bridge.h>

#include <tuple>

namespace {

using at::Tensor;
using aten_bridge::input;
using aten_bridge::output;

/// What the cell computes on the way to its results.
struct Gates {
  Tensor x;       // old_h and input, side by side
  Tensor before;  // the three gates before their functions
  Tensor input;
  Tensor output;
  Tensor candidate;
};

Gates gates_of(const Tensor& input, const Tensor& weights, const Tensor& bias,
               const Tensor& old_h) {
  const Tensor x = at::cat({old_h, input}, 1);
  const Tensor before = at::addmm(bias, x, weights.t());
  const auto parts = before.chunk(3, 1);
  return {x, before, parts[0].sigmoid(), parts[1].sigmoid(), at::elu(parts[2])};
}

// [forward]
std::tuple<Tensor, Tensor> lltm(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                const Tensor& old_h, const Tensor& old_cell) {
  const Gates gates = gates_of(input, weights, bias, old_h);
  const Tensor cell = old_cell + gates.candidate * gates.input;
  return {cell.tanh() * gates.output, cell};
}
ATEN_BRIDGE_EXPORT(Lltm, lltm, input("input").rank(2), input("weights").sizes("3*state", "all"),
                   input("bias").sizes("3*state"), input("old_h").sizes("batch", "state"),
                   input("old_cell").sizes("batch", "state"),
                   aten_bridge::meta([](const Tensor&, const Tensor&, const Tensor&,
                                        const Tensor& old_h, const Tensor& old_cell) {
                     return std::tuple<Tensor, Tensor>(at::empty_like(old_h),
                                                       at::empty_like(old_cell));
                   }));
// [/forward]

// [backward]
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> lltm_grad(
    const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
    const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell) {
  const Gates gates = gates_of(input, weights, bias, old_h);
  const Tensor t = (old_cell + gates.candidate * gates.input).tanh();
  const Tensor of_cell = gates.output * (1 - t * t) * grad_h + grad_cell;
  const Tensor candidate_before = gates.before.chunk(3, 1)[2];
  const Tensor of_gates =
      at::cat({gates.candidate * of_cell * gates.input * (1 - gates.input),
               t * grad_h * gates.output * (1 - gates.output),
               gates.input * of_cell *
                   at::where(candidate_before > 0, at::ones_like(candidate_before),
                             candidate_before.exp())},
              1);
  const Tensor of_x = of_gates.mm(weights);
  const int64_t state = old_h.size(1);
  return {of_x.slice(1, state), of_gates.t().mm(gates.x), of_gates.sum(0), of_x.slice(1, 0, state),
          of_cell};
}
ATEN_BRIDGE_EXPORT(LltmGrad, lltm_grad, input("input").rank(2),
                   input("weights").sizes("3*state", "all"), input("bias").sizes("3*state"),
                   input("old_h").sizes("batch", "state"),
                   input("old_cell").sizes("batch", "state"),
                   input("grad_h").sizes("batch", "state"),
                   input("grad_cell").sizes("batch", "state"));
// [/backward]

}  // namespace
