// Kernels for the tests of aten_bridge.mindspore: attributes, numbers, meta functions, state,
// workspaces and gradients on the real host.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>
#include <aten_bridge.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace {

using at::Tensor;
using aten_bridge::attr;
using aten_bridge::meta;

//===--- attributes: their values as tensors ---===//

Tensor echo_bool(bool value) { return at::tensor(std::vector<int64_t>{value}); }
Tensor echo_int(int64_t value) { return at::tensor(std::vector<int64_t>{value}); }
Tensor echo_float(double value) { return at::tensor(std::vector<double>{value}, at::kDouble); }
Tensor echo_string(const std::string& value) {
  return at::tensor(std::vector<uint8_t>(value.begin(), value.end()), at::kByte);
}
Tensor echo_bools(const std::vector<bool>& value) {
  return at::tensor(std::vector<int64_t>(value.begin(), value.end()), at::kLong);
}
// Each ends with a 0.
Tensor echo_strings(const std::vector<std::string>& value) {
  std::vector<uint8_t> bytes;
  for (const std::string& string : value) {
    bytes.insert(bytes.end(), string.begin(), string.end());
    bytes.push_back(0);
  }
  return at::tensor(bytes, at::kByte);
}
Tensor echo_ints(const std::vector<int64_t>& value) { return at::tensor(value, at::kLong); }
Tensor echo_floats(const std::vector<double>& value) { return at::tensor(value, at::kDouble); }

// The size of each list, -1, then what is in them.
template <class T>
std::vector<T> flat(const std::vector<std::vector<T>>& lists) {
  std::vector<T> values;
  for (const auto& list : lists) {
    values.push_back(static_cast<T>(list.size()));
  }
  values.push_back(-1);
  for (const auto& list : lists) {
    values.insert(values.end(), list.begin(), list.end());
  }
  return values;
}
Tensor echo_int_lists(const std::vector<std::vector<int64_t>>& value) {
  return at::tensor(flat(value), at::kLong);
}
Tensor echo_float_lists(const std::vector<std::vector<double>>& value) {
  return at::tensor(flat(value), at::kDouble);
}
Tensor echo_dtype(at::ScalarType value) { return at::ones({2}, value); }
Tensor echo_number(const at::Scalar& value) { return at::scalar_tensor(value, value.type()); }
Tensor echo_optional(std::optional<int64_t> value) {
  return at::tensor(std::vector<int64_t>{value.value_or(-1)});
}

Tensor leaky_relu(const Tensor& x, double slope) { return at::leaky_relu(x, slope); }
Tensor scale_and_shift(const Tensor& x, double scale, int64_t shift) { return x * scale + shift; }

//===--- numbers, None, lists ---===//

Tensor number_inputs(const Tensor& x, double factor, int64_t shift, bool negate,
                     std::optional<double> limit) {
  const Tensor y = (x * factor + shift) * (negate ? -1 : 1);
  return limit.has_value() ? y.clamp_max(*limit) : y;
}
Tensor repeat(const Tensor& x, int64_t times) { return x.repeat({times}); }

using OptionalTensor = std::optional<Tensor>;
Tensor sum_of_given(const OptionalTensor& a, const OptionalTensor& b, const OptionalTensor& c) {
  Tensor sum;
  for (const OptionalTensor& addend : {a, b, c}) {
    if (addend.has_value()) {
      sum = sum.defined() ? sum + *addend : addend->clone();
    }
  }
  return sum;
}

// Each of the list times the first, then the last, in one row.
Tensor join(const Tensor& first, at::TensorList list, const Tensor& last) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : list) {
    parts.push_back(tensor * first);
  }
  parts.push_back(last);
  return at::cat(parts);
}

//===--- meta functions ---===//

std::tuple<Tensor, Tensor> top_k(const Tensor& x, int64_t k) {
  TORCH_CHECK(k <= x.size(-1), "expected k to be at most ", x.size(-1), ", got ", k);
  return at::topk(x, k);
}
Tensor total(const Tensor& x) { return x.sum(); }
Tensor to_complex(const Tensor& x) { return x.to(at::kComplexFloat); }
Tensor touch(const Tensor& x) {
  Tensor y = at::empty_like(x);
  *y.mutable_data_ptr<float>() = *x.const_data_ptr<float>();
  return y;
}
Tensor like(const Tensor& x) { return at::empty_like(x); }
void copy(const Tensor& x, Tensor& y) { y.copy_(x); }
Tensor checked(const Tensor& a, const Tensor& b) { return a + b; }

//===--- state and workspaces ---===//

// Counts its calls, from `start` on.
class Counter {
 public:
  explicit Counter(int64_t start) : count_(start) {}
  Tensor operator()(const Tensor& x) { return at::full_like(x, count_++); }

 private:
  int64_t count_;
};

// Through memory of the host's: x in reverse, `copies` times.
void reverse(const Tensor& x, int64_t copies, aten_bridge::Workspace<float> memory, Tensor& y) {
  const auto* from = x.const_data_ptr<float>();
  auto* to = y.mutable_data_ptr<float>();
  const auto size = static_cast<std::size_t>(x.numel());
  TORCH_CHECK(memory.size() == size, "workspace of ", memory.size());
  for (std::size_t i = 0; i < size; ++i) {
    memory.at(i) = from[size - 1 - i];
  }
  for (int64_t copy = 0; copy < copies; ++copy) {
    to = std::copy(memory.begin(), memory.end(), to);
  }
}

//===--- random numbers ---===//

// [random]
// Zeroes each element of x with probability p, and scales the others. Seed and step decide which.
Tensor seeded_dropout(const Tensor& x, double p, int64_t seed, int64_t step) {
  // 2^64 divided by the golden ratio: steps that follow each other give seeds far apart.
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(
      static_cast<std::uint64_t>(seed) + static_cast<std::uint64_t>(step) * kStep);
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  return x * at::empty_like(x).bernoulli_(1 - p, generator).mul_(scale);
}
ATEN_BRIDGE_EXPORT(SeededDropout, seeded_dropout, attr("p", 0.5), attr("seed", 0), meta());
ATEN_BRIDGE_EXPORT_GRAD(SeededDropoutGrad, seeded_dropout, attr("p", 0.5), attr("seed", 0));
// [/random]

// From PyTorch's default generator.
Tensor uniform_like(const Tensor& x) { return at::rand_like(x); }

//===--- gradients ---===//

Tensor leaky_relu_gradient(const Tensor& x, const Tensor& dy, double slope) {
  return at::leaky_relu_backward(dy, x, slope, /*self_is_result=*/false);
}

// [gradient]
std::tuple<Tensor, Tensor> multiply_add(const Tensor& a, const Tensor& b) { return {a * b, a + b}; }
std::tuple<Tensor, Tensor> multiply_add_gradient(const Tensor& a, const Tensor& b,
                                                 const Tensor& d_product, const Tensor& d_sum) {
  return {d_product * b + d_sum, d_product * a + d_sum};
}
// [/gradient]

// One result for each tensor that it may be given, and one for those that it is given.
std::tuple<Tensor, Tensor, Tensor> sum_of_given_gradient(const OptionalTensor& /*a*/,
                                                         const OptionalTensor& /*b*/,
                                                         const OptionalTensor& /*c*/,
                                                         const Tensor& dy) {
  return {dy * 2, dy * 3, dy * 4};
}
Tensor number_inputs_gradient(const Tensor& x, double factor, int64_t /*shift*/, bool negate,
                              std::optional<double> /*limit*/, const Tensor& dy) {
  return at::zeros_like(x) + dy * (negate ? -factor : factor);
}

// For any number of inputs: first, list..., last and dy; as many gradients.
void join_gradient(const aten_bridge::CallFrame& frame) {
  std::vector<Tensor> slots = aten_bridge::tensors(frame);
  const auto inputs = (slots.size() - 1) / 2;  // the forward's
  const Tensor& dy = slots[inputs];
  Tensor* gradients = &slots[inputs + 1];
  gradients[0].zero_();
  int64_t row = 0;
  for (std::size_t i = 1; i < inputs; ++i) {
    const Tensor part = dy.slice(0, row, row + slots[i].size(0));
    row += slots[i].size(0);
    if (i + 1 < inputs) {
      gradients[0].add_((part * slots[i]).sum_to_size(gradients[0].sizes()));
      gradients[i].copy_(part * slots[0]);
    } else {
      gradients[i].copy_(part);
    }
  }
}

}  // namespace

ATEN_BRIDGE_EXPORT(EchoBool, echo_bool, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoInt, echo_int, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoFloat, echo_float, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoString, echo_string, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoBools, echo_bools, attr("value", {true, false}), meta());
ATEN_BRIDGE_EXPORT(EchoStrings, echo_strings, attr("value", {"one", "two"}), meta());
ATEN_BRIDGE_EXPORT(EchoInts, echo_ints, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoFloats, echo_floats, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoIntLists, echo_int_lists, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoFloatLists, echo_float_lists, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoDtype, echo_dtype, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoNumber, echo_number, attr("value"), meta());
ATEN_BRIDGE_EXPORT(EchoOptional, echo_optional, attr("value"), meta());
ATEN_BRIDGE_EXPORT(LeakyRelu, leaky_relu, attr("negative_slope", 0.01), meta());
ATEN_BRIDGE_EXPORT(ScaleAndShift, scale_and_shift, attr("scale"), attr("shift"), meta());

ATEN_BRIDGE_EXPORT(NumberInputs, number_inputs, meta());
ATEN_BRIDGE_EXPORT(Repeat, repeat, meta());
ATEN_BRIDGE_EXPORT(SumOfGiven, sum_of_given, meta());
ATEN_BRIDGE_EXPORT(Join, join, meta());

// Reads the list that it is given: of a call it has one tensor or more.
ATEN_BRIDGE_EXPORT(
    Weigh,
    [](at::TensorList xs, const std::vector<double>& weights) {
      Tensor sum = at::zeros_like(xs[0]);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        sum.add_(xs[i].mul(weights[i]));
      }
      return sum;
    },
    attr("weights"), meta());
ATEN_BRIDGE_EXPORT(TopK, top_k, attr("k"), meta());
ATEN_BRIDGE_EXPORT(
    TopKUnchecked, [](const Tensor& x, int64_t k) { return at::topk(x, k); }, attr("k"), meta());
ATEN_BRIDGE_EXPORT(Total, total, meta());
ATEN_BRIDGE_EXPORT(ToComplex, to_complex, meta());
ATEN_BRIDGE_EXPORT(Touch, touch, meta());
ATEN_BRIDGE_EXPORT(TouchWithMeta, touch, meta(like));
ATEN_BRIDGE_EXPORT(Copy, copy);
ATEN_BRIDGE_EXPORT(Checked, checked, meta(),
                   aten_bridge::input("a").dtype(aten_bridge::kFloatingPoint).sizes("N"),
                   aten_bridge::input("b").dtype(aten_bridge::kFloatingPoint).sizes("N"));

ATEN_BRIDGE_EXPORT(Counter, aten_bridge::state<Counter(int64_t)>(), attr("start", 0),
                   aten_bridge::meta(like));
ATEN_BRIDGE_EXPORT(Reverse, reverse, attr("copies", 1),
                   aten_bridge::workspace([](const Tensor& x) { return x.numel(); }),
                   meta([](const Tensor& x, int64_t copies) { return x.repeat({copies}); }));

ATEN_BRIDGE_EXPORT(UniformLike, uniform_like, meta());

ATEN_BRIDGE_EXPORT(LeakyReluGrad, leaky_relu_gradient, attr("negative_slope", 0.01), meta());
ATEN_BRIDGE_EXPORT(LeakyReluGradWithoutMeta, leaky_relu_gradient, attr("negative_slope", 0.01));
ATEN_BRIDGE_EXPORT(MultiplyAdd, multiply_add, meta());
ATEN_BRIDGE_EXPORT(MultiplyAddGrad, multiply_add_gradient, meta());
ATEN_BRIDGE_EXPORT(MultiplyAddGradWithoutMeta, multiply_add_gradient);
ATEN_BRIDGE_EXPORT(SumOfGivenGrad, sum_of_given_gradient, meta());
ATEN_BRIDGE_EXPORT(NumberInputsGrad, number_inputs_gradient, meta());
ATEN_BRIDGE_EXPORT(JoinGrad, join_gradient);

// Says so, and does not return.
ATEN_BRIDGE_EXPORT(
    Hang,
    [](const Tensor& /*x*/, Tensor& /*y*/) {
      constexpr std::string_view kText = "hanging\n";
      static_cast<void>(write(STDOUT_FILENO, kText.data(), kText.size()) == kText.size());
      while (true) {
        pause();
      }
    },
    meta([](const Tensor& x) { return x; }));

// A C function as MindSpore's documentation has it: y = x + 1 for one float32 input.
extern "C" ATEN_BRIDGE_PUBLIC int AddOneByHand(int /*nparam*/, void** params, int* ndims,
                                               int64_t** shapes, const char** /*dtypes*/,
                                               void* /*stream*/, void* /*extra*/) {
  int64_t count = 1;
  for (int i = 0; i < ndims[0]; ++i) {
    count *= shapes[0][i];
  }
  for (int64_t i = 0; i < count; ++i) {
    static_cast<float*>(params[1])[i] = static_cast<float*>(params[0])[i] + 1;
  }
  return 0;
}
