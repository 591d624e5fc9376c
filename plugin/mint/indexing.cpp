// Elements by their places, and whole tensors put together.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/embedding_renorm.h>
#include <ATen/ops/fft_fftshift.h>
#include <ATen/ops/fft_ifftshift.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_fill.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/kthvalue.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/masked_scatter.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/take.h>
#include <ATen/ops/tile.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

namespace {

// y = x[:, ..., index], `dim` times a colon. In the first `batch_dims` dimensions entry i of the
// index is for entry i of x.
void gather(const Tensor& x, const Tensor& index, int64_t dim, int64_t batch_dims, Tensor& y) {
  if (batch_dims < 0) {
    batch_dims += index.dim();
  }
  if (batch_dims > 0) {
    for (int64_t i = 0; i < x.size(0); ++i) {
      Tensor of_one = y[i];
      gather(x[i], index[i], dim < 0 ? dim : dim - 1, batch_dims - 1, of_one);
    }
    return;
  }
  std::vector<Tensor> of_dims(static_cast<std::size_t>(dim < 0 ? dim + x.dim() : dim));
  of_dims.push_back(index);
  y.copy_(x.index(places(of_dims)));
}

// -1 for none; ATen does not count from the end here.
int64_t row_without_gradient(OptionalInt padding, int64_t rows) {
  return !padding.has_value() ? -1 : *padding < 0 ? *padding + rows : *padding;
}

// MindSpore counts negative entries from the end, also where ATen refuses them: these calls are
// made again with their places, so that all others pay nothing.
template <class Body>
void with_places(const Tensor& index, int64_t size, const Body& body) {
  try {
    body(index.to(at::kLong));
  } catch (const c10::Error&) {
    const Tensor negative = index.lt(0).logical_and(index.ge(-size));
    if (!negative.any().item<bool>()) {
      throw;
    }
    body(at::where(negative, index.add(size), index).to(at::kLong));
  }
}

int64_t size_of(const Tensor& x, int64_t dim) { return x.dim() == 0 ? 1 : x.size(dim); }

template <class Source>
void scatter(const Tensor& x, int64_t dim, const Tensor& index, const Source& source, int64_t how,
             Tensor& y) {
  with_places(index, size_of(x, dim), [&](const Tensor& places) {
    y.copy_(x);
    scatter_reduce(y, dim, places, source, how);
  });
}

}  // namespace

ATEN_BRIDGE_EXPORT(ArgSort, [](const Tensor& x, int64_t dim, bool descending, bool stable,
                               Tensor& y) { y.copy_(at::argsort(x, stable, dim, descending)); });
ATEN_BRIDGE_EXPORT(ConstantPadND,
                   [](const Tensor& x, IntArrayRef padding, const Scalar& value, Tensor& y) {
                     y.copy_(at::constant_pad_nd(x, padding, value));
                   });
ATEN_BRIDGE_EXPORT(Embedding, [](const Tensor& indices, const Tensor& weight, OptionalInt,
                                 Optional<double> max_norm, double norm_type, bool, Tensor& y) {
  if (max_norm.has_value()) {
    Tensor renormed = weight;
    at::embedding_renorm_(renormed, indices.contiguous(), *max_norm, norm_type);
  }
  Tensor rows = y.view({indices.numel(), weight.size(1)});
  with_places(indices.reshape(-1), weight.size(0),
              [&](const Tensor& places) { at::index_select_out(rows, weight, 0, places); });
});
ATEN_BRIDGE_EXPORT(EmbeddingDenseBackward, [](const Tensor& dy, const Tensor& indices, int64_t rows,
                                              OptionalInt padding, bool scale_by_frequency,
                                              Tensor& dx) {
  // ATen reads and writes at an index without a look at it.
  const Tensor places = at::where(indices.lt(0), indices.add(rows), indices);
  TORCH_CHECK_INDEX(places.ge(0).logical_and(places.lt(rows)).all().item<bool>(),
                    "expected indices from -", rows, " to ", rows - 1);
  dx.copy_(at::embedding_dense_backward(dy, places, rows, row_without_gradient(padding, rows),
                                        scale_by_frequency));
});
ATEN_BRIDGE_EXPORT(ExpandAs, [](const Tensor& x, const Tensor& other, Tensor& y) {
  y.copy_(x.expand_as(other));
});
ATEN_BRIDGE_EXPORT(IndexAddExt, [](const Tensor& x, int64_t dim, const Tensor& index,
                                   const Tensor& source, const Scalar& alpha, Tensor& y) {
  at::index_add_out(y, x, dim, index, source, alpha);
});
ATEN_BRIDGE_EXPORT(IndexFillScalar,
                   [](const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value) {
                     return at::index_fill(x, dim, index.to(at::kLong), value);
                   });
ATEN_BRIDGE_EXPORT(IndexFillTensor,
                   [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
                     return at::index_fill(x, dim, index.to(at::kLong), value);
                   });
ATEN_BRIDGE_EXPORT(IndexSelect, [](const Tensor& x, int64_t dim, const Tensor& index, Tensor& y) {
  with_places(index, size_of(x, dim),
              [&](const Tensor& places) { at::index_select_out(y, x, dim, places); });
});
ATEN_BRIDGE_EXPORT(Kthvalue,
                   [](const Tensor& x, int64_t k, int64_t dim, bool keepdim, Tensor& values,
                      Tensor& indices) { at::kthvalue_out(values, indices, x, k, dim, keepdim); });
ATEN_BRIDGE_EXPORT(Narrow, [](const Tensor& x, int64_t dim, int64_t start, int64_t, Tensor& y) {
  y.copy_(x.narrow(dim, start, y.size(dim)));
});
ATEN_BRIDGE_EXPORT(OneHotExt, [](const Tensor& x, int64_t, const Tensor& on, const Tensor& off,
                                 int64_t axis, Tensor& y) {
  y.copy_(off.expand_as(y));
  const int64_t dim = axis < 0 ? axis + y.dim() : axis;
  y.scatter_(dim, x.to(at::kLong).unsqueeze(dim), on.item());
});
ATEN_BRIDGE_EXPORT(Repeat, [](const Tensor& x, IntArrayRef repeats, Tensor& y) {
  y.copy_(x.repeat(repeats));
});
ATEN_BRIDGE_EXPORT(RepeatInterleaveInt,
                   [](const Tensor& x, int64_t repeats, OptionalInt dim, OptionalInt size) {
                     return at::repeat_interleave(x, repeats, dim, size);
                   });
ATEN_BRIDGE_EXPORT(RepeatInterleaveTensor,
                   [](const Tensor& x, const Tensor& repeats, OptionalInt dim, OptionalInt size) {
                     return at::repeat_interleave(x, repeats, dim, size);
                   });
ATEN_BRIDGE_EXPORT(Roll, [](const Tensor& x, IntArrayRef shifts, OptionalIntArrayRef dims) {
  return at::roll(x, shifts, dims.value_or(IntArrayRef()));
});
ATEN_BRIDGE_EXPORT(ScatterAddExt, at::scatter_add_out);
ATEN_BRIDGE_EXPORT(SortExt, [](const Tensor& x, int64_t dim, bool descending, bool stable,
                               Tensor& values, Tensor& indices) {
  at::sort_out(values, indices, x, stable, dim, descending);
});
ATEN_BRIDGE_EXPORT(StackExt, [](TensorList tensors, int64_t dim, Tensor& y) {
  at::stack_out(y, tensors, dim);
});
ATEN_BRIDGE_EXPORT(Take, at::take_out);
ATEN_BRIDGE_EXPORT(TExt, [](const Tensor& x, Tensor& y) { y.copy_(x.t()); });
ATEN_BRIDGE_EXPORT(TopkExt, [](const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted,
                               Tensor& values, Tensor& indices) {
  if (x.numel() > 0) {  // MindSpore infers other sizes for empty results
    at::topk_out(values, indices, x, k, dim, largest, sorted);
  }
});

//===--- what MindSpore has too ---===//

ATEN_BRIDGE_EXPORT(Concat, [](TensorList tensors, int64_t dim, Tensor& y) {
  at::cat_out(y, tensors, dim);
});
// MindSpore's own kernels shift once more with each Resize(), and of views graph mode resizes them
// with each call. What has no dimensions is refused by ATen's and returned by MindSpore's.
ATEN_BRIDGE_EXPORT(FFTShift, [](const Tensor& x, OptionalIntArrayRef dims) {
  return x.dim() == 0 ? x.clone() : at::fft_fftshift(x, dims);
});
ATEN_BRIDGE_EXPORT(IFFTShift, [](const Tensor& x, OptionalIntArrayRef dims) {
  return x.dim() == 0 ? x.clone() : at::fft_ifftshift(x, dims);
});
// What a tensor as an index asks for: x[i], x[i, j], x[i, j] = values.
ATEN_BRIDGE_EXPORT(Gather, gather);
ATEN_BRIDGE_EXPORT(GatherNd, [](const Tensor& x, const Tensor& index) {
  return x.index(places(index.unbind(-1)));
});
ATEN_BRIDGE_EXPORT(TensorScatterUpdate,
                   [](const Tensor& x, const Tensor& index, const Tensor& values, Tensor& y) {
                     y.copy_(x);
                     y.index_put_(places(index.unbind(-1)), values);
                   });
ATEN_BRIDGE_EXPORT(GatherD, [](const Tensor& x, int64_t dim, const Tensor& index, Tensor& y) {
  with_places(index, size_of(x, dim),
              [&](const Tensor& places) { at::gather_out(y, x, dim, places); });
});
ATEN_BRIDGE_EXPORT(GatherDGradV2, [](const Tensor& x, int64_t dim, const Tensor& index,
                                     const Tensor& dy, Tensor& dx) {
  with_places(index, size_of(x, dim), [&](const Tensor& places) {
    at::scatter_add_out(dx, at::zeros_like(x), dim, places, dy);
  });
});
ATEN_BRIDGE_EXPORT(MaskedFill, [](const Tensor& x, const Tensor& mask, const Tensor& value) {
  return at::masked_fill(x, mask, value);
});
ATEN_BRIDGE_EXPORT(MaskedScatter, [](const Tensor& x, const Tensor& mask, const Tensor& source) {
  return at::masked_scatter(x, mask, source);
});
ATEN_BRIDGE_EXPORT(MaskedSelectGrad, [](const Tensor& x, const Tensor& mask, const Tensor& dy,
                                        Tensor& dx) {
  const auto sizes = at::infer_size(x.sizes(), mask.sizes());
  const Tensor all = at::zeros(sizes, x.options());
  all.masked_scatter_(mask.expand(sizes), dy);
  dx.copy_(all.sum_to_size(dx.sizes()));  // for a 0-dim input MindSpore wants them all
});
// The gradient with respect to what is repeated; `repeats` counts for all rows, or for each.
ATEN_BRIDGE_EXPORT(RepeatInterleaveGrad,
                   [](const Tensor& dy, const Tensor& repeats, int64_t dim, Tensor& dx) {
                     const int64_t rows = dx.size(dim);
                     const Tensor index = at::repeat_interleave(repeats.to(at::kLong).expand(rows));
                     dx.zero_();
                     dx.index_add_(dim, index, dy);
                   });
ATEN_BRIDGE_EXPORT(ReverseV2, [](const Tensor& x, IntArrayRef dims) { return at::flip(x, dims); });
ATEN_BRIDGE_EXPORT(Scatter, scatter<Tensor>);
ATEN_BRIDGE_EXPORT(ScatterValue, scatter<Scalar>);
ATEN_BRIDGE_EXPORT(SearchSorted, [](const Tensor& sorted, const Tensor& values,
                                    OptionalTensor sorter, OptionalDtype, bool right, Tensor& y) {
  y.copy_(at::searchsorted(sorted.contiguous(), values.contiguous(), /*out_int32=*/false, right, {},
                           sorter));
});
ATEN_BRIDGE_EXPORT(Tile, [](const Tensor& x, IntArrayRef counts, Tensor& y) {
  y.copy_(at::tile(x, counts));
});
// Rows of a negative segment are left out.
ATEN_BRIDGE_EXPORT(UnsortedSegmentSum,
                   [](const Tensor& x, const Tensor& segments, int64_t, Tensor& y) {
                     const Tensor rows = segments.flatten().to(at::kLong);
                     const Tensor kept = rows.ge(0).nonzero().squeeze(1);
                     const Tensor values = x.reshape({rows.numel(), -1}).index_select(0, kept);
                     y.zero_();
                     y.view({y.size(0), -1}).index_add_(0, rows.index_select(0, kept), values);
                   });
