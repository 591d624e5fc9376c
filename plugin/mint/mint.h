// What the kernels of this folder share. Each takes the parameters of MindSpore's operator in its
// order; test_mint.py compares them with the installed MindSpore's own definitions.
#ifndef PLUGIN_MINT_MINT_H_
#define PLUGIN_MINT_MINT_H_

#include <aten_bridge.h>

#include <optional>
#include <tuple>

namespace mint {

using at::IntArrayRef;
using at::OptionalIntArrayRef;
using at::Scalar;
using at::Tensor;
using at::TensorList;
using OptionalTensor = const std::optional<Tensor>&;
using OptionalInt = std::optional<int64_t>;
using OptionalDtype = std::optional<at::ScalarType>;

/// MindSpore numbers its reductions sum, mean, none; ATen none, mean, sum.
inline int64_t reduction(int64_t of_mindspore) { return 2 - of_mindspore; }

}  // namespace mint

#endif  // PLUGIN_MINT_MINT_H_
