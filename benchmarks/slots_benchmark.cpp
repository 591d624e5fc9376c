// What a call costs with 1, 2, 8 and 32 tensors of 4x4 float32: names end in the number of slots.
// The last tensor is the output.
#include <ATen/DLConvertor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/zero.h>
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "host_call.h"

namespace {

// What another framework hands over, each tensor by itself: at::fromDLPack.
void dlpack(benchmark::State& state, const Sizes& sizes) {
  std::vector<at::Tensor> memory = tensors_of(sizes);
  std::vector<DLManagedTensor> managed(memory.size());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    managed[i] = *at::toDLPack(memory[i]);
    managed[i].deleter = [](DLManagedTensor* /*self*/) {};
  }
  std::vector<at::Tensor> tensors(memory.size());
  for (auto _ : state) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors[i] = at::fromDLPack(&managed[i]);
    }
    for (at::Tensor& tensor : tensors) {
      tensor.reset();
    }
  }
}

// An operator of so many tensors, on tensors that exist already: the body of the kernel that
// `operator_through_bridge` calls.
void direct_operator(benchmark::State& state, const Sizes& sizes) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  std::vector<at::Tensor> inputs = tensors_of(sizes);
  at::Tensor output = inputs.back();
  inputs.pop_back();
  for (auto _ : state) {
    if (inputs.empty()) {
      output.zero_();
    } else if (inputs.size() == 1) {
      at::leaky_relu_out(output, inputs[0]);
    } else {
      at::cat_out(output, inputs);
    }
  }
}

const char* kernel_of_operator(int slots) {
  return slots == 1 ? "Zero" : slots == 2 ? "LeakyRelu" : "Cat";
}

bool register_all() {
  for (const int slots : {1, 2, 8, 32}) {
    const std::string number = std::to_string(slots);
    const Sizes sizes(static_cast<std::size_t>(slots), {4, 4});
    Sizes sizes_of_operator = sizes;
    if (slots > 2) {  // at::cat of the others
      sizes_of_operator.back() = {int64_t{4} * (slots - 1), 4};
    }
    const auto add = [&number](std::string name, auto function, auto... arguments) {
      name.append("/").append(number);
      benchmark::RegisterBenchmark(name.c_str(), function, arguments...);
    };
    add("empty", call_on, "EmptyCall", sizes);
    add("guards", call_on, "Guards", sizes);
    add("views", call_on, "Views" + number, sizes);
    add("tutorial", call_on, "HandwrittenViews", sizes);
    add("from_blob", call_on, "FromBlob", sizes);
    add("dlpack", dlpack, sizes);
    add("operator", direct_operator, sizes_of_operator);
    add("operator_through_bridge", call_on, kernel_of_operator(slots), sizes_of_operator);
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
