// torch_cluster 1.6.3: optional inputs, and a result whose size is known of the attributes alone.
#include "csrc/cpu/grid_cpu.h"
#include "csrc/cpu/knn_cpu.h"

#include <aten_bridge.h>

using Optional = torch::optional<torch::Tensor>;

static at::Tensor knn_meta(torch::Tensor /*x*/, torch::Tensor y, Optional /*ptr_x*/,
                           Optional /*ptr_y*/, int64_t k, int64_t /*workers*/) {
  return at::empty({2, y.size(0) * k}, y.options().dtype(at::kLong));
}
ATEN_BRIDGE_EXPORT(Knn, knn_cpu, aten_bridge::attr("k"), aten_bridge::attr("num_workers", 1),
                   aten_bridge::meta(knn_meta));

static at::Tensor grid_meta(torch::Tensor pos, torch::Tensor /*size*/, Optional /*start*/,
                            Optional /*end*/) {
  return at::empty({pos.size(0)}, pos.options().dtype(at::kLong));
}
ATEN_BRIDGE_EXPORT(Grid, grid_cpu, aten_bridge::meta(grid_meta));
