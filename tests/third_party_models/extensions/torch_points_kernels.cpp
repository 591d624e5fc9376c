// torch-points-kernels 0.7.0: kernels of point clouds, one of which draws random numbers.
#include "fps.h"
#include "interpolate.h"
#include "knn.h"

#include <aten_bridge.h>

#include <tuple>
#include <utility>
#include <vector>

using at::Tensor;

// Features of [batch, channels, points], for each new point some old ones and their weights.
static Tensor interpolate_meta(const Tensor& features, const Tensor& index, const Tensor&) {
  return at::empty({features.size(0), features.size(1), index.size(1)}, features.options());
}
ATEN_BRIDGE_EXPORT(KnnInterpolate, knn_interpolate, aten_bridge::meta(interpolate_meta));

static std::tuple<Tensor, Tensor, Tensor> interpolate_grad(const Tensor& features,
                                                           const Tensor& index,
                                                           const Tensor& weight,
                                                           const Tensor& gradient) {
  return {knn_interpolate_grad(gradient, index, weight, static_cast<int>(features.size(2))),
          at::zeros_like(index), at::zeros_like(weight)};
}
ATEN_BRIDGE_EXPORT(KnnInterpolateGrad, interpolate_grad);

// Points of [batch, points, 3], each farthest from those before it.
static Tensor farthest_points(const Tensor& points, int64_t count, bool random) {
  return fps(points, static_cast<int>(count), random);
}
static Tensor farthest_meta(const Tensor& points, int64_t count, bool /*random*/) {
  return at::empty({points.size(0), count}, points.options().dtype(at::kLong));
}
ATEN_BRIDGE_EXPORT(FarthestPoints, farthest_points, aten_bridge::attr("count"),
                   aten_bridge::attr("random", false), aten_bridge::meta(farthest_meta));

// Indices of the nearest, and their squared distances.
static std::pair<Tensor, Tensor> nearest(const Tensor& support, const Tensor& query,
                                         int64_t count) {
  return dense_knn(support, query, static_cast<int>(count));
}
static std::pair<Tensor, Tensor> nearest_meta(const Tensor& /*support*/, const Tensor& query,
                                              int64_t count) {
  const std::vector<int64_t> sizes = {query.size(0), query.size(1), count};
  return {at::empty(sizes, query.options().dtype(at::kLong)), at::empty(sizes, query.options())};
}
ATEN_BRIDGE_EXPORT(Nearest, nearest, aten_bridge::attr("count"), aten_bridge::meta(nearest_meta));
