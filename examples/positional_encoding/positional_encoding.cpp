// State: a table that is built once, before the first call of each operator.
#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <aten_bridge.h>

#include <cmath>

// [state]
// Adds the sines and cosines of transformers to a sequence [N, T, C].
class PositionalEncoding {
 public:
  // `inputs` are those of the first call. They have shapes and dtypes, and no data; later calls
  // may have another T, hence the table for `max_length`.
  PositionalEncoding(int64_t max_length, at::TensorList inputs)
      : table_(at::empty({max_length, inputs[0].size(2)}, at::kFloat)) {
    const at::Tensor position = at::arange(max_length).unsqueeze(1);
    const at::Tensor pair = at::arange(0, table_.size(1), 2);
    const at::Tensor angle = position * (pair * (-std::log(10000.0) / table_.size(1))).exp();
    table_.slice(/*dim=*/1, /*start=*/0, /*end=*/std::nullopt, /*step=*/2).copy_(angle.sin());
    table_.slice(1, 1, std::nullopt, 2).copy_(angle.cos());
  }

  void operator()(const at::Tensor& x, at::Tensor& y) const {
    at::add_out(y, x, table_.narrow(0, 0, x.size(1)));
  }

 private:
  at::Tensor table_;
};

ATEN_BRIDGE_EXPORT(PositionalEncoding,
                   aten_bridge::state<PositionalEncoding(int64_t, at::TensorList)>(),
                   aten_bridge::attr("max_length", 512),
                   aten_bridge::meta([](const at::Tensor& x) { return x; }),
                   aten_bridge::input("x").dtype(at::kFloat).rank(3));
// [/state]
