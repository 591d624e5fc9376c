// Kernels that MindSpore and PyTorch call: one of each kind.
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <aten_bridge.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using at::Tensor;
using at::TensorList;
using aten_bridge::attr;
using aten_bridge::composite;
using aten_bridge::gradient;
using aten_bridge::input;
using aten_bridge::meta;
using aten_bridge::output;
using aten_bridge::side_effect;
using aten_bridge::state;
using aten_bridge::Workspace;
using aten_bridge::workspace;
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2  // whose optional is not std::optional
using MaybeTensor = c10::optional<Tensor>;
#else
using MaybeTensor = std::optional<Tensor>;
#endif

// Writes its output, and returns its result: with a gradient by autograd, and its gradient.
void leaky_relu(const Tensor& x, double slope, Tensor& y) { at::leaky_relu_out(y, x, slope); }
Tensor leaky_relu_result(const Tensor& x, double slope) { return at::leaky_relu(x, slope); }
ATEN_BRIDGE_EXPORT(LeakyRelu, leaky_relu, attr("negative_slope", 0.01), input("x"), output("y"),
                   meta());
ATEN_BRIDGE_EXPORT_GRAD(LeakyReluGrad, leaky_relu_result, attr("negative_slope", 0.01), input("x"));
ATEN_BRIDGE_EXPORT_GRAD(LeakyReluGradGrad, gradient(leaky_relu_result),
                        attr("negative_slope", 0.01), input("x"));

// Loops over data; the gradient is written by hand, and tells no shapes.
void square(const Tensor& x, Tensor& y) {
  const auto* from = x.const_data_ptr<double>();
  auto* to = y.mutable_data_ptr<double>();
  std::transform(from, from + x.numel(), to, [](double value) { return value * value; });
}
void square_grad(const Tensor& x, const Tensor& dy, Tensor& dx) {
  const auto* from = x.const_data_ptr<double>();
  const auto* by = dy.const_data_ptr<double>();
  auto* to = dx.mutable_data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    to[i] = 2 * from[i] * by[i];
  }
}
ATEN_BRIDGE_EXPORT(Square, square, input("x").dtype(at::kDouble),
                   meta([](const Tensor& x) { return at::empty_like(x); }));
ATEN_BRIDGE_EXPORT(SquareGrad, square_grad, input("x").dtype(at::kDouble), input("dy"));
ATEN_BRIDGE_EXPORT(SquareGradGrad, [](const Tensor& x, const Tensor& dy, const Tensor& ddx) {
  return std::tuple<Tensor, Tensor>(2 * dy * ddx, 2 * x * ddx);
});

std::tuple<Tensor, Tensor> topk(const Tensor& x, int64_t k, int64_t dim, bool largest) {
  return at::topk(x, k, dim, largest);
}
ATEN_BRIDGE_EXPORT(TopK, topk, attr("k"), attr("dim", -1), attr("largest", true), input("x"),
                   meta());
ATEN_BRIDGE_EXPORT_GRAD(TopKGrad, topk, attr("k"), attr("dim", -1), attr("largest", true),
                        input("x"));
ATEN_BRIDGE_EXPORT_GRAD(TopKGradGrad, gradient(topk), attr("k"), attr("dim", -1),
                        attr("largest", true), input("x"));

std::array<Tensor, 2> powers(const Tensor& x) { return {x * x, x * x * x}; }
ATEN_BRIDGE_EXPORT(Powers, powers, input("x"), meta());
ATEN_BRIDGE_EXPORT_GRAD(PowersGrad, powers, input("x"));

Tensor cat(TensorList tensors, int64_t dim) { return at::cat(tensors, dim); }
ATEN_BRIDGE_EXPORT(Cat, cat, attr("dim", 0), input("tensors"), meta());
ATEN_BRIDGE_EXPORT_GRAD(CatGrad, cat, attr("dim", 0), input("tensors"));

Tensor layer_norm(const Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias, double eps) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
}
ATEN_BRIDGE_EXPORT(LayerNorm, layer_norm, attr("eps", 1e-5), input("x"), input("weight"),
                   input("bias"), meta([](const Tensor& x) { return at::empty_like(x); }));
ATEN_BRIDGE_EXPORT_GRAD(LayerNormGrad, layer_norm, attr("eps", 1e-5), input("x"), input("weight"),
                        input("bias"));
ATEN_BRIDGE_EXPORT_GRAD(LayerNormGradGrad, gradient(layer_norm), attr("eps", 1e-5), input("x"),
                        input("weight"), input("bias"));

// Numbers, as inputs, beside tensors.
Tensor scale(const Tensor& x, double factor, const std::optional<int64_t>& times) {
  return x * factor * times.value_or(1);
}
ATEN_BRIDGE_EXPORT(Scale, scale, input("x"), input("factor"), input("times"), meta());
ATEN_BRIDGE_EXPORT_GRAD(ScaleGrad, scale, input("x"), input("factor"), input("times"));

// All kinds of attributes, as a text.
Tensor describe(const Tensor& x, bool flag, int64_t number, double real, const at::Scalar& any,
                const std::string& text, at::ScalarType type, const std::vector<int64_t>& ints,
                const std::vector<double>& reals, const std::vector<bool>& flags,
                const std::vector<std::string>& texts,
                const std::vector<std::vector<int64_t>>& rows,
                const std::optional<int64_t>& maybe) {
  std::string words = std::to_string(flag) + ' ' + std::to_string(number) + ' ' +
                      std::to_string(real) + ' ' + std::to_string(any.toDouble()) + ' ' + text +
                      ' ' + c10::toString(type);
  for (const int64_t value : ints) {
    words += ' ' + std::to_string(value);
  }
  for (const double value : reals) {
    words += ' ' + std::to_string(value);
  }
  for (const bool value : flags) {
    words += value ? " yes" : " no";
  }
  for (const std::string& value : texts) {
    words += ' ' + value;
  }
  for (const std::vector<int64_t>& row : rows) {
    words += " row of " + std::to_string(row.size());
  }
  words += maybe.has_value() ? " and " + std::to_string(*maybe) : " and None";
  Tensor characters =
      x.new_empty({static_cast<int64_t>(words.size())}, x.options().dtype(at::kByte));
  std::copy(words.begin(), words.end(), characters.mutable_data_ptr<uint8_t>());
  return characters;
}
ATEN_BRIDGE_EXPORT(Describe, describe, attr("flag", true), attr("number", 3), attr("real", 0.5),
                   attr("any", 2), attr("text", "word"), attr("type", at::kHalf),
                   attr("ints", {1, 2}), attr("reals", {0.25}), attr("flags", {true, false}),
                   attr("texts", {"a", "b"}), attr("rows", {{1, 2}, {3}}), attr("maybe"));

// A state, of which one that counts its calls; a workspace.
class Counter {
 public:
  explicit Counter(int64_t first) : next_(first) {}
  void operator()(const Tensor& /*x*/, Tensor& y) { y.fill_(next_++); }

 private:
  int64_t next_;
};
ATEN_BRIDGE_EXPORT(Count, state<Counter(int64_t)>(), attr("first", 0),
                   meta([](const Tensor& x) { return at::empty_like(x); }));

ATEN_BRIDGE_EXPORT(
    SumOfRows,
    [](const Tensor& x, Workspace<double> sums, Tensor& y) {
      const auto* from = x.const_data_ptr<double>();
      for (int64_t i = 0; i < x.size(0); ++i) {
        sums[static_cast<std::size_t>(i)] =
            std::accumulate(from + i * x.size(1), from + (i + 1) * x.size(1), 0.0);
      }
      std::copy(sums.begin(), sums.end(), y.mutable_data_ptr<double>());
    },
    workspace([](const Tensor& x) { return x.size(0); }), input("x").dtype(at::kDouble).rank(2),
    meta([](const Tensor& x) { return x.new_empty_symint({x.sym_size(0)}); }));

// By PyTorch's own operators: differentiated, traced and fused by it.
Tensor swish(const Tensor& x, double beta) { return x * (x * beta).sigmoid(); }
ATEN_BRIDGE_EXPORT(Swish, swish, attr("beta", 1.0), input("x"), composite(), meta());

// Other names, and casts.
ATEN_BRIDGE_EXPORT(
    Twice, [](const Tensor& x) { return x * 2; }, aten_bridge::name("double_it"), meta());
ATEN_BRIDGE_EXPORT(
    Lowered, [](const Tensor& x) { return x * 2; }, aten_bridge::autocast(), meta());
ATEN_BRIDGE_EXPORT_GRAD(LoweredGrad, [](const Tensor& x) { return x * 2; });
ATEN_BRIDGE_EXPORT(
    Raised, [](const Tensor& x) { return x * 2; }, aten_bridge::autocast(at::kFloat), meta());
ATEN_BRIDGE_EXPORT_GRAD(RaisedGrad, [](const Tensor& x) { return x * 2; });
ATEN_BRIDGE_EXPORT(
    LoweredList,
    [](TensorList list, const MaybeTensor& more) {
      const Tensor all = at::cat(list);
      return more.has_value() ? all + *more : all;
    },
    aten_bridge::autocast(), meta());

// What must not get through: no gradient, another shape, an input as the result, an exception.
ATEN_BRIDGE_EXPORT(
    NoGradient, [](const Tensor& x) { return x * 2; }, meta());
ATEN_BRIDGE_EXPORT(
    Assigns, [](const Tensor& x, Tensor& y) { y = x * 2; }, meta());
ATEN_BRIDGE_EXPORT(
    Copies, [](const Tensor& x, Tensor& y) { y.copy_(x); }, meta());
ATEN_BRIDGE_EXPORT(
    Resizes, [](const Tensor& x, Tensor& y) { y.resize_({x.numel() + 1}); },
    meta([](const Tensor& x) { return at::empty_like(x); }));
ATEN_BRIDGE_EXPORT(
    Same, [](const Tensor& x) { return x; }, meta());
ATEN_BRIDGE_EXPORT(
    Throws,
    [](const Tensor& /*x*/, int64_t how) -> Tensor {
      TORCH_CHECK_INDEX(how != 0, "index");
      TORCH_CHECK_TYPE(how != 1, "type");
      TORCH_CHECK_VALUE(how != 2, "value");
      TORCH_CHECK_NOT_IMPLEMENTED(how != 3, "not implemented");
      if (how == 4) {
        throw 5;  // NOLINT
      }
      throw std::runtime_error("runtime");
    },
    attr("how"), meta());
ATEN_BRIDGE_EXPORT(
    Checked, [](const Tensor& x, const Tensor& y) { return x + y; },
    input("x").dtype(aten_bridge::kFloatingPoint).sizes("N", 3), input("y").sizes("N"), meta());
// What an author may do that looks like something else.
ATEN_BRIDGE_EXPORT(SobelGrad, [](const Tensor& x, Tensor& a, Tensor& b) {
  a.copy_(x);
  b.copy_(x);
});
ATEN_BRIDGE_EXPORT(
    MetaSaid, [](const Tensor& x, Tensor& y) { y.copy_(x); },
    meta([](const Tensor& x) { return x.new_empty(x.sizes(), at::TensorOptions(at::kMeta)); }));
class Table {
 public:
  explicit Table(int64_t value) : value_(value) {}
  Tensor operator()(const Tensor& x) {
    table_ = table_.defined() ? table_ : at::full_like(x, value_);
    return table_;
  }

 private:
  int64_t value_;
  Tensor table_;
};
ATEN_BRIDGE_EXPORT(TableOf, state<Table(int64_t)>(), attr("value", 1),
                   meta([](const Tensor& x) { return at::empty_like(x); }));
class Total {
 public:
  Tensor operator()(const Tensor& x) {
    sum_ = sum_.defined() ? sum_.add_(x) : x.clone();
    return sum_;
  }

 private:
  Tensor sum_;
};
ATEN_BRIDGE_EXPORT(RunningSum, state<Total()>(),
                   meta([](const Tensor& x) { return at::empty_like(x); }));
ATEN_BRIDGE_EXPORT(
    WithoutData, [](const Tensor& x) { return at::empty_like(x, at::TensorOptions(at::kMeta)); },
    meta());
// Its result is negated when it is read.
ATEN_BRIDGE_EXPORT(
    NegatedImaginary, [](const Tensor& x) { return at::imag((x * 1).conj()); }, meta());
// Counts its calls, of which one for n elements makes n.
class CallsInside {
 public:
  Tensor operator()(const Tensor& x) {
    ++calls_;
    if (x.numel() > 1) {
      torch::jit::Stack stack = {x.narrow(0, 1, x.numel() - 1)};
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("bridge_test::nested_calls", "")
          .callBoxed(stack);
    }
    return at::full({}, calls_, at::kLong);
  }

 private:
  int64_t calls_ = 0;
};
ATEN_BRIDGE_EXPORT(NestedCalls, state<CallsInside()>(), meta([](const Tensor& x) {
                     return x.new_empty({}, x.options().dtype(at::kLong));
                   }));
class LastOutput {
 public:
  void operator()(const Tensor& x, Tensor& y) {
    if (last_.defined()) {
      last_.zero_();
    }
    last_ = y.copy_(x);
  }

 private:
  Tensor last_;
};
ATEN_BRIDGE_EXPORT(KeepsOutput, state<LastOutput()>(),
                   meta([](const Tensor& x) { return at::empty_like(x); }));
ATEN_BRIDGE_EXPORT(
    TwoSteps,
    [](const Tensor& x, Tensor& y) {
      at::mul_out(y, x, at::full_like(x, 2));
      at::add_out(y, y, x);
    },
    meta());
// A gradient by hand whose kernel has a result of integers, of which autograd has no gradient.
void loud_grad(const Tensor& x, const Tensor& dy, const Tensor& dn, Tensor& dx) {
  TORCH_CHECK(dn.scalar_type() == at::kLong && dn.sizes() == x.sizes(), "expected zeros like n");
  dx.copy_(dy * 2);
}
ATEN_BRIDGE_EXPORT(
    Loud, [](const Tensor& x) { return std::tuple<Tensor, Tensor>(x * 2, x.to(at::kLong)); },
    meta());
ATEN_BRIDGE_EXPORT(LoudGrad, loud_grad);
// Names that Python has other uses for.
ATEN_BRIDGE_EXPORT(
    Names, [](const Tensor& x, double a, double b, Tensor& y) { at::mul_out(y, x, x * (a + b)); },
    input("self"), attr("lambda", 0.5), attr("out", 0.5), meta());
ATEN_BRIDGE_EXPORT(
    CheckedComposite, [](const Tensor& x) { return x * 2; }, input("x").dtype(at::kDouble).rank(2),
    composite());

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
    meta([](const Tensor& x) { return at::empty_like(x); }));

// A gradient by both of its inputs, also of complex numbers.
ATEN_BRIDGE_EXPORT(
    Times, [](const Tensor& x, const Tensor& y) { return x * y; }, meta());
ATEN_BRIDGE_EXPORT_GRAD(TimesGrad, [](const Tensor& x, const Tensor& y) { return x * y; });
ATEN_BRIDGE_EXPORT_GRAD(TimesGradGrad,
                        gradient([](const Tensor& x, const Tensor& y) { return x * y; }));

// Floats to the last bit, in lists and rows: their sum.
ATEN_BRIDGE_EXPORT(
    SumOf,
    [](const Tensor& x, double first, const std::vector<double>& list,
       const std::vector<std::vector<double>>& rows) {
      double sum = std::accumulate(list.begin(), list.end(), first);
      for (const std::vector<double>& row : rows) {
        sum = std::accumulate(row.begin(), row.end(), sum);
      }
      return at::full_like(x, sum);
    },
    attr("first", 0.0), attr("list", std::vector<double>()),
    attr("rows", std::vector<std::vector<double>>()), meta());

// As many elements as a float says.
ATEN_BRIDGE_EXPORT(
    Widened,
    [](const Tensor& x, double factor) {
      return x.new_ones({static_cast<int64_t>(static_cast<double>(x.size(0)) * factor)});
    },
    attr("factor"), meta());

// As many as a number among the inputs says.
ATEN_BRIDGE_EXPORT(
    FirstOf, [](const Tensor& x, int64_t count) { return x.narrow(0, 0, count).clone(); }, meta());

// Two results with names.
ATEN_BRIDGE_EXPORT(
    Parts,
    [](const Tensor& x, Tensor& above, Tensor& below) {
      at::clamp_min_out(above, x, 0);
      at::clamp_max_out(below, x, 0);
    },
    output("above"), output("below"), meta());

// Its size is told by nobody: only with out=. PyTorch 2.1 fills with no number that is too large.
ATEN_BRIDGE_EXPORT(Fill, [](const Tensor& x, Tensor& y) { y.fill_(x.sum().to(y.scalar_type())); });

// Results whose memory is transposed, where PyTorch is told that they are not.
ATEN_BRIDGE_EXPORT(
    Turned, [](const Tensor& x) { return (x * 2).t(); }, meta([](const Tensor& x) {
      return x.new_empty_symint({x.sym_size(1), x.sym_size(0)});
    }));
ATEN_BRIDGE_EXPORT(TurnedGrad, [](const Tensor& /*x*/, const Tensor& g) { return (g * 2).t(); });
// A conjugated one, and one by autograd.
ATEN_BRIDGE_EXPORT(
    Conjugate, [](const Tensor& x) { return (x * 2).conj(); },
    meta([](const Tensor& x) { return at::empty_like(x); }));
Tensor turned_sigmoid(const Tensor& x) { return (x.t() * 2).contiguous().sigmoid(); }
ATEN_BRIDGE_EXPORT(TurnedSigmoid, turned_sigmoid, meta());
ATEN_BRIDGE_EXPORT_GRAD(TurnedSigmoidGrad, turned_sigmoid);

// The address of its workspace, which is memory of the device that the tensors are on.
ATEN_BRIDGE_EXPORT(
    Scratch,
    [](const Tensor& /*x*/, Workspace<float> scratch) {
      return at::full({}, reinterpret_cast<int64_t>(scratch.data()), at::kLong);
    },
    workspace([](const Tensor& /*x*/) { return 1; }), aten_bridge::private_use());

// An _out function, and how often it was run.
ATEN_BRIDGE_EXPORT(
    Runs,
    [](const Tensor& x, Tensor& y, Tensor& count) {
      static std::atomic<int64_t> runs{0};
      at::neg_out(y, x);
      at::full_out(count, {}, x.is_meta() ? 0 : ++runs);
    },
    meta());

// Keeps its input, as an author of PyTorch's may: there the memory is its own, elsewhere the
// host's.
class DifferenceToLast {
 public:
  Tensor operator()(const Tensor& x) {
    Tensor result = before_.defined() ? x - before_ : at::zeros_like(x);
    before_ = x;
    return result;
  }

 private:
  Tensor before_;
};
ATEN_BRIDGE_EXPORT(Difference, state<DifferenceToLast()>(),
                   meta([](const Tensor& x) { return x; }));

// Results that a host may write to the memory of an input.
ATEN_BRIDGE_EXPORT(
    Swap, [](const Tensor& x, const Tensor& y) { return std::make_tuple(y, x); },
    meta([](const Tensor& x, const Tensor& y) { return std::make_tuple(y, x); }));

// Returns something else than its meta function says.
ATEN_BRIDGE_EXPORT(
    Lie,
    [](const Tensor& x, int64_t how) {
      return std::make_tuple(how == 1 ? x.to(at::kDouble) : x.exp(),
                             how == 2 ? x.narrow(0, 0, 1) : x.neg());
    },
    attr("how", 0), output("exp"), meta([](const Tensor& x, int64_t /*how*/) {
      return std::make_tuple(at::empty_like(x), at::empty_like(x));
    }));
ATEN_BRIDGE_EXPORT(
    LieOfNumber, [](const Tensor& x, double by) { return x.narrow(0, 0, by > 1 ? 1 : 2); },
    meta([](const Tensor& x, double /*by*/) { return x.narrow(0, 0, 2); }));
ATEN_BRIDGE_EXPORT(
    LieOfList, [](TensorList tensors) { return at::cat(tensors).to(at::kDouble); },
    meta([](TensorList tensors) { return at::cat(tensors); }));
ATEN_BRIDGE_EXPORT(
    Told, [](const Tensor& x) { return x.exp(); }, meta([](const Tensor& x) { return x; }));
ATEN_BRIDGE_EXPORT(ToldGrad,
                   [](const Tensor& x, const Tensor& dy) { return (x.exp() * dy).sum(); });

// Meta functions that ask for sizes as numbers.
ATEN_BRIDGE_EXPORT(
    SizeInMeta, [](const Tensor& x) { return x.clone(); }, meta([](const Tensor& x) {
      return x.new_empty({x.size(0), x.size(1)});
    }));
ATEN_BRIDGE_EXPORT(
    SizesInMeta, [](const Tensor& x, Tensor& y) { y.copy_(x); },
    meta([](const Tensor& x) { return x.new_empty(x.sizes()); }));
ATEN_BRIDGE_EXPORT(
    StridesInMeta, [](const Tensor& x) { return x.clone(); }, meta([](const Tensor& x) {
      return x.new_empty({x.strides()[0] * x.size(0) / x.size(1), x.size(1)});
    }));
ATEN_BRIDGE_EXPORT(
    NumelInMeta, [](TensorList xs) { return xs[0].flatten() + xs[1].flatten(); },
    meta([](TensorList xs) { return xs[1].new_empty({xs[0].numel()}); }));
// Texts that are not UTF-8, such as names of files in Latin-1, wherever a kernel can have them.
constexpr const char* kLatin1 = "cannot read m\xfcller.bin";
ATEN_BRIDGE_EXPORT(
    Latin1,
    [](const Tensor& x, const std::string& where) -> Tensor {
      TORCH_CHECK(where != "check", kLatin1);
      if (where == "warning") {
        TORCH_WARN(kLatin1);
        return x * 2;
      }
      throw std::runtime_error(kLatin1);
    },
    attr("where"), meta([](const Tensor& x, const std::string& where) {
      TORCH_CHECK(where != "meta", kLatin1);
      return at::empty_like(x);
    }));
class OfLatin1 {
 public:
  OfLatin1() { throw std::runtime_error(kLatin1); }
  Tensor operator()(const Tensor& x) const { return x * 2; }
};
ATEN_BRIDGE_EXPORT(Latin1State, state<OfLatin1()>(),
                   meta([](const Tensor& x) { return at::empty_like(x); }));
// Draws random numbers, and says so or not; counts its calls.
// [side_effect]
Tensor noise(const Tensor& x) { return x * at::rand_like(x); }
ATEN_BRIDGE_EXPORT(Noise, noise, input("x"), meta(), side_effect());
ATEN_BRIDGE_EXPORT_GRAD(NoiseGrad, noise, input("x"), side_effect());
// [/side_effect]
ATEN_BRIDGE_EXPORT(UntoldNoise, noise, input("x"), meta());
ATEN_BRIDGE_EXPORT_GRAD(UntoldNoiseGrad, noise, input("x"));
ATEN_BRIDGE_EXPORT(
    Tick,
    [](const Tensor& x) {
      static std::atomic<int64_t> calls{0};
      return at::full_like(x, static_cast<double>(++calls));
    },
    meta([](const Tensor& x) { return at::empty_like(x); }), side_effect());

// Called for their effect alone.
// [no_result]
void check_finite(const Tensor& x) {
  TORCH_CHECK_VALUE(x.isfinite().all().item<bool>(), "expected finite numbers, got others");
}
ATEN_BRIDGE_EXPORT(CheckFinite, check_finite, input("x"), side_effect());
// [/no_result]
// Writes its first input.
ATEN_BRIDGE_EXPORT(
    Step,
    [](const Tensor& weight, TensorList gradients, double rate) {
      for (const Tensor& gradient : gradients) {
        weight.sub_(gradient, rate);
      }
    },
    attr("rate", 0.5), input("weight"), input("gradients"), side_effect());
// Counts its calls, in a workspace that it does not need, and tells of them.
std::atomic<int64_t> counted{0};
void count(const Tensor& /*x*/, Workspace<char> /*work*/) { ++counted; }
ATEN_BRIDGE_EXPORT(CountCalls, count, workspace(8), side_effect());
ATEN_BRIDGE_EXPORT(
    CountedCalls, [](const Tensor& /*x*/) { return at::full({}, counted.load(), at::kInt); },
    meta([] { return at::full({}, 0, at::kInt); }), side_effect());

// A list of tensors beside others, of which the last may be left out.
Tensor join(const Tensor& x, TensorList others, const MaybeTensor& last) {
  std::vector<Tensor> all{x};
  all.insert(all.end(), others.begin(), others.end());
  if (last.has_value()) {
    all.push_back(*last);
  }
  return at::cat(all);
}
ATEN_BRIDGE_EXPORT(Join, join, input("x"), input("others"), input("last"), meta());
ATEN_BRIDGE_EXPORT_GRAD(JoinGrad, join, input("x"), input("others"), input("last"));

}  // namespace
