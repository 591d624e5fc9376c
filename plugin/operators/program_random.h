// A program's random numbers: the seed of a run, and dropout as the CPU draws it.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_RANDOM_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_RANDOM_H_

#include "program_text.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// The first element of the seeds, where their others are 0; else a number that depends on all.
/// None where the program has no seeds.
std::optional<std::uint64_t> seed_of(at::TensorList inputs, const std::vector<Form>& forms);

/// What aten::dropout of the CPU does, which draws in the order of the memory and takes no
/// generator: PyTorch (2.11) records it as aten::native_dropout, which draws in the order of the
/// dimensions. False where nothing is drawn.
bool drop_out(std::vector<c10::IValue>& stack, const std::optional<at::Generator>& generator);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_RANDOM_H_
