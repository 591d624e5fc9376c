// Versions of one library of operators, of which the second may replace the first. The third has
// another schema, and the fourth names that PyTorch cannot have.
#include <ATen/TensorOperators.h>
#include <ATen/ops/neg.h>
#include <aten_bridge.h>

namespace {

using at::Tensor;
using aten_bridge::composite;
using aten_bridge::meta;

#if VERSION == 1
ATEN_BRIDGE_EXPORT(
    Change, [](const Tensor& x, Tensor& y) { at::neg_out(y, x); }, meta());
ATEN_BRIDGE_EXPORT(
    Twice, [](const Tensor& x) { return x * 2; }, composite());
#elif VERSION == 2
ATEN_BRIDGE_EXPORT(Change, [](const Tensor& x) { return x + 1; });
ATEN_BRIDGE_EXPORT(
    Twice, [](const Tensor& x) { return x + x + 1; }, aten_bridge::autocast());
#elif VERSION == 3
ATEN_BRIDGE_EXPORT(
    Change, [](const Tensor& x, double by) { return x * by; }, aten_bridge::attr("by", 1.0));
#else
ATEN_BRIDGE_EXPORT(ChangeSign, [](const Tensor& x) { return -x; });
ATEN_BRIDGE_EXPORT(change_sign, [](const Tensor& x) { return x * -1; });
Tensor scaled(const Tensor& x, double a, double b) { return x * a * b; }
ATEN_BRIDGE_EXPORT(Twins, scaled, aten_bridge::attr("by", 1.0), aten_bridge::attr("by", 2.0));
ATEN_BRIDGE_EXPORT(Spaced, scaled, aten_bridge::attr("by 1", 1.0), aten_bridge::attr("by", 2.0));
#endif

}  // namespace
