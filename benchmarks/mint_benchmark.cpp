// What a call costs of the library of kernels for MindSpore's mint, through the adapter for
// MindSpore's plugins and without MindSpore: each kernel beside what it calls, on the same memory,
// tensors of 4x4 and 256x256 float32. Time per iteration is time per call.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/acos.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <aten_bridge/testing.h>
#include <benchmark/benchmark.h>

#include <deque>

#include "plugin_host.h"

namespace {

using plugin_host::Ints;

// A call of the library's, of float32 tensors and of numbers.
class Call final : public plugin_host::HostCall {
 public:
  Call& input(const at::Tensor& x) {
    if (x.is_contiguous()) {
      HostCall::input("float32", x.sizes().vec(), x.data_ptr());
    } else {
      strided("float32", x.sizes().vec(), x.data_ptr(), x.strides().vec(), 0);
    }
    return *this;
  }
  Call& number(float value) { return scalar("float32", {}, &numbers_.emplace_back(value)); }
  Call& flag(bool value) { return scalar("bool", {}, &flags_.emplace_back(value)); }
  Call& ints(const Ints& values) {
    return scalar("int64", {static_cast<int64_t>(values.size())},
                  ints_.emplace_back(values).data());
  }
  Call& none() { return scalar("none", {}, nullptr); }
  Call& output(const at::Tensor& y) {
    HostCall::output("float32", y.sizes().vec(), y.data_ptr());
    return *this;
  }

  void time(benchmark::State& state, const char* name) {
    static const aten_bridge::testing::Library library(MINT_LIBRARY);
    const auto function = library.call(name).function();
    for (auto _ : state) {
      benchmark::DoNotOptimize(run(function));
    }
  }

 private:
  Call& scalar(const char* dtype, Ints sizes, void* data) {
    HostCall::input(dtype, std::move(sizes), data, /*is_scalar=*/true);
    return *this;
  }

  // Whose elements stay where they are.
  std::deque<float> numbers_;
  std::deque<bool> flags_;
  std::deque<Ints> ints_;
};

// Inputs and an output, n x n.
struct Operands {
  explicit Operands(benchmark::State& state) : n(state.range(0)) {}
  int64_t n;
  at::Tensor x = at::rand({n, n});
  at::Tensor a = at::rand({n, n});
  at::Tensor b = at::rand({n, n});
  at::Tensor y = at::empty({n, n});
};

template <class Body>
void direct(benchmark::State& state, Body body) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  for (auto _ : state) {
    body();
  }
}

void kernel_acos(benchmark::State& state) {
  const Operands operands(state);
  Call().input(operands.x).output(operands.y).time(state, "AcosExt");
}
void aten_acos(benchmark::State& state) {
  Operands operands(state);
  direct(state, [&] { at::acos_out(operands.y, operands.x); });
}
void kernel_acos_of_a_transposed_view(benchmark::State& state) {
  const Operands operands(state);
  Call().input(operands.x.t()).output(operands.y).time(state, "AcosExt");
}
void aten_acos_of_a_transposed_view(benchmark::State& state) {
  Operands operands(state);
  const at::Tensor x = operands.x.t();
  direct(state, [&] { at::acos_out(operands.y, x); });
}

void kernel_leaky_relu(benchmark::State& state) {
  const Operands operands(state);
  Call().input(operands.x).number(0.01F).output(operands.y).time(state, "LeakyReLUExt");
}
void aten_leaky_relu(benchmark::State& state) {
  Operands operands(state);
  direct(state, [&] { at::leaky_relu_out(operands.y, operands.x, 0.01); });
}

void kernel_clamp(benchmark::State& state) {
  const Operands operands(state);
  Call()
      .input(operands.x)
      .number(0.1F)
      .number(1.F / 3)
      .output(operands.y)
      .time(state, "ClampScalar");
}
void aten_clamp(benchmark::State& state) {
  Operands operands(state);
  direct(state, [&] { at::clamp_out(operands.y, operands.x, 0.1, 1.0 / 3); });
}

void kernel_addcmul(benchmark::State& state) {
  const Operands operands(state);
  Call()
      .input(operands.x)
      .input(operands.a)
      .input(operands.b)
      .number(1)
      .output(operands.y)
      .time(state, "AddcmulExt");
}
void aten_addcmul(benchmark::State& state) {
  Operands operands(state);
  direct(state, [&] { at::addcmul_out(operands.y, operands.x, operands.a, operands.b, 1); });
}

void kernel_mean(benchmark::State& state) {
  const Operands operands(state);
  const at::Tensor y = at::empty({operands.n});
  Call call;
  call.input(operands.x).ints({1}).flag(false).none().output(y).time(state, "MeanExt");
}
void aten_mean(benchmark::State& state) {
  const Operands operands(state);
  at::Tensor y = at::empty({operands.n});
  direct(state, [&] { at::mean_out(y, operands.x, 1); });
}

void kernel_stack(benchmark::State& state) {
  const Operands operands(state);
  const at::Tensor y = at::empty({2, operands.n, operands.n});
  Call().input(operands.x).input(operands.a).ints({0}).output(y).time(state, "StackExt");
}
void aten_stack(benchmark::State& state) {
  const Operands operands(state);
  at::Tensor y = at::empty({2, operands.n, operands.n});
  direct(state, [&] { at::stack_out(y, {operands.x, operands.a}); });
}

#define MINT_BENCHMARK(function) BENCHMARK(function)->Arg(4)->Arg(256)->UseRealTime()

MINT_BENCHMARK(kernel_acos);
MINT_BENCHMARK(aten_acos);
MINT_BENCHMARK(kernel_acos_of_a_transposed_view);
MINT_BENCHMARK(aten_acos_of_a_transposed_view);
MINT_BENCHMARK(kernel_leaky_relu);
MINT_BENCHMARK(aten_leaky_relu);
MINT_BENCHMARK(kernel_clamp);
MINT_BENCHMARK(aten_clamp);
MINT_BENCHMARK(kernel_addcmul);
MINT_BENCHMARK(aten_addcmul);
MINT_BENCHMARK(kernel_mean);
MINT_BENCHMARK(aten_mean);
MINT_BENCHMARK(kernel_stack);
MINT_BENCHMARK(aten_stack);

}  // namespace
