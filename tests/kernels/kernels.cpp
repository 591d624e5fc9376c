// Kernels for the tests: each does one thing that the bridge promises to carry or to catch.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_add_batch_dim.h>
#include <ATen/ops/add.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <aten_bridge.h>
#include <c10/core/AutogradState.h>

#include <atomic>
#include <cfenv>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using at::Tensor;

// Fills a one-dimensional int64 output.
void store(Tensor& output, const std::vector<int64_t>& values) { output.copy_(at::tensor(values)); }

//===--- what the bridge carries ---===//

void copy(const Tensor& x, Tensor& y) { y.copy_(x); }
void add_subtract(const Tensor& a, const Tensor& b, Tensor& sum, Tensor& difference) {
  at::add_out(sum, a, b);
  difference.copy_(a - b);
}
Tensor leaky_relu_result(const Tensor& x) { return at::leaky_relu(x); }
std::tuple<Tensor, Tensor> minmax(const Tensor& x) { return {x.min(), x.max()}; }
std::pair<Tensor, Tensor> minmax_pair(const Tensor& x) { return {x.min(), x.max()}; }
Tensor add_if_given(const Tensor& x, const std::optional<Tensor>& bias) {
  return bias.has_value() ? x + *bias : x;
}
Tensor add_if_first_given(std::optional<Tensor> bias, Tensor x) noexcept {
  return bias.has_value() ? x + *bias : x;
}
void sum_19(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, const Tensor& e,
            const Tensor& f, const Tensor& g, const Tensor& h, const Tensor& i, const Tensor& j,
            const Tensor& k, const Tensor& l, const Tensor& m, const Tensor& n, const Tensor& o,
            const Tensor& p, const Tensor& q, const Tensor& r, const Tensor& s, Tensor& sum) {
  sum.copy_(at::stack({a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s}).sum(0));
}
void sum_slots(const aten_bridge::CallFrame& frame) {
  std::vector<Tensor> slots = aten_bridge::tensors(frame);
  Tensor sum = slots.back();
  slots.pop_back();
  sum.copy_(at::stack(slots).sum(0));
}
void first_slot(const aten_bridge::CallFrame& frame) {
  const std::vector<Tensor> slots = aten_bridge::tensors(frame, {1, 0});
  slots[0].copy_(slots[1]);
}
void bad_slot(const aten_bridge::CallFrame& frame) { aten_bridge::tensors(frame, {0, 2, -1}); }
void forty_two(Tensor& y) { y.fill_(42); }

// The output stands first, as in ATen's own _out functions.
Tensor& exp_out(Tensor& y, const Tensor& x) { return y.copy_(x.exp()); }

struct Halve {
  void operator()(const Tensor& x, Tensor& y) const { y.copy_(x / 2); }
};

//===--- what a view is ---===//

void describe(const Tensor& x, Tensor& y) {
  store(y, {reinterpret_cast<int64_t>(x.data_ptr()), x.dim(), x.numel(), x.is_contiguous(),
            x.is_inference(), x.requires_grad(), static_cast<int64_t>(x.scalar_type())});
}
void describe_output(const Tensor& /*x*/, Tensor& y) {
  store(y, {reinterpret_cast<int64_t>(y.data_ptr()), y.is_inference()});
}
// Keeps memory of the host's in one of many ways, or reads what it kept.
void keep(const Tensor& x, at::TensorList more, const std::string& how, Tensor& y) {
  static Tensor kept;
  static c10::Storage storage;
  static c10::weak_intrusive_ptr<c10::TensorImpl> weak(Tensor().getIntrusivePtr());
  if (how == "input" || how == "throw") {
    kept = x;
  } else if (how == "slice") {
    kept = x.slice(0, 0, 1);
  } else if (how == "contiguous") {
    kept = x.contiguous();
  } else if (how == "detached") {
    kept = x.detach();
  } else if (how == "of the list") {
    kept = more[1];
  } else if (how == "several") {
    kept = x;
    storage = y.storage();
  } else if (how == "output") {
    kept = y;
  } else if (how == "storage") {
    storage = x.storage();
  } else if (how == "clone") {
    kept = x.clone();
  } else if (how == "own memory") {
    kept = at::ones_like(x);
    x.set_(kept);
  } else if (how == "another's memory") {
    x.set_(y);
  } else if (how == "weak") {
    weak = c10::weak_intrusive_ptr<c10::TensorImpl>(x.getIntrusivePtr());
  } else if (how == "thread") {  // which has done its work, and is about to drop the tensor
    std::thread([x] {}).detach();
  } else if (how == "read") {
    y.copy_(kept);
  } else if (how == "read storage") {
    y.fill_(*static_cast<const float*>(storage.data()));
  } else {
    kept = Tensor();
    storage = c10::Storage();
  }
  if (how == "throw") {
    throw std::runtime_error("on purpose");
  }
}
#if __has_include(<ATen/core/NamedTensor.h>)  // PyTorch before 2.15
bool has_names(const Tensor& x) { return x.has_names(); }
#else
bool has_names(const Tensor& /*x*/) { return false; }
#endif
// What x is like, and then something that x should not be in the next call.
void spoil(const Tensor& x, int64_t how, Tensor& y) {
  static std::vector<Tensor> aliases;
  static std::vector<c10::Storage> storages;
  static c10::weak_intrusive_ptr<c10::TensorImpl> weak(Tensor().getIntrusivePtr());
  store(y, {x.dim(), x.size(0), x.stride(0), x.stride(1), x.storage_offset(), x.requires_grad(),
            x.is_neg() || has_names(x), static_cast<int64_t>(x.storage().nbytes()),
            x.flatten()[0].item<int64_t>()});
  switch (how) {
    case 0:
      x.t_();
      break;
    case 1:
      x.as_strided_({1, 2}, {77, 1}, 1);
      break;
    case 2:
      x.set_requires_grad(true);
      break;
    case 3:
      x._set_neg(true);
      break;
    case 4:
      x.resize_({100, 100});
      break;
    case 5:
      x.set_data(at::tensor({7, 7}, at::kFloat));
      break;
    case 6:
      aliases.push_back(x.view({-1}));
      break;
    case 7:
      storages.push_back(x.storage());
      break;
    case 8:
      const_cast<Tensor&>(x) = at::tensor({9.0F, 9.0F});
      break;
    case 9:
      weak = c10::weak_intrusive_ptr<c10::TensorImpl>(x.getIntrusivePtr());
      break;
    case 11:
      x.as_strided_({2, 3}, {1, 2});
      break;
    case 12:
      x.unsafeGetTensorImpl()->set_storage_offset(1);
      break;
    case 13:
      x.storage().set_nbytes(4);
      break;
    case 14:
      x.set_data(x.view(at::kInt));
      break;
    case 15:
#if __has_include(<ATen/core/NamedTensor.h>)  // PyTorch before 2.15
      at::internal_set_names_inplace(
          x, {at::Dimname::fromSymbol(at::Symbol::dimname("rows")), at::Dimname::wildcard()},
          /*validate_names=*/false);
#endif
      break;
    default:
      throw std::runtime_error("on purpose");
  }
}
void fill(const Tensor& /*x*/, int64_t value, Tensor& y) { y.fill_(value); }
void nothing(const Tensor& /*x*/, Tensor& /*y*/) {}
void nothing_of_many(at::TensorList /*x*/, Tensor& /*y*/) {}
void write_input(Tensor x, Tensor& y) { y.copy_(x.neg_()); }
void reshape_input(Tensor x, Tensor& y) {
  const int64_t before = x.dim();
  x.unsqueeze_(0);
  store(y, {before, x.dim()});
}
void workspaces(const aten_bridge::CallFrame& frame) {
  std::vector<int64_t> found = {frame.size(), frame.workspace_count()};
  for (int i = 0; i < frame.workspace_count(); ++i) {
    found.push_back(static_cast<int64_t>(frame.workspace_bytes(i)));
    std::memset(frame.workspace(i), 0, frame.workspace_bytes(i));
  }
  Tensor output = aten_bridge::tensors(frame).back();
  store(output, found);
}

// at::parallel_for is a template of this source: {chunks, threads}.
void parallel_chunks(Tensor& y) {
  std::atomic<int64_t> chunks = 0;
  at::parallel_for(0, 1000, 1, [&](int64_t /*begin*/, int64_t /*end*/) { ++chunks; });
  store(y, {chunks, at::get_num_threads()});
}

//===--- the caller's state ---===//

void state(const Tensor& x, Tensor& y) {
  const Tensor doubled = x.detach().requires_grad_() * 2;
  store(y, {at::GradMode::is_enabled(), c10::InferenceMode::is_enabled(), doubled.requires_grad(),
            at::get_num_threads()});
}
void change_state(const Tensor& /*x*/, Tensor& y) {
  at::globalContext().setFlushDenormal(true);
  std::fesetround(FE_UPWARD);
  c10::AutogradState& modes = c10::AutogradState::get_tls_state();
  modes.set_grad_mode(!modes.get_grad_mode());
  modes.set_inference_mode(!modes.get_inference_mode());
  modes.set_fw_grad_mode(!modes.get_fw_grad_mode());
  modes.set_multithreading_enabled(!modes.get_multithreading_enabled());
  modes.set_view_replay_enabled(!modes.get_view_replay_enabled());
  at::set_num_threads(at::get_num_threads() + 1);
  c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::AutocastCPU, false);
  y.fill_(0);
}
void change_process(const Tensor& x, Tensor& y) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  y.copy_(x);
}
void change_state_and_throw(const Tensor& x, Tensor& y) {
  change_state(x, y);
  throw std::runtime_error("thrown after a change of state");
}

//===--- what the output contract catches ---===//

void resize(const Tensor& x, Tensor& y) { at::leaky_relu_out(y, x); }
void assign(const Tensor& x, Tensor& y) { y = at::leaky_relu(x); }
void assign_alias(const Tensor& x, Tensor& y) { y = y.alias().copy_(x); }
void assign_undefined(const Tensor& /*x*/, Tensor& y) { y = Tensor(); }
void assign_sparse(const Tensor& x, Tensor& y) { y = x.to_sparse(); }
void assign_opaque(const Tensor& x, Tensor& y) { y = x.to_mkldnn(); }
void assign_batched(const Tensor& x, Tensor& y) {  // strided, and without a storage
  y = at::_add_batch_dim(at::stack({x, x}), 0, 1);
}
void assign_conjugate(const Tensor& x, Tensor& y) {
  y.copy_(x);
  y = y.conj();
}
void conjugate_in_place(const Tensor& x, Tensor& y) {
  y.copy_(x);
  y._set_conj(true);
}
void replace_storage(const Tensor& x, Tensor& y) { y.set_(at::leaky_relu(x)); }
void transpose(const Tensor& x, Tensor& y) { y.copy_(x).t_(); }
void change_dtype(const Tensor& x, Tensor& y) {
  y.unsafeGetTensorImpl()->set_storage_and_dtype(c10::Storage(y.storage()),
                                                 c10::scalarTypeToTypeMeta(at::ScalarType::Int));
  static_cast<void>(x);
}
void two_faults(const Tensor& x, Tensor& y, Tensor& z) {
  assign(x, y);
  assign(x, z);
}
Tensor& return_another(const Tensor& x, Tensor& /*y*/) {
  static Tensor another;
  another = x * 2;
  return another;
}
std::tuple<Tensor&, Tensor&> return_outputs(const Tensor& x, Tensor& y, Tensor& z) {
  y.copy_(x);
  z.copy_(x);
  return {y, z};
}
Tensor undefined_result(const Tensor& /*x*/) { return {}; }
std::tuple<Tensor, Tensor> wrong_results(const Tensor& x) {
  return {x.to(at::ScalarType::Double), x.flatten()};
}

//===--- what a kernel can throw ---===//

struct NotAnException {};
struct Speechless : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

void throw_aten(const Tensor& x, Tensor& /*y*/) {
  TORCH_CHECK(x.dim() == 7, "rank ", x.dim(), " is not seven");
}
void throw_runtime_error(const Tensor& /*x*/, Tensor& /*y*/) {
  throw std::runtime_error("thrown by the kernel");
}
void throw_speechless(const Tensor& /*x*/, Tensor& /*y*/) { throw Speechless(); }
void throw_in_parallel(const Tensor& /*x*/, Tensor& /*y*/) {
  at::parallel_for(0, 1000, 1, [](int64_t /*begin*/, int64_t /*end*/) {
    throw std::runtime_error("thrown by a thread of the kernel");
  });
}
void throw_int(const Tensor& /*x*/, Tensor& /*y*/) {
  throw 5;  // NOLINT(hicpp-exception-baseclass): the point of the test
}
void throw_struct(const Tensor& /*x*/, Tensor& /*y*/) {
  throw NotAnException();  // NOLINT(hicpp-exception-baseclass): the point of the test
}

}  // namespace

ATEN_BRIDGE_EXPORT(Copy, copy);
// Two kernels of one C++ type.
ATEN_BRIDGE_EXPORT(CheckedFirst, copy, aten_bridge::input("first").rank(1));
ATEN_BRIDGE_EXPORT(CheckedSecond, copy, aten_bridge::input("second").rank(2));
ATEN_BRIDGE_EXPORT(AddSubtract, add_subtract);
ATEN_BRIDGE_EXPORT(LeakyReluResult, leaky_relu_result);
ATEN_BRIDGE_EXPORT(MinMax, minmax);
ATEN_BRIDGE_EXPORT(MinMaxPair, minmax_pair);
ATEN_BRIDGE_EXPORT(AddIfGiven, add_if_given);
ATEN_BRIDGE_EXPORT(AddIfFirstGiven, add_if_first_given);
ATEN_BRIDGE_EXPORT(Sum19, sum_19);
ATEN_BRIDGE_EXPORT(SumSlots, sum_slots);
ATEN_BRIDGE_EXPORT(FirstSlot, first_slot);
ATEN_BRIDGE_EXPORT(BadSlot, bad_slot);
ATEN_BRIDGE_EXPORT(FortyTwo, forty_two);
ATEN_BRIDGE_EXPORT(ExpOut, exp_out);
ATEN_BRIDGE_EXPORT(Halve, Halve{});
ATEN_BRIDGE_EXPORT(Negate, [](const Tensor& x, Tensor& y) { y.copy_(x.neg()); });
ATEN_BRIDGE_EXPORT(Describe, describe);
ATEN_BRIDGE_EXPORT(DescribeOutput, describe_output);
ATEN_BRIDGE_EXPORT(Keep, keep, aten_bridge::attr("how"));
ATEN_BRIDGE_EXPORT(Spoil, spoil, aten_bridge::attr("how"));
ATEN_BRIDGE_EXPORT(Fill, fill, aten_bridge::attr("value"));
ATEN_BRIDGE_EXPORT(DoubleFirst, [](Tensor x, const Tensor& /*z*/, Tensor& y) {
  x.mul_(2);
  y.fill_(1);
});
ATEN_BRIDGE_EXPORT(Nothing, nothing);
ATEN_BRIDGE_EXPORT(NothingOfMany, nothing_of_many);
ATEN_BRIDGE_EXPORT(WriteInput, write_input);
ATEN_BRIDGE_EXPORT(ReshapeInput, reshape_input);
ATEN_BRIDGE_EXPORT(Workspaces, workspaces);
ATEN_BRIDGE_EXPORT(ParallelChunks, parallel_chunks);
ATEN_BRIDGE_EXPORT(MatMul, [](const Tensor& x) { return x.matmul(x); });

// Results in memory of the inputs.
ATEN_BRIDGE_EXPORT(Itself, [](const Tensor& x) { return x; });
ATEN_BRIDGE_EXPORT(Transposed, [](const Tensor& x) { return x.t(); });
ATEN_BRIDGE_EXPORT(Conjugated, [](const Tensor& x) { return x.conj(); });
ATEN_BRIDGE_EXPORT(RepeatLast,
                   [](const Tensor& x) { return x.narrow(0, x.size(0) - 1, 1).expand(x.sizes()); });
ATEN_BRIDGE_EXPORT(NextAndSame, [](const Tensor& x) { return std::make_tuple(x + 1, x); });
ATEN_BRIDGE_EXPORT(Swapped, [](const Tensor& x, const Tensor& y) { return std::make_tuple(y, x); });
ATEN_BRIDGE_EXPORT(State, state);
ATEN_BRIDGE_EXPORT(ChangeState, change_state);
ATEN_BRIDGE_EXPORT(ChangeProcess, change_process);
ATEN_BRIDGE_EXPORT(ChangeStateAndThrow, change_state_and_throw);
ATEN_BRIDGE_EXPORT(Resize, resize);
ATEN_BRIDGE_EXPORT(Assign, assign);
ATEN_BRIDGE_EXPORT(AssignAlias, assign_alias);
ATEN_BRIDGE_EXPORT(AssignUndefined, assign_undefined);
ATEN_BRIDGE_EXPORT(AssignSparse, assign_sparse);
ATEN_BRIDGE_EXPORT(AssignOpaque, assign_opaque);
ATEN_BRIDGE_EXPORT(AssignBatched, assign_batched);
ATEN_BRIDGE_EXPORT(AssignConjugate, assign_conjugate);
ATEN_BRIDGE_EXPORT(ConjugateInPlace, conjugate_in_place);
ATEN_BRIDGE_EXPORT(ReplaceStorage, replace_storage);
ATEN_BRIDGE_EXPORT(Transpose, transpose);
ATEN_BRIDGE_EXPORT(ChangeDtype, change_dtype);
ATEN_BRIDGE_EXPORT(TwoFaults, two_faults);
ATEN_BRIDGE_EXPORT(ReturnAnother, return_another);
ATEN_BRIDGE_EXPORT(ReturnOutputs, return_outputs);
ATEN_BRIDGE_EXPORT(UndefinedResult, undefined_result);
ATEN_BRIDGE_EXPORT(WrongResults, wrong_results);
ATEN_BRIDGE_EXPORT(ThrowAten, throw_aten);
ATEN_BRIDGE_EXPORT(ThrowRuntimeError, throw_runtime_error);
ATEN_BRIDGE_EXPORT(ThrowSpeechless, throw_speechless);
ATEN_BRIDGE_EXPORT(ThrowInParallel, throw_in_parallel);
ATEN_BRIDGE_EXPORT(ThrowInt, throw_int);
ATEN_BRIDGE_EXPORT(ThrowStruct, throw_struct);
ATEN_BRIDGE_EXPORT(ThrowLatin1, [](const Tensor& /*x*/) -> Tensor {
  throw std::runtime_error("cannot read m\xfcller.bin, of M\xc3\xbcller");
});

// Calls another kernel of the library, from inside.
ATEN_BRIDGE_EXPORT(CallCopy, [](const Tensor& x, Tensor& y) {
  void* params[] = {x.data_ptr(), y.data_ptr()};
  int ndims[] = {0, 0};
  int64_t* shapes[] = {nullptr, nullptr};
  const char* dtypes[] = {"float32", "float32"};
  Copy(2, params, ndims, shapes, dtypes, nullptr, nullptr);
});

// Where a kernel stands is its own affair.
namespace {
ATEN_BRIDGE_EXPORT(InUnnamedNamespace, copy);
}
namespace one::two {
ATEN_BRIDGE_EXPORT(InNestedNamespace, copy);
}

// The exported name may be that of the function.
static void Same(const Tensor& x, Tensor& y) {
  y.copy_(x);
}  // NOLINT(readability-identifier-naming)
ATEN_BRIDGE_EXPORT(Same, Same);

namespace {

// Calls another kernel of its own type on other memory, one call that fails among them.
void nest(const Tensor& x, Tensor& y) {
  std::vector<float> from = {1, 2, 3, 4, 5};
  std::vector<float> to(5);
  void* params[] = {from.data(), to.data()};
  int ndims[] = {1, 1};
  int64_t size = 5;
  int64_t* shapes[] = {&size, &size};
  const char* dtypes[] = {"float32", "float32"};
  for (const bool fails : {true, false}) {
    dtypes[0] = fails ? "unknown" : "float32";
    try {
      Copy(2, params, ndims, shapes, dtypes, nullptr, nullptr);
    } catch (const std::runtime_error&) {
      to[0] = -1;
    }
  }
  y.copy_(x + (to == from ? 1 : 0));
}

}  // namespace

ATEN_BRIDGE_EXPORT(Nest, nest);

// A kernel stays where it is made: what the host has of it points into it.
template <class K>
constexpr bool kIsCopied = std::is_copy_constructible_v<K> || std::is_move_constructible_v<K> ||
                           std::is_copy_assignable_v<K> || std::is_move_assignable_v<K>;
static_assert(!kIsCopied<aten_bridge::detail::KernelBase>);
static_assert(!kIsCopied<std::remove_const_t<decltype(aten_bridge_kernel_Copy.kernel)>>);
