// What one call costs, on 4x4 float32 tensors where nothing else is said: time per iteration is
// time per call.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <aten_bridge/testing.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <vector>

namespace {

using Sizes = std::vector<std::vector<int64_t>>;

// A function of benchmark_kernels.cpp, called with operands of these shapes.
void call_on(benchmark::State& state, const char* name, Sizes sizes) {
  static const aten_bridge::testing::Library library(BENCHMARK_KERNELS);
  const aten_bridge::testing::Call host_call = library.call(name);
  const auto function = host_call.function();
  std::vector<at::Tensor> memory;
  std::vector<void*> params;
  std::vector<int> ndims;
  std::vector<int64_t*> shapes;
  for (std::vector<int64_t>& of_one : sizes) {
    memory.push_back(at::ones(of_one));
    params.push_back(memory.back().data_ptr());
    ndims.push_back(static_cast<int>(of_one.size()));
    shapes.push_back(of_one.data());
  }
  std::vector<const char*> dtypes(sizes.size(), "float32");
  aten_bridge::testing::detail::Extra extra;
  if (host_call.init() != nullptr) {
    // What it makes is needed to the end.
    host_call.init()(ndims.data(), shapes.data(), dtypes.data(), &extra);
  }
  const int count = static_cast<int>(sizes.size());
  for (auto _ : state) {
    benchmark::DoNotOptimize(function(count, params.data(), ndims.data(), shapes.data(),
                                      dtypes.data(), nullptr, &extra));
  }
}

// With one input and one output.
void call(benchmark::State& state, const char* name) { call_on(state, name, {{4, 4}, {4, 4}}); }

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

// PyTorch's own, of the same inputs: forward alone, and with it the backward of a graph.
using Function = at::Tensor (*)(const std::vector<at::Tensor>& inputs);

void pytorch_forward(benchmark::State& state, Function function, const Sizes& sizes) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  std::vector<at::Tensor> inputs;
  for (const std::vector<int64_t>& of_one : sizes) {
    inputs.push_back(at::ones(of_one));
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(function(inputs));
  }
}

void pytorch_forward_and_backward(benchmark::State& state, Function function, const Sizes& sizes) {
  std::vector<at::Tensor> inputs;
  for (const std::vector<int64_t>& of_one : sizes) {
    inputs.push_back(at::ones(of_one).requires_grad_());
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

BENCHMARK_CAPTURE(call, empty, "EmptyCall");
BENCHMARK_CAPTURE(call, two_views, "TwoViews");
BENCHMARK_CAPTURE(call, leaky_relu, "LeakyRelu");
BENCHMARK_CAPTURE(call, leaky_relu_with_two_attributes, "TypedLeakyRelu");
BENCHMARK_CAPTURE(call, leaky_relu_with_checks, "CheckedLeakyRelu");
BENCHMARK_CAPTURE(direct, leaky_relu_out_below_autograd, true);
BENCHMARK_CAPTURE(direct, leaky_relu_out, false);
BENCHMARK_CAPTURE(call, handwritten_two_views, "HandwrittenTwoViews");
BENCHMARK_CAPTURE(call, handwritten_leaky_relu, "HandwrittenLeakyRelu");

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
