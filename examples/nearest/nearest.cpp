// A loop of one's own, in parallel. It reads memory, so that its meta function is another one.
#include <ATen/Parallel.h>
#include <aten_bridge.h>

#include <limits>

using aten_bridge::input;
using aten_bridge::output;

// [kernel]
// For each row of `queries` the index of the row of `points` that is nearest to it.
void nearest(const at::Tensor& queries, const at::Tensor& points, at::Tensor& index) {
  const auto* query = queries.const_data_ptr<float>();
  const auto* point = points.const_data_ptr<float>();
  auto* result = index.mutable_data_ptr<int64_t>();
  const int64_t dims = queries.size(1);
  at::parallel_for(0, queries.size(0), /*grain_size=*/16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float least = std::numeric_limits<float>::infinity();
      result[i] = -1;  // there are no points, or none at a distance
      for (int64_t j = 0; j < points.size(0); ++j) {
        float distance = 0;
        for (int64_t k = 0; k < dims; ++k) {
          const float difference = query[i * dims + k] - point[j * dims + k];
          distance += difference * difference;
        }
        if (distance < least) {
          least = distance;
          result[i] = j;
        }
      }
    }
  });
}

at::Tensor nearest_meta(const at::Tensor& queries) {
  return queries.new_empty({queries.size(0)}, at::kLong);
}

ATEN_BRIDGE_EXPORT(Nearest, nearest, aten_bridge::meta(nearest_meta),
                   input("queries").dtype(at::kFloat).sizes("Q", "D"),
                   input("points").dtype(at::kFloat).sizes("P", "D"),
                   output("index").dtype(at::kLong).sizes("Q"));
// [/kernel]
