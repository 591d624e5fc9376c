// Three versions of one library of operators, of which the second may replace the first; the third
// has another schema.
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
#else
ATEN_BRIDGE_EXPORT(
    Change, [](const Tensor& x, double by) { return x * by; }, aten_bridge::attr("by", 1.0));
#endif

}  // namespace
