// Methods that write their tensor: the result is the first input's own memory.
#include <ATen/core/Tensor.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/threshold.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

// clang-format off
ATEN_BRIDGE_EXPORT(InplaceAddExt, [](const Tensor& x, const Tensor& other, const Scalar& alpha) { x.add_(other, alpha); });
ATEN_BRIDGE_EXPORT(InplaceAddsExt, [](const Tensor& x, const Scalar& other, const Scalar& alpha) { x.add_(other, alpha); });
ATEN_BRIDGE_EXPORT(InplaceAddmm, [](const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) { x.addmm_(a, b, beta, alpha); });
ATEN_BRIDGE_EXPORT(InplaceClampScalar, [](const Tensor& x, const Optional<Scalar>& min, const Optional<Scalar>& max) { x.clamp_(min, max); });
ATEN_BRIDGE_EXPORT(InplaceClampTensor, [](const Tensor& x, OptionalTensor min, OptionalTensor max) { x.clamp_(min, max); });
ATEN_BRIDGE_EXPORT(InplaceCopy, [](const Tensor& x, const Tensor& other, bool /*non_blocking*/) { x.copy_(other); });
ATEN_BRIDGE_EXPORT(InplaceDiv, [](const Tensor& x, const Tensor& other) { x.div_(other); });
ATEN_BRIDGE_EXPORT(InplaceDivs, [](const Tensor& x, const Scalar& other) { x.div_(other); });
ATEN_BRIDGE_EXPORT(InplaceElu, [](const Tensor& x, const Scalar& alpha) { Tensor y = x; at::elu_(y, alpha); });
ATEN_BRIDGE_EXPORT(InplaceErfinv, [](const Tensor& x) { x.erfinv_(); });
ATEN_BRIDGE_EXPORT(InplaceExp, [](const Tensor& x) { x.exp_(); });
ATEN_BRIDGE_EXPORT(InplaceFillDiagonal, [](const Tensor& x, const Scalar& value, bool wrap) { x.fill_diagonal_(value, wrap); });
ATEN_BRIDGE_EXPORT(InplaceFillScalar, [](const Tensor& x, const Scalar& value) { x.fill_(value); });
ATEN_BRIDGE_EXPORT(InplaceFillTensor, [](const Tensor& x, const Tensor& value) { x.fill_(value); });
ATEN_BRIDGE_EXPORT(InplaceFloor, [](const Tensor& x) { x.floor_(); });
ATEN_BRIDGE_EXPORT(InplaceFloorDivide, [](const Tensor& x, const Tensor& other) { x.floor_divide_(other); });
ATEN_BRIDGE_EXPORT(InplaceFloorDivides, [](const Tensor& x, const Scalar& other) { x.floor_divide_(other); });
ATEN_BRIDGE_EXPORT(InplaceHardtanh, [](const Tensor& x, const Scalar& min, const Scalar& max) { Tensor y = x; at::hardtanh_(y, min, max); });
ATEN_BRIDGE_EXPORT(InplaceIndexAddExt, [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) { x.index_add_(dim, index, source, alpha); });
ATEN_BRIDGE_EXPORT(InplaceIndexCopy, [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) { x.index_copy_(dim, index, source); });
ATEN_BRIDGE_EXPORT(InplaceIndexFillScalar, [](const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value) { x.index_fill_(dim, index, value); });
ATEN_BRIDGE_EXPORT(InplaceIndexFillTensor, [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) { x.index_fill_(dim, index, value); });
ATEN_BRIDGE_EXPORT(InplaceIndexPut, [](const Tensor& x, TensorList indices, const Tensor& values, bool accumulate) { x.index_put_(places(indices), values, accumulate); });
ATEN_BRIDGE_EXPORT(InplaceLog, [](const Tensor& x) { x.log_(); });
ATEN_BRIDGE_EXPORT(InplaceMaskedFillScalar, [](const Tensor& x, const Tensor& mask, const Scalar& value) { x.masked_fill_(mask, value); });
ATEN_BRIDGE_EXPORT(InplaceMaskedFillTensor, [](const Tensor& x, const Tensor& mask, const Tensor& value) { x.masked_fill_(mask, value); });
ATEN_BRIDGE_EXPORT(InplaceMaskedScatter, [](const Tensor& x, const Tensor& mask, const Tensor& source) { x.masked_scatter_(mask, source); });
ATEN_BRIDGE_EXPORT(InplaceMul, [](const Tensor& x, const Tensor& other) { x.mul_(other); });
ATEN_BRIDGE_EXPORT(InplaceMuls, [](const Tensor& x, const Scalar& other) { x.mul_(other); });
ATEN_BRIDGE_EXPORT(InplacePut, [](const Tensor& x, const Tensor& index, const Tensor& source, bool accumulate) { x.put_(index, source, accumulate); });
ATEN_BRIDGE_EXPORT(InplaceReLU, [](const Tensor& x) { x.relu_(); });
ATEN_BRIDGE_EXPORT(InplaceRemainderTensorScalar, [](const Tensor& x, const Scalar& other) { x.remainder_(other); });
ATEN_BRIDGE_EXPORT(InplaceRemainderTensorTensor, [](const Tensor& x, const Tensor& other) { x.remainder_(other); });
ATEN_BRIDGE_EXPORT(InplaceScatterAdd, [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) { x.scatter_add_(dim, index, source); });
ATEN_BRIDGE_EXPORT(InplaceScatterSrc, [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) { x.scatter_(dim, index, source); });
ATEN_BRIDGE_EXPORT(InplaceScatterSrcReduce, [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, int64_t how) { scatter_reduce(x, dim, index, source, how); });
ATEN_BRIDGE_EXPORT(InplaceScatterValue, [](const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value) { x.scatter_(dim, index, value); });
ATEN_BRIDGE_EXPORT(InplaceScatterValueReduce, [](const Tensor& x, int64_t dim, const Tensor& index, const Scalar& value, int64_t how) { scatter_reduce(x, dim, index, value, how); });
ATEN_BRIDGE_EXPORT(InplaceSiLU, [](const Tensor& x) { Tensor y = x; at::silu_(y); });
ATEN_BRIDGE_EXPORT(InplaceSigmoid, [](const Tensor& x) { x.sigmoid_(); });
ATEN_BRIDGE_EXPORT(InplaceSign, [](const Tensor& x) { x.sign_(); });
ATEN_BRIDGE_EXPORT(InplaceSubExt, [](const Tensor& x, const Tensor& other, const Scalar& alpha) { x.sub_(other, alpha); });
ATEN_BRIDGE_EXPORT(InplaceSubScalar, [](const Tensor& x, const Scalar& other, const Scalar& alpha) { x.sub_(other, alpha); });
ATEN_BRIDGE_EXPORT(InplaceTanh, [](const Tensor& x) { x.tanh_(); });
ATEN_BRIDGE_EXPORT(InplaceThreshold, [](const Tensor& x, const Scalar& threshold, const Scalar& value) { Tensor y = x; at::threshold_(y, threshold, value); });
ATEN_BRIDGE_EXPORT(InplaceZero, [](const Tensor& x) { x.zero_(); });
// clang-format on
