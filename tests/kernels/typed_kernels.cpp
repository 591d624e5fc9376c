// Kernels for the tests of what stands beside plain tensors in a signature: attributes, numbers,
// optional tensors and lists of tensors, state, workspaces; and for checks and meta functions. Most
// print what they are called with into an output of bytes.
#include <ATen/core/Tensor.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/topk.h>

#include <aten_bridge.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using at::Tensor;
using at::TensorList;
using aten_bridge::attr;
using aten_bridge::input;
using aten_bridge::meta;
using aten_bridge::output;
using aten_bridge::state;
using aten_bridge::Workspace;
using aten_bridge::workspace;

//===--- texts ---===//

std::string text(bool value) { return value ? "true" : "false"; }
std::string text(int64_t value) { return std::to_string(value); }
std::string text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.17g", value);
  return digits;
}
std::string text(std::string_view value) { return '"' + std::string(value) + '"'; }
std::string text(at::ScalarType value) { return c10::toString(value); }
std::string text(const at::Scalar& value) {
  return value.isBoolean()         ? "bool " + text(value.toBool())
         : value.isIntegral(false) ? "int " + text(value.toLong())
         : value.isComplex()       ? "complex " + text(value.toComplexDouble().real()) + ' ' +
                                   text(value.toComplexDouble().imag())
                             : "float " + text(value.toDouble());
}
// The sum of its elements, which also shows that they can be read.
std::string text(const Tensor& value) {
  return value.defined() ? text(value.to(at::kDouble).sum().item<double>()) : "undefined";
}
template <class T>
std::string text(at::ArrayRef<T> values);
template <class T>
std::string text(const std::vector<T>& values) {
  return text(at::ArrayRef<T>(values));
}
template <class T>
std::string text(at::ArrayRef<T> values) {
  std::string list = "[";
  for (const T& value : values) {
    list.append(list.size() == 1 ? "" : ", ").append(text(value));
  }
  return list + ']';
}
template <class T>
std::string text(const std::optional<T>& value) {
  return value.has_value() ? text(*value) : "none";
}
std::string text(const at::OptionalIntArrayRef& value) {
  return value.has_value() ? text(*value) : "none";
}

// The texts of the values, a space between them.
template <class... T>
std::string text_of_all(const T&... values) {
  std::string line;
  ((line += (line.empty() ? "" : " ") + text(values)), ...);
  return line;
}

// Fills an output of bytes with it, and then with zeros.
template <class... T>
void print(Tensor& y, const T&... values) {
  const std::string line = text_of_all(values...);
  TORCH_CHECK(static_cast<int64_t>(line.size()) < y.numel());
  y.zero_();
  std::memcpy(y.mutable_data_ptr(), line.data(), line.size());
}

// Fills an int64 output of as many elements.
void store(Tensor& y, std::initializer_list<int64_t> values) {
  TORCH_CHECK(static_cast<int64_t>(values.size()) == y.numel());
  std::copy(values.begin(), values.end(), y.mutable_data_ptr<int64_t>());
}

int64_t address(const void* data) { return reinterpret_cast<int64_t>(data); }

//===--- attributes ---===//

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
using IntLists = std::vector<Ints>;
using DoubleLists = std::vector<Doubles>;

void print_values(bool flag, int64_t integer, double real, const std::string& string,
                  const Ints& integers, const Doubles& reals, const IntLists& integer_lists,
                  const DoubleLists& real_lists, at::ScalarType dtype, const at::Scalar& number,
                  Tensor& y) {
  print(y, flag, integer, real, string, integers, reals, integer_lists, real_lists, dtype, number);
}
Tensor throw_values(bool flag, int64_t integer, double real, const std::string& string,
                    const Ints& integers, const Doubles& reals, const IntLists& integer_lists,
                    const DoubleLists& real_lists, at::ScalarType dtype, const at::Scalar& number) {
  TORCH_CHECK(false, text_of_all(flag, integer, real, string, integers, reals, integer_lists,
                                 real_lists, dtype, number));
}
void print_optional(std::optional<bool> flag, std::optional<int64_t> integer,
                    std::optional<double> real, const std::optional<std::string>& string,
                    const std::optional<Ints>& integers, const std::optional<Doubles>& reals,
                    const std::optional<IntLists>& integer_lists,
                    const std::optional<DoubleLists>& real_lists,
                    std::optional<at::ScalarType> dtype, const std::optional<at::Scalar>& number,
                    Tensor& y) {
  print(y, flag, integer, real, string, integers, reals, integer_lists, real_lists, dtype, number);
}
void print_views(at::IntArrayRef integers, at::ArrayRef<double> reals, std::string_view string,
                 at::OptionalIntArrayRef maybe_integers, std::optional<std::string_view> maybe,
                 Tensor& y) {
  print(y, integers, reals, string, maybe_integers, maybe);
}

//===--- numbers, optional tensors, lists ---===//

template <class T>
void print_number(T number, Tensor& y) {
  print(y, number);
}

void print_anywhere(const std::optional<Tensor>& a, const Tensor& b, std::optional<Tensor> c,
                    Tensor& y, const std::optional<Tensor>& d) {
  print(y, a, b, c, d);
}
void print_list(TensorList list, Tensor& y) { print(y, list); }
void print_around(const Tensor& first, Tensor& y, const std::string& name, TensorList list,
                  const std::optional<Tensor>& bias, Tensor& z, int64_t number) {
  print(y, first, name, list, bias, number);
  z.fill_(number);
}

//===--- state ---===//

struct Accumulator {
  explicit Accumulator(double start) : sum(start) {}
  void operator()(const Tensor& x, Tensor& y) {
    sum += x.sum().item<double>();
    y.fill_(sum);
  }
  double sum;
};

// Prints what its constructor saw.
struct FirstCall {
  FirstCall(std::string_view given_name, int64_t given_count, TensorList given)
      : name(given_name), count(given_count) {
    for (const Tensor& tensor : given) {
      inputs += !tensor.defined()
                    ? "None;"
                    : c10::toString(tensor.scalar_type()) + text(tensor.sizes()) +
                          (tensor.is_meta() && !tensor.is_cpu() ? " without data;" : " with data;");
    }
  }
  void operator()(const Tensor& /*x*/, const std::optional<Tensor>& /*w*/, int64_t number,
                  Tensor& y) const {
    print(y, name, count, inputs, number);
  }
  std::string name;
  int64_t count;
  std::string inputs;
};

template <class Access>
struct Touches {
  explicit Touches(TensorList inputs) { Access()(inputs[0]); }
  void operator()(const Tensor& x, Tensor& y) const { y.copy_(x); }
};
struct Read {
  void operator()(const Tensor& x) const { x.const_data_ptr(); }
};
struct Write {
  void operator()(const Tensor& x) const { x.data_ptr(); }
};

// Every other one cannot be made.
struct ThrowsAtFirst {
  ThrowsAtFirst() { TORCH_CHECK(++attempts % 2 == 0, "there is no such file"); }
  void operator()(const Tensor& /*x*/, Tensor& y) const { y.fill_(attempts.load()); }
  static inline std::atomic<int> attempts = 0;
};

struct Counted {
  explicit Counted(int64_t given_number) : number(given_number) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  void operator()(const Tensor& /*x*/, Tensor& y) const { y.fill_(number); }
  int64_t number;
  static inline std::atomic<int> alive = 0;
};

// Says whether two threads are in one object at the same time. Waits for the other one as long as
// it is told.
class Meeting {
 public:
  explicit Meeting(int64_t milliseconds) : patience_(milliseconds) {}

 protected:
  void meet(Tensor& y) const {
    const auto end = std::chrono::steady_clock::now() + patience_;
    if (++inside_ == 2) {
      met_ = true;
    }
    while (!met_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    --inside_;
    y.fill_(met_.load());
  }

 private:
  std::chrono::milliseconds patience_;
  mutable std::atomic<int> inside_ = 0;
  mutable std::atomic<bool> met_ = false;
};
struct ConstMeeting : Meeting {
  using Meeting::Meeting;
  void operator()(Tensor& y) const { meet(y); }
};
struct MutableMeeting : Meeting {
  using Meeting::Meeting;
  void operator()(Tensor& y) { meet(y); }
};

//===--- workspaces ---===//

// {address, size} of each.
void use_workspaces(const Tensor& /*x*/, Workspace<float> constant, int64_t /*each*/,
                    const Workspace<int64_t>& computed, Tensor& y) {
  std::fill(constant.begin(), constant.end(), 1.0F);
  std::fill(computed.begin(), computed.end(), 2);
  store(y, {address(constant.data()), static_cast<int64_t>(constant.size()),
            address(computed.data()), static_cast<int64_t>(computed.size())});
}

//===--- shapes before a call ---===//

std::tuple<Tensor, Tensor> transpose_and_sum(const Tensor& x) { return {x.t(), x.sum()}; }
Tensor conjugate_pairs(const Tensor& x) {
  TORCH_CHECK(x.is_complex(), "expected complex numbers");
  return x.conj().resolve_conj();
}

}  // namespace

// clang-format off
ATEN_BRIDGE_EXPORT(Values, print_values, attr("flag"), attr("integer"), attr("real"),
                   attr("string"), attr("integers"), attr("reals"), attr("integer_lists"),
                   attr("real_lists"), attr("dtype"), attr("number"), meta(throw_values));
ATEN_BRIDGE_EXPORT(Defaults, print_values, attr("flag", true), attr("integer", -2), attr("real", 3),
                   attr("string", "text"), attr("integers", {4, 5}), attr("reals", {0.5, 1.5}),
                   attr("integer_lists", IntLists{{6}, {}}), attr("real_lists", DoubleLists{{2.5}}),
                   attr("dtype", at::kHalf), attr("number", 0.25));
ATEN_BRIDGE_EXPORT(Optional, print_optional, attr("flag"), attr("integer"), attr("real"),
                   attr("string"), attr("integers"), attr("reals"), attr("integer_lists"),
                   attr("real_lists"), attr("dtype"), attr("number"));
ATEN_BRIDGE_EXPORT(OptionalDefaults, print_optional, attr("flag", false), attr("integer", 2),
                   attr("real", 0.5), attr("string", "text"), attr("integers", {4, 5}),
                   attr("reals", {0.5}), attr("integer_lists", std::nullopt),
                   attr("real_lists", std::nullopt), attr("dtype", at::kInt), attr("number", 7));
ATEN_BRIDGE_EXPORT(AttributeViews, print_views, attr("integers", {1, 2}), attr("reals", {0.5}),
                   attr("string", "a string that is too long to be kept in place"),
                   attr("maybe_integers"), attr("maybe"));
// clang-format on
ATEN_BRIDGE_EXPORT(
    ListDefaults,
    [](const Ints& none, const DoubleLists& no_lists, const IntLists& integer_lists,
       const DoubleLists& real_lists,
       Tensor& y) { print(y, none, no_lists, integer_lists, real_lists); },
    attr("none", {}), attr("no_lists", {}), attr("integer_lists", {{1, 2}, {3}}),
    attr("real_lists", {{0.5}, {}}));
ATEN_BRIDGE_EXPORT(
    Real, [](double real, Tensor& y) { y.fill_(real); }, attr("real"));
ATEN_BRIDGE_EXPORT(
    Reals, [](const Doubles& reals, Tensor& y) { print(y, reals); }, attr("reals"));
ATEN_BRIDGE_EXPORT(LeakyRelu, at::leaky_relu, attr("negative_slope", 0.01), meta());

ATEN_BRIDGE_EXPORT(ToBool, print_number<bool>);
ATEN_BRIDGE_EXPORT(ToInt, print_number<int64_t>);
ATEN_BRIDGE_EXPORT(ToDouble, print_number<double>);
ATEN_BRIDGE_EXPORT(ToScalar, print_number<const at::Scalar&>);
ATEN_BRIDGE_EXPORT(ToOptionalBool, print_number<std::optional<bool>>);
ATEN_BRIDGE_EXPORT(ToOptionalInt, print_number<std::optional<int64_t>>);
ATEN_BRIDGE_EXPORT(ToOptionalDouble, print_number<std::optional<double>>);
ATEN_BRIDGE_EXPORT(ToOptionalScalar, print_number<const std::optional<at::Scalar>&>);

ATEN_BRIDGE_EXPORT(Anywhere, print_anywhere);
ATEN_BRIDGE_EXPORT(List, print_list);
ATEN_BRIDGE_EXPORT(Around, print_around, attr("name", "list"));

ATEN_BRIDGE_EXPORT(Accumulate, state<Accumulator(double)>(), attr("start", 0));
ATEN_BRIDGE_EXPORT(FirstCall, state<FirstCall(std::string_view, int64_t, TensorList)>(),
                   attr("name", "first"), attr("count"));
ATEN_BRIDGE_EXPORT(StateReads, state<Touches<Read>(TensorList)>());
ATEN_BRIDGE_EXPORT(StateWrites, state<Touches<Write>(TensorList)>());
ATEN_BRIDGE_EXPORT(ThrowsAtFirst, state<ThrowsAtFirst()>());
ATEN_BRIDGE_EXPORT(Counted, state<Counted(int64_t)>(), attr("number", 7));
ATEN_BRIDGE_EXPORT(Alive, [](Tensor& y) { y.fill_(Counted::alive.load()); });
ATEN_BRIDGE_EXPORT(ConstMeeting, state<ConstMeeting(int64_t)>(), attr("milliseconds"));
ATEN_BRIDGE_EXPORT(MutableMeeting, state<MutableMeeting(int64_t)>(), attr("milliseconds"));

ATEN_BRIDGE_EXPORT(Workspaces, use_workspaces, attr("each", 3), workspace(5),
                   workspace([](const Tensor& x, int64_t each) { return x.numel() * each; }));
ATEN_BRIDGE_EXPORT(
    WorkspaceOfAConstant,
    [](Workspace<double> numbers, Tensor& y) {
      store(y, {address(numbers.data()) % static_cast<int64_t>(alignof(double)),
                static_cast<int64_t>(numbers.size())});
    },
    workspace(3));
struct alignas(256) Aligned {
  float values[64];
};
ATEN_BRIDGE_EXPORT(
    AlignedWorkspace,
    [](Workspace<Aligned> numbers, Tensor& y) {
      std::memset(numbers.data(), 1, numbers.size() * sizeof(Aligned));
      store(y, {address(numbers.data()), static_cast<int64_t>(numbers.size())});
    },
    workspace(2));
ATEN_BRIDGE_EXPORT(
    NegativeWorkspace, [](const Tensor& /*x*/, Workspace<float> /*w*/, Tensor& y) { y.zero_(); },
    workspace([](const Tensor& x) { return x.numel() - 4; }));
ATEN_BRIDGE_EXPORT(
    HugeWorkspace, [](const Tensor& /*x*/, Workspace<float> /*w*/, Tensor& y) { y.zero_(); },
    workspace([](const Tensor& /*x*/) { return int64_t{1} << 61; }));
ATEN_BRIDGE_EXPORT(
    WorkspaceAt,
    [](int64_t index, Workspace<float> numbers, Tensor& y) {
      numbers.at(static_cast<std::size_t>(index)) = 7;
      y.fill_(numbers[static_cast<std::size_t>(index)]);
    },
    workspace(3));
ATEN_BRIDGE_EXPORT(
    WorkspaceOfAList,
    [](TensorList /*list*/, Workspace<float> numbers, Tensor& y) {
      y.fill_(static_cast<int64_t>(numbers.size()));
    },
    workspace([](TensorList list) { return static_cast<int64_t>(list.size()); }));

ATEN_BRIDGE_EXPORT(
    CheckedDtypes, [](const Tensor& /*x*/, int64_t /*index*/, Tensor& y) { y.zero_(); },
    input("x").dtype(aten_bridge::kFloatingPoint | aten_bridge::kComplex),
    input("index").dtype(at::kInt, at::kLong), output("y").dtype(at::kFloat));
ATEN_BRIDGE_EXPORT(
    CheckedRanks, [](const Tensor& /*a*/, const Tensor& /*b*/, Tensor& y) { y.zero_(); },
    input("a").rank(2), input("b").rank(1, 3));
ATEN_BRIDGE_EXPORT(
    CheckedSizes,
    [](const Tensor& /*x*/, const std::optional<Tensor>& /*w*/, TensorList /*list*/, Tensor& y) {
      y.zero_();
    },
    input("x").dtype(at::kFloat).sizes("N", 3, "...", "C"), input("weight").sizes("C", "C"),
    input("list").sizes("N"), output("y").sizes("N", "..."),
    meta([](const Tensor& x) { return x; }));
ATEN_BRIDGE_EXPORT(
    CheckedTwice, [](const Tensor& /*x*/, Tensor& y) { y.zero_(); },
    input("x").sizes("...", "C", "..."));
ATEN_BRIDGE_EXPORT(
    CheckedScalar, [](const Tensor& /*x*/, Tensor& y) { y.zero_(); }, input("x").sizes());

ATEN_BRIDGE_EXPORT(TransposeAndSum, transpose_and_sum, meta());
ATEN_BRIDGE_EXPORT(
    Embed,
    [](const Tensor& weight, const Tensor& indices) { return weight.index_select(0, indices); },
    meta([](const Tensor& weight, const Tensor& indices) {
      TORCH_CHECK(weight.is_floating_point() && indices.scalar_type() == at::kLong,
                  "expected floats and int64 indices");
      return weight.new_empty({indices.size(0), weight.size(1)});
    }));
ATEN_BRIDGE_EXPORT(
    Where, [](const Tensor& mask, const Tensor& a, const Tensor& b) { return a.where(mask, b); },
    meta([](const Tensor& mask, const Tensor& a, const Tensor& b) {
      TORCH_CHECK(mask.scalar_type() == at::kBool, "expected a mask of bools");
      return a.add(b).mul(mask);
    }));
// What has no meta function in PyTorch's C++.
ATEN_BRIDGE_EXPORT(
    WhereByItself,
    [](const Tensor& mask, const Tensor& a, const Tensor& b) { return a.where(mask, b); }, meta());
ATEN_BRIDGE_EXPORT(
    SameRows, [](const Tensor& a, const Tensor& b) { return a.add(b); },
    meta([](const Tensor& a, const Tensor& b) {
      TORCH_CHECK(a.size(0) == b.size(0), "expected as many rows");
      return a.new_empty({a.size(0), 2});
    }));
ATEN_BRIDGE_EXPORT(ConjugatePairs, conjugate_pairs, meta());
ATEN_BRIDGE_EXPORT(
    TopK, [](const Tensor& x, int64_t k, int64_t dim) { return at::topk(x, k, dim); }, attr("k"),
    attr("dim", -1), meta());
ATEN_BRIDGE_EXPORT(
    LeakyReluOut, [](const Tensor& x, Tensor& y) { at::leaky_relu_out(y, x); }, meta());
ATEN_BRIDGE_EXPORT(
    WriteOut,
    [](const Tensor& x, Tensor& y) {
      y.resize_({x.dim(), 2});
    },
    meta());
ATEN_BRIDGE_EXPORT(
    Fill, [](const Tensor& /*x*/, Tensor& y) { y.fill_(3); }, meta());
ATEN_BRIDGE_EXPORT(
    CopyTwice, [](const Tensor& x, Tensor& y) { y.copy_(x.mul(2)); }, meta());
ATEN_BRIDGE_EXPORT(
    AddTo, [](const Tensor& x, const Tensor& z, Tensor& y) { y.copy_(x).add_(z); },
    meta([](const Tensor& x, const Tensor& z) { return x.add(z); }));
// How often a window of the second's size fits in the first.
ATEN_BRIDGE_EXPORT(
    Windows, [](const Tensor& x, const Tensor& w) { return x.unfold(0, w.size(0), 1).sum(1); },
    meta([](const Tensor& x, const Tensor& w) {
      return x.new_empty({x.size(0) - w.size(0) + 1, x.size(0) / w.size(0)});
    }));
ATEN_BRIDGE_EXPORT(
    Scaled,
    [](const Tensor& x, double factor, bool negate) { return x.mul(negate ? -factor : factor); },
    meta());
ATEN_BRIDGE_EXPORT(
    FirstRows, [](const Tensor& x, int64_t count) { return x.narrow(0, 0, count); }, meta());
ATEN_BRIDGE_EXPORT(
    AnyNumber, [](const Tensor& x, const at::Scalar& /*number*/) { return x; }, meta());
ATEN_BRIDGE_EXPORT(
    MetaItem, [](const Tensor& x) { return x.mul(x.item()); }, meta());
ATEN_BRIDGE_EXPORT(
    MetaNonzero, [](const Tensor& x) { return at::nonzero(x); }, meta());
ATEN_BRIDGE_EXPORT(
    CheckedResult, [](const Tensor& x) { return x.mul(2); }, input("x").sizes("N", "C"),
    output("y").dtype(at::kInt).sizes("C", "N"), meta());
ATEN_BRIDGE_EXPORT(
    Convert, [](const Tensor& x, at::ScalarType dtype) { return x.to(dtype); }, attr("dtype"),
    meta());
ATEN_BRIDGE_EXPORT(
    AnyInputs,
    [](const Tensor& x, const std::optional<Tensor>& w, int64_t rows, TensorList list) {
      return x.expand({rows, x.size(-1) + (w.has_value() ? w->size(0) : 0) +
                                 static_cast<int64_t>(list.size())});
    },
    meta([](const Tensor& x, const std::optional<Tensor>& w, int64_t rows, TensorList list) {
      return x.new_empty({rows, x.size(-1) + (w.has_value() ? w->size(0) : 0) +
                                    static_cast<int64_t>(list.size())});
    }));
ATEN_BRIDGE_EXPORT(
    Maybe,
    [](const Tensor& x, std::optional<double> factor, std::optional<bool> flag) {
      return x.mul(factor.value_or(1)).mul(flag.value_or(true));
    },
    meta([](const Tensor& x, std::optional<double> factor, std::optional<bool> flag) {
      return x.new_empty({factor.has_value() ? static_cast<int64_t>(*factor * 2) : 0,
                          flag.has_value() ? (*flag ? 2 : 1) : 0});
    }));
ATEN_BRIDGE_EXPORT(WithoutMeta, [](const Tensor& x) { return x.mul(2); });
ATEN_BRIDGE_EXPORT(
    MetaReads, [](const Tensor& x) { return x.mul(2); }, meta([](const Tensor& x) {
      x.const_data_ptr();
      return x;
    }));
ATEN_BRIDGE_EXPORT(
    MetaWrites, [](const Tensor& x) { return x.mul(2); }, meta([](const Tensor& x) {
      x.data_ptr();
      return x;
    }));
ATEN_BRIDGE_EXPORT(
    MetaUndefined, [](const Tensor& x) { return x.mul(2); },
    meta([](const Tensor& /*x*/) { return Tensor(); }));
ATEN_BRIDGE_EXPORT(
    MetaOfAnotherDtype, [](const Tensor& x) { return x.mul(2); },
    meta([](const Tensor& x) { return x.to(at::kComplexHalf); }));
ATEN_BRIDGE_EXPORT(
    MetaThrows, [](const Tensor& x) { return x.mul(2); }, meta([](const Tensor& x) -> Tensor {
      TORCH_CHECK(x.dim() == 7, "rank ", x.dim(), " is not seven");
      return x;
    }));
ATEN_BRIDGE_EXPORT(StateWithMeta, state<Accumulator(double)>(), attr("start"),
                   meta([](const Tensor& x, double start) {
                     return x.new_empty({static_cast<int64_t>(start)});
                   }));
ATEN_BRIDGE_EXPORT(
    CheckedMeta, [](const Tensor& x) { return x.mul(2); }, input("x").dtype(at::kShort).rank(2),
    meta([](const Tensor& x) {
      TORCH_CHECK(x.scalar_type() == at::kShort, "expected the dtype of the check");
      return x;
    }));
ATEN_BRIDGE_EXPORT(OverFrame, [](const aten_bridge::CallFrame& /*frame*/) {});
