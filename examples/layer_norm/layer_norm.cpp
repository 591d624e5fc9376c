// Optional inputs: std::optional is empty where Python passes None.
#include <ATen/ops/layer_norm.h>
#include <aten_bridge.h>

using aten_bridge::input;

// [export]
at::Tensor layer_norm(const at::Tensor& x, const std::optional<at::Tensor>& weight,
                      const std::optional<at::Tensor>& bias, double eps) {
  return at::layer_norm(x, x.sizes().slice(x.dim() - 1), weight, bias, eps);
}
ATEN_BRIDGE_EXPORT(LayerNorm, layer_norm, aten_bridge::attr("eps", 1e-5), aten_bridge::meta(),
                   input("x").dtype(aten_bridge::kFloatingPoint).sizes("...", "C"),
                   input("weight").sizes("C"), input("bias").sizes("C"));
// [/export]
