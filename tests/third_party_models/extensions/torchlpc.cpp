// torchlpc 0.7.2: a source that registers the same kernels with TORCH_LIBRARY, complex numbers.
#include "torchlpc/csrc/scan_cpu.cpp"

#include <aten_bridge.h>

#include <tuple>

// y[:, t] = weights[:, t] * y[:, t - 1] + x[:, t], with initials before the first.
static at::Tensor like_first(const at::Tensor& x, const at::Tensor&, const at::Tensor&) {
  return at::empty_like(x);
}
ATEN_BRIDGE_EXPORT(Scan, scan_cpu_wrapper, aten_bridge::meta(like_first));

static std::tuple<at::Tensor, at::Tensor, at::Tensor> scan_grad(const at::Tensor& x,
                                                                const at::Tensor& weights,
                                                                const at::Tensor& initials,
                                                                const at::Tensor& dy) {
  const at::Tensor y = scan_cpu_wrapper(x, weights, initials);
  const at::Tensor before = at::cat({initials.unsqueeze(1), y.narrow(1, 0, y.size(1) - 1)}, 1);
  const at::Tensor factors = at::constant_pad_nd(weights.narrow(1, 1, y.size(1) - 1), {0, 1});
  const at::Tensor of_x =
      scan_cpu_wrapper(dy.flip(1), factors.conj().flip(1), at::zeros_like(initials)).flip(1);
  return {of_x, of_x * before.conj(), of_x.select(1, 0) * weights.select(1, 0).conj()};
}
ATEN_BRIDGE_EXPORT(ScanGrad, scan_grad);

// An all-pole filter whose coefficients change with time: x of [batch, length].
ATEN_BRIDGE_EXPORT(Lpc, lpc_cpu, aten_bridge::meta(like_first));
