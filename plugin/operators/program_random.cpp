// Mixes the seeds of a program's run into one, and draws for dropout.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_random.h"

#include <ATen/ops/empty_like.h>

#include <cstddef>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

/// A seed that depends on both. Seeds that are close give results far apart, by splitmix64's steps.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t element) {
  seed = seed * 0xbf58476d1ce4e5b9 + element * 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  return seed ^ (seed >> 31);
}

}  // namespace

std::optional<std::uint64_t> seed_of(at::TensorList inputs, const std::vector<Form>& forms) {
  std::optional<std::uint64_t> seed;
  bool is_first = true;
  for (std::size_t input = 0; input < forms.size(); ++input) {
    if (!forms[input].is_seed) {
      continue;
    }
    const at::Tensor elements = inputs[input].to(at::kLong).contiguous();
    seed = seed.value_or(0);
    for (int64_t i = 0; i < elements.numel(); ++i) {
      const auto element = static_cast<std::uint64_t>(elements.const_data_ptr<int64_t>()[i]);
      seed = is_first ? element : element == 0 ? *seed : mixed(*seed, element);
      is_first = false;
    }
  }
  return seed;
}

bool drop_out(std::vector<c10::IValue>& stack, const std::optional<at::Generator>& generator) {
  const at::Tensor input = stack.at(0).toTensor();
  const double kept = 1 - stack.at(1).toDouble();
  if (input.numel() == 0 || !(stack.at(2).isNone() || stack.at(2).toBool())) {
    return false;
  }
  at::Tensor mask = at::empty_like(input, at::kBool);
  mask.bernoulli_(kept, generator);
  at::Tensor result = input.mul(mask).mul_(kept == 0 ? 0. : 1 / kept);
  stack.clear();
  stack.emplace_back(std::move(result));
  stack.emplace_back(std::move(mask));
  return true;
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
