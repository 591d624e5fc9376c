// Kernels for the fuzzer: one for each thing that a kernel of ops.Custom can ask for.
#include <ATen/ops/add.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>
#include <aten_bridge.h>

#include <cfenv>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "print.h"

namespace {

using at::Tensor;
using aten_bridge::attr;
using aten_bridge::gradient;
using aten_bridge::input;
using aten_bridge::meta;
using aten_bridge::output;
using aten_bridge::state;
using aten_bridge::Workspace;
using aten_bridge::workspace;
using fuzz::print;
using MaybeTensor = std::optional<Tensor>;

//===--- tensors ---===//

Tensor negate(const Tensor& x) { return at::neg(x); }

Tensor& negate_out(const Tensor& x, Tensor& y) { return at::neg_out(y, x); }

void fill(const Tensor& /*x*/, Tensor& y) { y.fill_(3); }

void copy_twice(const Tensor& x, Tensor& y) { y.copy_(at::add(x, x)); }

Tensor scale(const Tensor& x, double factor, int64_t shift) {
  return at::add(at::mul(x, at::Scalar(factor)), at::Scalar(shift));
}

Tensor linear(const Tensor& x, const Tensor& weight) { return at::linear(x, weight); }

Tensor sum_of_all(at::TensorList xs, const MaybeTensor& last) {
  Tensor sum = at::zeros_like(xs.empty() ? last.value() : xs[0]);
  for (const Tensor& x : xs) {
    sum = at::add(sum, x);
  }
  return last ? at::add(sum, *last) : sum;
}

std::tuple<Tensor, Tensor> negate_and_double(const Tensor& x) {
  return {at::neg(x), at::add(x, x)};
}

Tensor add_number(const Tensor& x, int64_t number) { return at::add(x, at::Scalar(number)); }

Tensor first_rows(const Tensor& x, int64_t count) { return x.narrow(0, 0, count); }

Tensor negate_checked(const Tensor& x, const MaybeTensor& /*weight*/, at::TensorList /*list*/) {
  return at::neg(x);
}

Tensor product(const Tensor& a, const Tensor& b) { return at::mul(a, b); }

// What a kernel computes with autograd: twice its input.
Tensor differentiate(const Tensor& x) {
  const Tensor leaf = x.detach().requires_grad_();
  const Tensor squares = at::mul(leaf, leaf);
  return torch::autograd::grad({squares}, {leaf}, {at::ones_like(squares)},
                               /*retain_graph=*/{}, /*create_graph=*/false,
                               /*allow_unused=*/false)[0];
}

//===--- mistakes ---===//

// Leaves its input and output in states that the next call must not see.
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
    case 14:
      y.set_data(y.to(at::kComplexHalf));
      break;
    case 15:
      y.set_data(y.clone());
      break;
    case 16:
      y.unsafeGetTensorImpl()->_set_neg(true);
      break;
    case 17:
      y.transpose_(0, -1);
      break;
    case 18:
      throw 18;  // NOLINT: what is no std::exception
    case 19:
      TORCH_CHECK(false, "thrown");
    case 20:
      throw std::runtime_error("thrown\n\nAt:\n  a line of Python's");
    case 21:  // the state of the thread
      at::set_num_threads(at::get_num_threads() + 1);
      c10::AutogradState::get_tls_state().set_grad_mode(true);
      std::fesetround(FE_UPWARD);
      break;
    default:
      kept = Tensor();
  }
}

// What a meta function may do wrong, with results too.
Tensor misjudge(const Tensor& x, int64_t how) {
  switch (how) {
    case 1:
      return {};
    case 2:
      return at::empty(x.sizes(), x.options().device(at::kMeta));
    case 3:
      return at::neg(x).unsqueeze(0);
    default:
      return at::neg(x);
  }
}
Tensor misjudged(const Tensor& x, int64_t how) {
  switch (how) {
    case 4:
      return {};
    case 5:
      return x.to(at::kComplexHalf);
    case 6:
      return at::add(x, x.item());
    case 7:
      return at::nonzero(x);
    case 8:
      TORCH_CHECK(false, "thrown");
    case 9:
      throw std::runtime_error("thrown");
    case 10:
      x.const_data_ptr();
      break;
    case 11:
      return x.squeeze();
    default:
      break;
  }
  return x;
}

Tensor& return_another(const Tensor& x, Tensor& y) {
  static auto* another = new Tensor;
  y.copy_(x);
  *another = x.neg();
  return *another;
}

Tensor write_input(const Tensor& x) {
  x.unsafeGetTensorImpl()->bump_version();  // as what writes does
  return at::neg(x);
}

Tensor detach(const Tensor& x) { return at::neg(x.detach()); }

Tensor embed(const Tensor& weight, const Tensor& indices) {
  return at::embedding(weight, indices, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false,
                       /*sparse=*/true);
}

//===--- states and workspaces ---===//

// The sum of the calls so far, which each operator has for itself.
class Counter {
 public:
  explicit Counter(int64_t begin) : count_(begin) {}
  Tensor operator()(const Tensor& x) { return at::add(x, at::Scalar(count_++)); }

 private:
  int64_t count_;
};

// Made from the first call's inputs, or not.
class Shaped {
 public:
  Shaped(int64_t how, at::TensorList first) : count_(static_cast<int64_t>(first.size())) {
    if (how == 1) {
      first[0].const_data_ptr();
      TORCH_CHECK(TORCH_VERSION_MINOR >= 5, "thrown");  // newer versions say so themselves
    }
    TORCH_CHECK(how != 2, "thrown");
  }
  Tensor operator()(const Tensor& x) const { return at::add(x, at::Scalar(count_)); }

 private:
  int64_t count_;
};

Tensor with_workspace(const Tensor& x, Workspace<int64_t> numbers) {
  return at::add(x, at::Scalar(static_cast<int64_t>(numbers.size())));
}

struct alignas(256) Aligned {
  float values[64];
};
Tensor with_workspaces(const Tensor& x, int64_t each, const Workspace<Aligned>& aligned,
                       Workspace<float> numbers) {
  TORCH_CHECK(reinterpret_cast<std::uintptr_t>(aligned.data()) % 256 == 0, "not aligned");
  const auto size = static_cast<int64_t>(aligned.size() + numbers.size());
  const auto address = [](const void* data) { return const_cast<void*>(data); };
  // All of both can be written.
  for (const auto& [data, bytes] : {std::pair(address(aligned.begin()), 256 * aligned.size()),
                                    std::pair(address(numbers.begin()), 4 * numbers.size())}) {
    aten_bridge::detail::make_tensor(data, x.device(), bytes, nullptr, at::kByte,
                                     {static_cast<int64_t>(bytes)})
        .fill_(each);
  }
  return at::add(x, at::Scalar(size));
}

//===--- calls as they come ---===//

void count_slots(const aten_bridge::CallFrame& frame) {
  const std::vector<Tensor> slots = aten_bridge::tensors(frame);
  TORCH_CHECK(!slots.empty(), "no slots");
  Tensor last = slots.back();
  last.fill_(static_cast<int64_t>(slots.size()));
}

void ask_for_more(const aten_bridge::CallFrame& frame) {
  aten_bridge::tensors(frame, {0, frame.size()});
}

//===--- values ---===//

Tensor text_meta() {
  return at::empty({fuzz::kTextBytes}, at::TensorOptions(at::kMeta).dtype(at::kByte));
}

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
void print_values(const Tensor& /*x*/, bool flag, int64_t integer, double real,
                  const std::string& string, const Ints& integers, const Doubles& reals,
                  const std::vector<Ints>& integer_lists, const std::vector<Doubles>& real_lists,
                  at::ScalarType dtype, const at::Scalar& number, const std::vector<bool>& flags,
                  const std::vector<std::string>& strings, Tensor& y) {
  print(y, flag, integer, real, string, integers, reals, integer_lists, real_lists, dtype, number,
        flags, strings);
}
template <class T>
using Maybe = const std::optional<T>&;
void print_optional(const Tensor& /*x*/, Maybe<bool> flag, Maybe<int64_t> integer,
                    Maybe<double> real, Maybe<std::string> string, Maybe<Ints> integers,
                    Maybe<Doubles> reals, Maybe<std::vector<Ints>> integer_lists,
                    Maybe<std::vector<Doubles>> real_lists, Maybe<at::ScalarType> dtype,
                    Maybe<at::Scalar> number, Maybe<std::vector<bool>> flags,
                    Maybe<std::vector<std::string>> strings, Tensor& y) {
  print(y, flag, integer, real, string, integers, reals, integer_lists, real_lists, dtype, number,
        flags, strings);
}
void print_views(const Tensor& /*x*/, bool flag, int64_t integer, double real,
                 std::string_view string, at::IntArrayRef integers, at::ArrayRef<double> reals,
                 const std::vector<Ints>& integer_lists, const std::vector<Doubles>& real_lists,
                 at::ScalarType dtype, const at::Scalar& number, const std::vector<bool>& flags,
                 const std::vector<std::string>& strings, at::OptionalIntArrayRef maybe,
                 Tensor& y) {
  print(y, flag, integer, real, string, integers, reals, integer_lists, real_lists, dtype, number,
        flags, strings, maybe ? std::optional(maybe->vec()) : std::nullopt);
}

template <class T>
void print_numbers(const Tensor& /*x*/, T number, const std::optional<T>& maybe, Tensor& y) {
  print(y, number, maybe);
}

}  // namespace

ATEN_BRIDGE_EXPORT(Negate, negate, meta());
ATEN_BRIDGE_EXPORT(NegateOut, negate_out, meta());
ATEN_BRIDGE_EXPORT(Fill, fill, meta());
ATEN_BRIDGE_EXPORT(CopyTwice, copy_twice, meta());
ATEN_BRIDGE_EXPORT(Scale, scale, attr("factor", 2.0), attr("shift", 1), meta());
ATEN_BRIDGE_EXPORT_GRAD(ScaleGrad, scale, attr("factor", 2.0), attr("shift", 1));
ATEN_BRIDGE_EXPORT(Linear, linear, input("x").sizes("N", "C"), input("weight").sizes("M", "C"),
                   output("y").sizes("N", "M"), meta());
ATEN_BRIDGE_EXPORT(SumOfAll, sum_of_all, meta());
ATEN_BRIDGE_EXPORT_GRAD(SumOfAllGrad, sum_of_all);
ATEN_BRIDGE_EXPORT(NegateAndDouble, negate_and_double, meta());
ATEN_BRIDGE_EXPORT(AddNumber, add_number, meta());
ATEN_BRIDGE_EXPORT_GRAD(AddNumberGrad, add_number);
ATEN_BRIDGE_EXPORT(FirstRows, first_rows, meta());
ATEN_BRIDGE_EXPORT(
    NegateChecked, negate_checked,
    input("x").dtype(aten_bridge::kFloatingPoint | aten_bridge::kComplex).sizes("N", 3, "...", "C"),
    input("weight").dtype(at::kFloat, at::kDouble).rank(1, 2).sizes("...", "C"),
    input("list").sizes("N", -1), output("y").sizes("N", "..."), meta());
ATEN_BRIDGE_EXPORT(NeverRight, negate,
                   input("x").dtype(at::kComplexHalf).rank(2).sizes("...", "C", "..."), meta());
ATEN_BRIDGE_EXPORT(Product, product, meta());
ATEN_BRIDGE_EXPORT_GRAD(ProductGrad, product);
ATEN_BRIDGE_EXPORT_GRAD(ProductGradGrad, gradient(product));
ATEN_BRIDGE_EXPORT(Differentiate, differentiate, aten_bridge::autograd());

ATEN_BRIDGE_EXPORT(Spoil, spoil);
ATEN_BRIDGE_EXPORT(Misjudge, misjudge, attr("how", 0), meta(misjudged));
ATEN_BRIDGE_EXPORT(ReturnAnother, return_another);
ATEN_BRIDGE_EXPORT_GRAD(WriteInputGrad, write_input);
ATEN_BRIDGE_EXPORT_GRAD(DetachGrad, detach);
ATEN_BRIDGE_EXPORT_GRAD(EmbedGrad, embed);
ATEN_BRIDGE_EXPORT_GRAD(EmbedGradGrad, gradient(embed));
ATEN_BRIDGE_EXPORT_GRAD(EmbedGradGradGrad, gradient(gradient(embed)));

ATEN_BRIDGE_EXPORT(Count, state<Counter(int64_t)>(), attr("begin"),
                   meta([](const Tensor& x) { return at::add(x, at::Scalar(1)); }));
ATEN_BRIDGE_EXPORT(Shaped, (state<Shaped(int64_t, at::TensorList)>()), attr("how", 0),
                   meta([](const Tensor& x) { return at::add(x, at::Scalar(1)); }));
ATEN_BRIDGE_EXPORT(WithWorkspace, with_workspace,
                   workspace([](const Tensor& x) { return x.dim() + 1; }),
                   meta([](const Tensor& x) { return at::add(x, at::Scalar(1)); }));
ATEN_BRIDGE_EXPORT_GRAD(WithWorkspaceGrad, with_workspace, workspace(3));
ATEN_BRIDGE_EXPORT(WithWorkspaces, with_workspaces, attr("each", 2), workspace(2),
                   workspace([](const Tensor& x, int64_t each) { return x.dim() + each - 1; }),
                   meta([](const Tensor& x) { return at::add(x, at::Scalar(1)); }));
ATEN_BRIDGE_EXPORT(CountSlots, count_slots);
ATEN_BRIDGE_EXPORT(AskForMore, ask_for_more);

ATEN_BRIDGE_EXPORT(Values, print_values, attr("flag"), attr("integer"), attr("real"),
                   attr("string"), attr("integers"), attr("reals"), attr("integer_lists"),
                   attr("real_lists"), attr("dtype"), attr("number"), attr("flags"),
                   attr("strings"), meta(text_meta));
ATEN_BRIDGE_EXPORT(OptionalValues, print_optional, attr("flag"), attr("integer"), attr("real"),
                   attr("string"), attr("integers"), attr("reals"), attr("integer_lists"),
                   attr("real_lists"), attr("dtype"), attr("number"), attr("flags"),
                   attr("strings"), meta(text_meta));
ATEN_BRIDGE_EXPORT(DefaultValues, print_views, attr("flag", true), attr("integer", -2),
                   attr("real", 3), attr("string", "text"), attr("integers", {4, 5}),
                   attr("reals", {0.5, 1.5}), attr("integer_lists", {{1, 2}, {3}}),
                   attr("real_lists", {{0.5}, {}}), attr("dtype", at::kHalf), attr("number", 0.25),
                   attr("flags", {true, false}), attr("strings", {}), attr("maybe"),
                   meta(text_meta));
ATEN_BRIDGE_EXPORT(Bools, print_numbers<bool>, meta(text_meta));
ATEN_BRIDGE_EXPORT(Integers, print_numbers<int64_t>, meta(text_meta));
ATEN_BRIDGE_EXPORT(Reals, print_numbers<double>, meta(text_meta));
ATEN_BRIDGE_EXPORT(Scalars, print_numbers<at::Scalar>, meta(text_meta));
