#include <ATen/TensorOperators.h>
#include <ATen/ops/sigmoid.h>
#include <aten_bridge.h>

// x / (1 + exp(-beta * x))
at::Tensor swish(const at::Tensor& x, double beta) { return x * at::sigmoid(x * beta); }

ATEN_BRIDGE_EXPORT(Swish, swish, aten_bridge::attr("beta", 1.0), aten_bridge::meta(),
                   aten_bridge::input("x").dtype(aten_bridge::kFloatingPoint));
ATEN_BRIDGE_EXPORT_GRAD(SwishGrad, swish, aten_bridge::attr("beta", 1.0), aten_bridge::meta(),
                        aten_bridge::input("x").dtype(aten_bridge::kFloatingPoint));
