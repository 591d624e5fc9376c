// Calls of the functions in benchmark_kernels.cpp, and of operators by name, as a host makes them.
#ifndef ATEN_BRIDGE_BENCHMARKS_HOST_CALL_H_
#define ATEN_BRIDGE_BENCHMARKS_HOST_CALL_H_

#include <ATen/ops/ones.h>
#include <aten_bridge/testing.h>
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using Sizes = std::vector<std::vector<int64_t>>;

// Tensors of ones.
inline std::vector<at::Tensor> tensors_of(const Sizes& sizes) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(sizes.size());
  for (const std::vector<int64_t>& of_one : sizes) {
    tensors.push_back(at::ones(of_one));
  }
  return tensors;
}

// A function and its operands, float32, in the host's arrays. `of_operator` names one of PyTorch's,
// as aten_bridge.mindspore.operator() does.
class HostCall {
 public:
  HostCall(const std::string& name, Sizes sizes, const std::string& of_operator = {})
      : sizes_(std::move(sizes)),
        memory_(tensors_of(sizes_)),
        dtypes_(sizes_.size(), "float32"),
        extra_(attributes(of_operator)) {
    static const aten_bridge::testing::Library kernels(BENCHMARK_KERNELS);
    static const aten_bridge::testing::Library operators(OPERATORS_LIBRARY);
    const aten_bridge::testing::Call call = (of_operator.empty() ? kernels : operators).call(name);
    function_ = call.function();
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      params_.push_back(memory_[i].data_ptr());
      ndims_.push_back(static_cast<int>(sizes_[i].size()));
      shapes_.push_back(sizes_[i].data());
    }
    if (call.init() != nullptr) {
      call.init()(ndims_.data(), shapes_.data(), dtypes_.data(), &extra_);
    }
  }

  int operator()() {
    return function_(static_cast<int>(params_.size()), params_.data(), ndims_.data(),
                     shapes_.data(), dtypes_.data(), /*stream=*/nullptr, &extra_);
  }

 private:
  static aten_bridge::testing::detail::Attributes attributes(const std::string& of_operator) {
    aten_bridge::testing::detail::Attributes made;
    if (!of_operator.empty()) {
      made.emplace("aten_bridge_operator", aten_bridge::testing::detail::Value(of_operator));
    }
    return made;
  }

  Sizes sizes_;
  std::vector<at::Tensor> memory_;
  std::vector<const char*> dtypes_;
  std::vector<void*> params_;
  std::vector<int> ndims_;
  std::vector<int64_t*> shapes_;
  aten_bridge::testing::detail::Extra extra_;
  aten_bridge::testing::HostFunction function_ = nullptr;
};

// Times a function of benchmark_kernels.cpp, called with operands of these sizes.
inline void call_on(benchmark::State& state, const std::string& name, const Sizes& sizes) {
  HostCall call(name, sizes);
  for (auto _ : state) {
    benchmark::DoNotOptimize(call());
  }
}

#endif  // ATEN_BRIDGE_BENCHMARKS_HOST_CALL_H_
