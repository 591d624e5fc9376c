// What one call costs, on two 4x4 float32 tensors: time per iteration is time per call.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/ones.h>
#include <aten_bridge/testing.h>
#include <benchmark/benchmark.h>

#include <optional>

namespace {

// A function of benchmark_kernels.cpp, called with one input and one output.
void call(benchmark::State& state, const char* name) {
  static const aten_bridge::testing::Library library(BENCHMARK_KERNELS);
  const aten_bridge::testing::Call host_call = library.call(name);
  const auto function = host_call.function();
  alignas(64) float x[16] = {};
  alignas(64) float y[16] = {};
  void* params[] = {x, y};
  int ndims[] = {2, 2};
  int64_t sizes[] = {4, 4};
  int64_t* shapes[] = {sizes, sizes};
  const char* dtypes[] = {"float32", "float32"};
  aten_bridge::testing::detail::Extra extra;
  if (host_call.init() != nullptr) {
    host_call.init()(ndims, shapes, dtypes, &extra);  // what it makes is needed to the end
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(function(2, params, ndims, shapes, dtypes, nullptr, &extra));
  }
}

// The operator itself on tensors that exist already.
void direct(benchmark::State& state, bool below_autograd) {
  const at::Tensor x = at::ones({4, 4});
  at::Tensor y = at::empty({4, 4});
  std::optional<at::AutoDispatchBelowADInplaceOrView> guard;
  if (below_autograd) {
    guard.emplace();
  }
  for (auto _ : state) {
    at::leaky_relu_out(y, x);
  }
}

BENCHMARK_CAPTURE(call, empty, "EmptyCall");
BENCHMARK_CAPTURE(call, two_views, "TwoViews");
BENCHMARK_CAPTURE(call, leaky_relu, "LeakyRelu");
BENCHMARK_CAPTURE(call, leaky_relu_with_two_attributes, "TypedLeakyRelu");
BENCHMARK_CAPTURE(call, leaky_relu_with_checks, "CheckedLeakyRelu");
BENCHMARK_CAPTURE(direct, leaky_relu_out_below_autograd, true);
BENCHMARK_CAPTURE(direct, leaky_relu_out, false);
BENCHMARK_CAPTURE(call, handwritten_two_views, "HandwrittenTwoViews");
BENCHMARK_CAPTURE(call, handwritten_leaky_relu, "HandwrittenLeakyRelu");

}  // namespace
