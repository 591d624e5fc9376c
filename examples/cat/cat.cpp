// Any number of inputs: an at::TensorList takes those that the other parameters leave.
#include <ATen/ops/cat.h>
#include <aten_bridge.h>

// [export]
at::Tensor cat(at::TensorList tensors, int64_t dim) { return at::cat(tensors, dim); }
ATEN_BRIDGE_EXPORT(Cat, cat, aten_bridge::attr("dim", 0), aten_bridge::meta());
// [/export]
