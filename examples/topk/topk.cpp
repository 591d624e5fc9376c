// Several outputs: a std::tuple is one for each element. The function is ATen's own.
#include <ATen/ops/topk.h>
#include <aten_bridge.h>

using aten_bridge::attr;

// [export]
ATEN_BRIDGE_EXPORT(Topk, at::topk, attr("k"), attr("dim", -1), attr("largest", true),
                   attr("sorted", true), aten_bridge::meta());
// [/export]
