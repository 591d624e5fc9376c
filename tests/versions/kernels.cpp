// Kernels that say with which version of the header they were built, and some whose names are
// those of others with endings, which are no C functions of these.
#include <ATen/ops/mul.h>
#include <aten_bridge.h>

#include <stdexcept>
#include <string>

namespace {

using aten_bridge::attr;

at::Tensor scale(const at::Tensor& x, double factor) {
  return x.mul(factor * ATEN_BRIDGE_VERSION_MINOR);
}

at::Tensor fail(const at::Tensor& x) {
  throw std::runtime_error("of version " + std::to_string(ATEN_BRIDGE_VERSION_MINOR) +
                           ", of rank " + std::to_string(x.dim()));
}

/// A state, which each host keeps.
class Counter {
 public:
  explicit Counter(double first) : count_(first) {}
  at::Tensor operator()(const at::Tensor& x) { return x.mul(count_++); }

 private:
  double count_;
};

}  // namespace

ATEN_BRIDGE_EXPORT(Scale, scale, attr("factor", 2.0), aten_bridge::meta());
ATEN_BRIDGE_EXPORT_GRAD(ScaleGrad, scale, attr("factor", 2.0));
ATEN_BRIDGE_EXPORT(ScaleInfer, scale, attr("factor", 3.0), aten_bridge::meta());
ATEN_BRIDGE_EXPORT(ScaleDescribe, scale, attr("factor", 5.0), aten_bridge::meta());
ATEN_BRIDGE_EXPORT(Fail, fail, aten_bridge::meta([](const at::Tensor& x) { return x; }));
ATEN_BRIDGE_EXPORT(Count, aten_bridge::state<Counter(double)>(), attr("first", 1.0),
                   aten_bridge::meta([](const at::Tensor& x) { return x; }));
