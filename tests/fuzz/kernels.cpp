// Kernels for the fuzzer: one for each thing that a kernel of ops.Custom can ask for.
#include <ATen/ops/add.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>
#include <aten_bridge.h>

#include <optional>
#include <stdexcept>
#include <vector>

namespace {

using at::Tensor;
using aten_bridge::attr;
using aten_bridge::input;
using aten_bridge::meta;

Tensor negate(const Tensor& x) { return at::neg(x); }

Tensor scale(const Tensor& x, double factor, int64_t shift) {
  return at::add(at::mul(x, at::Scalar(factor)), at::Scalar(shift));
}

Tensor linear(const Tensor& x, const Tensor& weight) { return at::linear(x, weight); }

Tensor sum_of_all(at::TensorList xs, const std::optional<Tensor>& last) {
  Tensor sum = at::zeros_like(xs.empty() ? last.value() : xs[0]);
  for (const Tensor& x : xs) {
    sum = at::add(sum, x);
  }
  return last ? at::add(sum, *last) : sum;
}

Tensor add_number(const Tensor& x, int64_t number) { return at::add(x, at::Scalar(number)); }

// Leaves its input in a state that the next call must not see.
Tensor kept;
void spoil(Tensor x, int64_t how, Tensor& y) {
  y.copy_(x.neg());
  switch (how) {
    case 1:
      x.unsqueeze_(0);
      break;
    case 2:
      x.transpose_(0, -1);
      break;
    case 3:
      kept = x;
      break;
    case 4:
      x.set_(y);
      break;
    case 5:
      throw std::runtime_error("thrown");
    case 6:
      x.as_strided_({1}, {3}, 0);
      break;
    case 7:
      x.resize_({0});
      break;
    case 8:
      kept = x.view({-1});
      break;
    case 9:
      x.squeeze_();
      break;
    case 10:
      x.requires_grad_();
      break;
    case 11:
      y.unsqueeze_(0);
      break;
    case 12:
      y = x;
      break;
    case 13:
      y.resize_({100});
      break;
    default:
      kept = Tensor();
  }
}

// The sum of the calls so far, which each operator has for itself.
class Counter {
 public:
  explicit Counter(int64_t begin) : count_(begin) {}
  Tensor operator()(const Tensor& x) { return at::add(x, at::Scalar(count_++)); }

 private:
  int64_t count_;
};

Tensor with_workspace(const Tensor& x, aten_bridge::Workspace<int64_t> numbers) {
  for (int64_t& number : numbers) {
    number = 7;
  }
  return at::add(x, at::Scalar(numbers[numbers.size() - 1]));
}

Tensor product(const Tensor& a, const Tensor& b) { return at::mul(a, b); }

void count_slots(const aten_bridge::CallFrame& frame) {
  const std::vector<Tensor> slots = aten_bridge::tensors(frame);
  TORCH_CHECK(!slots.empty(), "no slots");
  Tensor last = slots.back();
  last.fill_(static_cast<int64_t>(slots.size()));
}

}  // namespace

ATEN_BRIDGE_EXPORT(Negate, negate, meta());
ATEN_BRIDGE_EXPORT(Scale, scale, attr("factor", 2.0), attr("shift", 1), meta());
ATEN_BRIDGE_EXPORT(Linear, linear, input("x").sizes("N", "C"), input("weight").sizes("M", "C"),
                   aten_bridge::output("y").sizes("N", "M"), meta());
ATEN_BRIDGE_EXPORT(SumOfAll, sum_of_all, meta());
ATEN_BRIDGE_EXPORT(AddNumber, add_number, meta());
ATEN_BRIDGE_EXPORT(Spoil, spoil);
ATEN_BRIDGE_EXPORT(Count, aten_bridge::state<Counter(int64_t)>(), attr("begin"),
                   meta([](const Tensor& x) { return at::add(x, at::Scalar(1)); }));
ATEN_BRIDGE_EXPORT(WithWorkspace, with_workspace,
                   aten_bridge::workspace([](const Tensor& x) { return x.dim() + 1; }),
                   meta([](const Tensor& x) { return at::add(x, at::Scalar(1)); }));
ATEN_BRIDGE_EXPORT(Product, product, meta());
ATEN_BRIDGE_EXPORT_GRAD(ProductGrad, product);
ATEN_BRIDGE_EXPORT(CountSlots, count_slots);
