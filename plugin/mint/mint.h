// What the kernels of this folder share. Each takes the parameters of MindSpore's operator in its
// order; test_mint.py compares them with the installed MindSpore's own definitions.
#ifndef PLUGIN_MINT_MINT_H_
#define PLUGIN_MINT_MINT_H_

#include <ATen/core/List.h>
#include <aten_bridge.h>

#include <optional>
#include <tuple>

namespace mint {

using at::IntArrayRef;
using at::OptionalIntArrayRef;
using at::Scalar;
using at::Tensor;
using at::TensorList;
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2  // its optional is not std::optional
template <class T>
using Optional = c10::optional<T>;
#else
template <class T>
using Optional = std::optional<T>;
#endif
using OptionalTensor = const Optional<Tensor>&;
using OptionalInt = Optional<int64_t>;
using OptionalDtype = Optional<at::ScalarType>;

/// MindSpore numbers its reductions sum, mean, none; ATen none, mean, sum.
inline int64_t reduction(int64_t of_mindspore) { return 2 - of_mindspore; }

/// Writes what is scattered to `y`; MindSpore's ways to reduce it are 0 none, 1 add, 2 multiply.
/// (Not by the function that takes their names, which warns.)
inline void scatter_reduce(const Tensor& y, int64_t dim, const Tensor& index, const Tensor& source,
                           int64_t how) {
  if (how == 0) {
    y.scatter_(dim, index, source);
  } else if (how == 1) {
    y.scatter_add_(dim, index, source);
  } else {
    y.scatter_reduce_(dim, index, source, "prod");
  }
}
inline void scatter_reduce(const Tensor& y, int64_t dim, const Tensor& index, const Scalar& source,
                           int64_t how) {
  if (how == 0) {
    y.scatter_(dim, index, source);
  } else {
    y.scatter_(dim, index, source, how == 1 ? "add" : "multiply");
  }
}

/// What ATen indexes with, for the dimensions from the first on. An undefined tensor takes all.
inline c10::List<Optional<Tensor>> places(TensorList of_dims) {
  c10::List<Optional<Tensor>> all;
  for (const Tensor& of_dim : of_dims) {
    if (of_dim.defined()) {
      all.push_back(of_dim.scalar_type() == at::kInt ? of_dim.to(at::kLong) : of_dim);
    } else {
      all.push_back(Optional<Tensor>());
    }
  }
  return all;
}

}  // namespace mint

#endif  // PLUGIN_MINT_MINT_H_
