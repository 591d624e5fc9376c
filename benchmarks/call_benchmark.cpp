// What one call costs, on 4x4 float32 tensors where nothing else is said: time per iteration is
// time per call.
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/ones_like.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/version.h>

#include <optional>
#include <vector>

#include "host_call.h"

namespace {

// A kernel with one input and one output.
void call(benchmark::State& state, const char* name) { call_on(state, name, {{4, 4}, {4, 4}}); }

// The operator itself on tensors that exist already.
void direct_on(benchmark::State& state, const std::vector<int64_t>& sizes, bool below_autograd) {
  std::vector<at::Tensor> tensors = tensors_of({sizes, sizes});
  std::optional<at::AutoDispatchBelowADInplaceOrView> guard;
  if (below_autograd) {
    guard.emplace();
  }
  for (auto _ : state) {
    at::leaky_relu_out(tensors[1], tensors[0]);
  }
}

void direct(benchmark::State& state, bool below_autograd) {
  direct_on(state, {4, 4}, below_autograd);
}

// The same after the call of a kernel that does nothing, of other tensors: what the processor makes
// of more code in the loop, whatever it belongs to.
void direct_after_empty_kernel(benchmark::State& state) {
  HostCall call("Views2", {{4, 4}, {4, 4}});
  std::vector<at::Tensor> tensors = tensors_of({{4, 4}, {4, 4}});
  const at::AutoDispatchBelowADInplaceOrView guard;
  for (auto _ : state) {
    benchmark::DoNotOptimize(call());
    at::leaky_relu_out(tensors[1], tensors[0]);
  }
}

// Two layers of a network that call one kernel alternately: an iteration is a call of each.
void alternating(benchmark::State& state, const Sizes& sizes_of_second) {
  HostCall first("Views2", {{4, 4}, {4, 4}});
  HostCall second("Views2", sizes_of_second);
  for (auto _ : state) {
    benchmark::DoNotOptimize(first());
    benchmark::DoNotOptimize(second());
  }
}

// A kernel and the operator over the number of elements.
void call_on_elements(benchmark::State& state) {
  call_on(state, "LeakyRelu", {{state.range(0)}, {state.range(0)}});
}
void direct_on_elements(benchmark::State& state) {
  direct_on(state, {state.range(0)}, /*below_autograd=*/true);
}

// The same operator by name, which writes its output; and one of which PyTorch has no such form
// that can be trusted, so that its result is copied.
void by_name(benchmark::State& state, const char* text) {
  HostCall call("AtenOperator", {{state.range(0)}, {state.range(0)}}, text);
  for (auto _ : state) {
    benchmark::DoNotOptimize(call());
  }
}

// PyTorch's own, of the same inputs: forward alone, and with it the backward of a graph.
using Function = at::Tensor (*)(const std::vector<at::Tensor>& inputs);

void pytorch_forward(benchmark::State& state, Function function, const Sizes& sizes) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  const std::vector<at::Tensor> inputs = tensors_of(sizes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(function(inputs));
  }
}

void pytorch_forward_and_backward(benchmark::State& state, Function function, const Sizes& sizes) {
  const std::vector<at::Tensor> inputs = tensors_of(sizes);
  for (const at::Tensor& input : inputs) {
    input.requires_grad_();
  }
  const at::Tensor dy = at::ones_like(function(inputs));
  for (auto _ : state) {
    benchmark::DoNotOptimize(torch::autograd::grad({function(inputs)}, inputs, {dy}));
  }
}

at::Tensor leaky_relu(const std::vector<at::Tensor>& inputs) { return at::leaky_relu(inputs[0]); }
at::Tensor conv2d(const std::vector<at::Tensor>& inputs) {
  return at::conv2d(inputs[0], inputs[1], /*bias=*/std::nullopt, /*stride=*/1, /*padding=*/1);
}

// 8 images of 16 channels and 32x32 pixels, and 16 filters of 3x3.
const std::vector<int64_t> kImages = {8, 16, 32, 32};
const std::vector<int64_t> kFilters = {16, 16, 3, 3};

// One thread: waiting for others says more of the machine's other programs than of a call.
[[maybe_unused]] const bool kIsPrepared = [] {
  at::set_num_threads(1);
  benchmark::AddCustomContext("pytorch", TORCH_VERSION);
  return true;
}();

BENCHMARK_CAPTURE(call, leaky_relu, "LeakyRelu");
BENCHMARK_CAPTURE(call, leaky_relu_with_two_attributes, "TypedLeakyRelu");
BENCHMARK_CAPTURE(call, leaky_relu_with_checks, "CheckedLeakyRelu");
BENCHMARK_CAPTURE(direct, leaky_relu_out_below_autograd, true);
BENCHMARK_CAPTURE(direct, leaky_relu_out, false);
BENCHMARK(direct_after_empty_kernel);
BENCHMARK_CAPTURE(call, handwritten_leaky_relu, "HandwrittenLeakyRelu");
BENCHMARK_CAPTURE(alternating, one_shape, (Sizes{{4, 4}, {4, 4}}));
BENCHMARK_CAPTURE(alternating, two_shapes, (Sizes{{2, 3, 5}, {2, 3, 5}}));

BENCHMARK(call_on_elements)->RangeMultiplier(10)->Range(1, 10'000'000);
BENCHMARK(direct_on_elements)->RangeMultiplier(10)->Range(1, 10'000'000);
BENCHMARK_CAPTURE(by_name, leaky_relu,
                  "16:aten::leaky_relu1:014:negative_slope20:f4596373779694328218")
    ->RangeMultiplier(10)
    ->Range(1, 10'000'000);
BENCHMARK_CAPTURE(by_name, relu, "10:aten::relu1:0")->RangeMultiplier(10)->Range(1, 10'000'000);

BENCHMARK_CAPTURE(call_on, leaky_relu_gradient_by_autograd, "LeakyReluGrad",
                  (Sizes{{4, 4}, {4, 4}, {4, 4}}));
BENCHMARK_CAPTURE(call_on, leaky_relu_gradient_by_hand, "HandwrittenLeakyReluGrad",
                  (Sizes{{4, 4}, {4, 4}, {4, 4}}));
BENCHMARK_CAPTURE(pytorch_forward, leaky_relu, leaky_relu, (Sizes{{4, 4}}));
BENCHMARK_CAPTURE(pytorch_forward_and_backward, leaky_relu, leaky_relu, (Sizes{{4, 4}}));
BENCHMARK_CAPTURE(call_on, conv2d, "Conv2d", (Sizes{kImages, kFilters, kImages}));
BENCHMARK_CAPTURE(call_on, conv2d_gradient_by_autograd, "Conv2dGrad",
                  (Sizes{kImages, kFilters, kImages, kImages, kFilters}));
BENCHMARK_CAPTURE(pytorch_forward, conv2d, conv2d, (Sizes{kImages, kFilters}));
BENCHMARK_CAPTURE(pytorch_forward_and_backward, conv2d, conv2d, (Sizes{kImages, kFilters}));

}  // namespace

// callgrind counts inside this function, which has a name for it (benchmarks/instructions.py).
extern "C" [[gnu::noinline]] void thousand_calls(HostCall* call) {
  for (int i = 0; i < 1000; ++i) {
    benchmark::DoNotOptimize((*call)());
  }
}

namespace {

void counted(benchmark::State& state, const char* name) {
  HostCall call(name, {{4, 4}, {4, 4}});
  call();  // the first call is dearer
  for (auto _ : state) {
    thousand_calls(&call);
  }
}
BENCHMARK_CAPTURE(counted, leaky_relu, "LeakyRelu")->Iterations(1);

}  // namespace
