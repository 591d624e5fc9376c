// What one writes by hand for PyTorch: LeakyRelu with TORCH_LIBRARY, and its gradient as an
// autograd::Function. The rows beside which the bridge's operators are measured: a body that
// returns its result, and two in which an _out function writes it, to a tensor that it resizes and
// to one that has its size.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

using at::Tensor;

Tensor leaky_relu(const Tensor& x, double slope) { return at::leaky_relu(x, slope); }
Tensor output(const Tensor& x, double slope) {
  Tensor y = at::empty({0}, x.options());
  at::leaky_relu_out(y, x, slope);
  return y;
}
Tensor sized(const Tensor& x, double slope) {
  Tensor y = at::empty_like(x);
  at::leaky_relu_out(y, x, slope);
  return y;
}
Tensor leaky_relu_meta(const Tensor& x, double /*slope*/) { return at::empty_like(x); }
Tensor leaky_relu_grad(const Tensor& x, const Tensor& dy, double slope) {
  return at::leaky_relu_backward(dy, x, slope, /*self_is_result=*/false);
}

/// The operator by its name, which is looked for once.
template <class Name>
Tensor call(const Tensor& x, double slope) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow(Name::kName, "")
                             .template typed<Tensor(const Tensor&, double)>();
  return op.call(x, slope);
}

template <class Name>
class LeakyRelu : public torch::autograd::Function<LeakyRelu<Name>> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, double slope) {
    const at::AutoDispatchBelowADInplaceOrView below;
    context->save_for_backward({x});
    context->saved_data["slope"] = slope;
    return call<Name>(x, slope);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    static const auto op = c10::Dispatcher::singleton()
                               .findSchemaOrThrow("typed::leaky_relu_grad", "")
                               .typed<Tensor(const Tensor&, const Tensor&, double)>();
    const double slope = context->saved_data["slope"].toDouble();
    return {op.call(context->get_saved_variables()[0], gradients[0], slope), Tensor()};
  }
};

struct OfResult {
  static constexpr const char* kName = "typed::leaky_relu";
};
struct OfOutput {
  static constexpr const char* kName = "typed::output";
};
struct OfSized {
  static constexpr const char* kName = "typed::sized";
};

template <class Name>
Tensor leaky_relu_autograd(const Tensor& x, double slope) {
  return LeakyRelu<Name>::apply(x, slope);
}

}  // namespace

TORCH_LIBRARY(typed, library) {
  library.def("leaky_relu(Tensor x, float negative_slope=0.01) -> Tensor");
  library.def("output(Tensor x, float negative_slope=0.01) -> Tensor");
  library.def("sized(Tensor x, float negative_slope=0.01) -> Tensor");
  library.def("leaky_relu_grad(Tensor x, Tensor dy, float negative_slope=0.01) -> Tensor");
}
TORCH_LIBRARY_IMPL(typed, CPU, library) {
  library.impl("leaky_relu", &leaky_relu);
  library.impl("output", &output);
  library.impl("sized", &sized);
  library.impl("leaky_relu_grad", &leaky_relu_grad);
}
TORCH_LIBRARY_IMPL(typed, Meta, library) {
  library.impl("leaky_relu", &leaky_relu_meta);
  library.impl("output", &leaky_relu_meta);
  library.impl("sized", &leaky_relu_meta);
}
TORCH_LIBRARY_IMPL(typed, Autograd, library) {
  library.impl("leaky_relu", &leaky_relu_autograd<OfResult>);
  library.impl("output", &leaky_relu_autograd<OfOutput>);
  library.impl("sized", &leaky_relu_autograd<OfSized>);
}
