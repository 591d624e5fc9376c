// torch_spline_conv 1.2.2: several results, integer inputs, and a backward kernel of its own.
#include "csrc/cpu/basis_cpu.h"
#include "csrc/cpu/weighting_cpu.h"

#include <aten_bridge.h>

#include <cmath>
#include <optional>
#include <tuple>

static std::tuple<at::Tensor, at::Tensor> basis_meta(torch::Tensor pseudo,
                                                     torch::Tensor kernel_size,
                                                     torch::Tensor /*is_open*/, int64_t degree) {
  const double count = std::pow(static_cast<double>(degree + 1), pseudo.size(1));
  const int64_t s = std::lround(count);
  return {at::empty({pseudo.size(0), s}, pseudo.options()),
          at::empty({pseudo.size(0), s}, kernel_size.options())};
}
ATEN_BRIDGE_EXPORT(SplineBasis, spline_basis_fw_cpu, aten_bridge::attr("degree", 1),
                   aten_bridge::meta(basis_meta));

static std::tuple<at::Tensor, at::Tensor, at::Tensor> basis_grad(
    torch::Tensor pseudo, torch::Tensor kernel_size, torch::Tensor is_open, torch::Tensor gradient,
    std::optional<at::Tensor> /*of_indices*/, int64_t degree) {
  return {spline_basis_bw_cpu(gradient, pseudo, kernel_size, is_open, degree),
          at::zeros_like(kernel_size), at::zeros_like(is_open)};
}
ATEN_BRIDGE_EXPORT(SplineBasisGrad, basis_grad, aten_bridge::attr("degree", 1));

static at::Tensor weighting_meta(torch::Tensor x, torch::Tensor weight, torch::Tensor /*basis*/,
                                 torch::Tensor /*index*/) {
  return at::empty({x.size(0), weight.size(2)}, x.options());
}
ATEN_BRIDGE_EXPORT(SplineWeighting, spline_weighting_fw_cpu, aten_bridge::meta(weighting_meta));
