// Other shapes and orders of the same elements. MindSpore has these too, and in graph mode its own
// take views for whole tensors.
#include <algorithm>
#include <vector>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

// The result's sizes say all that `Dims`, a list or a number, does.
template <class Dims>
void reshape(const Tensor& x, Dims, Tensor& y) {
  y.copy_(x.reshape(y.sizes()));
}

// x[begin:end:stride]; of a negative stride x has no view.
Tensor slice(const Tensor& x, int64_t dim, Optional<int64_t> begin, Optional<int64_t> end,
             int64_t stride) {
  if (stride > 0) {
    return x.slice(dim, begin, end, stride);
  }
  const int64_t size = x.size(dim);
  const auto from_start = [&](int64_t i) { return i < 0 ? i + size : std::min(i, size - 1); };
  const int64_t first = begin.has_value() ? std::max<int64_t>(from_start(*begin), -1) : size - 1;
  const int64_t last = end.has_value() ? std::max<int64_t>(from_start(*end), -1) : -1;
  return x.slice(dim, last + 1, first + 1).flip(dim).slice(dim, 0, size, -stride);
}

// Bit i of a mask is about entry i: from the start, to the end, all dimensions that no other entry
// is for, a new one, or one that is left out.
Tensor strided_slice(const Tensor& x, IntArrayRef begin, IntArrayRef end, IntArrayRef strides,
                     int64_t begin_mask, int64_t end_mask, int64_t ellipsis_mask,
                     int64_t new_axis_mask, int64_t shrink_axis_mask) {
  Tensor y = x;
  int64_t dim = 0;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    const auto is_in = [](int64_t mask, std::size_t entry) { return (mask >> entry & 1) != 0; };
    if (is_in(ellipsis_mask, i)) {
      dim = y.dim();
      for (std::size_t j = i + 1; j < begin.size(); ++j) {
        dim -= is_in(new_axis_mask, j) ? 0 : 1;
      }
    } else if (is_in(new_axis_mask, i)) {
      y = y.unsqueeze(dim++);
    } else if (is_in(shrink_axis_mask, i)) {
      y = y.select(dim, begin[i]);
    } else {
      y = slice(y, dim, is_in(begin_mask, i) ? Optional<int64_t>() : begin[i],
                is_in(end_mask, i) ? Optional<int64_t>() : end[i], strides[i]);
      ++dim;
    }
  }
  return y;
}

// Takes a tensor, a number that the outputs' sizes say too, and a dimension: as many parts as there
// are outputs, one after the other.
void split(const aten_bridge::CallFrame& frame) {
  const std::vector<Tensor> operands = aten_bridge::tensors(frame);
  const Tensor& x = operands.at(0);
  const int64_t dim = operands.at(2).item<int64_t>();
  int64_t begin = 0;
  for (auto i = static_cast<std::size_t>(frame.input_count()); i < operands.size(); ++i) {
    operands[i].copy_(x.narrow(dim, begin, operands[i].size(dim)));
    begin += operands[i].size(dim);
  }
}

}  // namespace

ATEN_BRIDGE_EXPORT(BroadcastTo,
                   [](const Tensor& x, IntArrayRef, Tensor& y) { y.copy_(x.expand_as(y)); });
ATEN_BRIDGE_EXPORT(Chunk, split);  // called in graphs only, as SplitTensor
ATEN_BRIDGE_EXPORT(ExpandDims, reshape<int64_t>);
ATEN_BRIDGE_EXPORT(Reshape, reshape<IntArrayRef>);
ATEN_BRIDGE_EXPORT(Slice, [](const Tensor& x, IntArrayRef begin, IntArrayRef, Tensor& y) {
  Tensor part = x;
  for (int64_t i = 0; i < x.dim(); ++i) {
    part = part.narrow(i, begin.at(static_cast<std::size_t>(i)), y.size(i));
  }
  y.copy_(part);
});
ATEN_BRIDGE_EXPORT(SplitTensor, split);
ATEN_BRIDGE_EXPORT(Squeeze, reshape<OptionalIntArrayRef>);  // None in graphs that squeeze all
ATEN_BRIDGE_EXPORT(StridedSlice, strided_slice);
// In graph mode only: what may be written elsewhere.
ATEN_BRIDGE_EXPORT(TensorMove, [](const Tensor& x, Tensor& y) { y.copy_(x); });
ATEN_BRIDGE_EXPORT(Transpose,
                   [](const Tensor& x, IntArrayRef dims, Tensor& y) { y.copy_(x.permute(dims)); });
