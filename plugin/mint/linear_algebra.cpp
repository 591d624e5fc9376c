// Products and factors of matrices.
#include <ATen/ops/addbmm.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/addmv.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/triangular_solve.h>

#include "mint.h"

using namespace mint;  // NOLINT(google-build-using-namespace)

ATEN_BRIDGE_EXPORT(Addbmm, at::addbmm_out);
ATEN_BRIDGE_EXPORT(Addmm,
                   [](const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta,
                      const Scalar& alpha, Tensor& y) { at::addmm_out(y, x, a, b, beta, alpha); });
ATEN_BRIDGE_EXPORT(Addmv, at::addmv_out);
ATEN_BRIDGE_EXPORT(Baddbmm, [](const Tensor& x, const Tensor& a, const Tensor& b,
                               const Scalar& beta, const Scalar& alpha,
                               Tensor& y) { at::baddbmm_out(y, x, a, b, beta, alpha); });
ATEN_BRIDGE_EXPORT(Dense,
                   [](const Tensor& x, const Tensor& weight, OptionalTensor bias, Tensor& y) {
                     if (x.dim() == 1) {
                       y.copy_(at::linear(x, weight, bias));
                     } else {
                       at::linear_out(y, x, weight, bias);
                     }
                   });
ATEN_BRIDGE_EXPORT(Dot, at::dot_out);
ATEN_BRIDGE_EXPORT(LinalgQr, [](const Tensor& a, int64_t mode, Tensor& q, Tensor& r) {
  at::linalg_qr_out(q, r, a, mode == 0 ? "reduced" : mode == 1 ? "complete" : "r");
});
// MindSpore's own reads a transposed view as if it were not, and leaves the result of an empty
// product as it was.
ATEN_BRIDGE_EXPORT(BatchMatMul, [](const Tensor& a, const Tensor& b, bool transpose_a,
                                   bool transpose_b, Tensor& y) {
  at::matmul_out(y, transpose_a ? a.mT() : a, transpose_b ? b.mT() : b);
});
ATEN_BRIDGE_EXPORT(BatchMatMulExt,
                   [](const Tensor& a, const Tensor& b, Tensor& y) { at::bmm_out(y, a, b); });
ATEN_BRIDGE_EXPORT(MatMul, [](const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b,
                              Tensor& y) {
  at::mm_out(y, transpose_a ? a.t() : a, transpose_b ? b.t() : b);
});
// Not matmul_out(), which warns of a result that it resizes on the way, where one is a vector.
ATEN_BRIDGE_EXPORT(MatMulExt,
                   [](const Tensor& a, const Tensor& b, Tensor& y) { y.copy_(at::matmul(a, b)); });
ATEN_BRIDGE_EXPORT(MatrixInverseExt, at::linalg_inv_out);
ATEN_BRIDGE_EXPORT(Mm, [](const Tensor& a, const Tensor& b, Tensor& y) { at::mm_out(y, a, b); });
ATEN_BRIDGE_EXPORT(Mv, at::mv_out);
ATEN_BRIDGE_EXPORT(Outer, at::outer_out);
ATEN_BRIDGE_EXPORT(TriangularSolve, [](const Tensor& b, const Tensor& a, bool upper, bool transpose,
                                       bool unitriangular, Tensor& x, Tensor& m) {
  at::triangular_solve_out(x, m, b, a, upper, transpose, unitriangular);
});
