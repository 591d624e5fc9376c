// A workspace: memory for the time of a call, which the host provides.
#include <aten_bridge.h>

#include <algorithm>

using at::Tensor;

// [kernel]
// The median of each `window` neighbours, an odd number.
void median_filter(const Tensor& x, int64_t window, aten_bridge::Workspace<float> sorted,
                   Tensor& y) {
  TORCH_CHECK_VALUE(window % 2 == 1, "expected an odd window, got ", window);
  const auto* values = x.const_data_ptr<float>();
  auto* medians = y.mutable_data_ptr<float>();
  for (int64_t i = 0; i < y.numel(); ++i) {
    std::copy_n(values + i, window, sorted.begin());
    std::nth_element(sorted.begin(), sorted.begin() + window / 2, sorted.end());
    medians[i] = sorted[static_cast<std::size_t>(window / 2)];
  }
}

ATEN_BRIDGE_EXPORT(MedianFilter, median_filter, aten_bridge::attr("window", 3),
                   aten_bridge::workspace([](const Tensor& /*x*/, int64_t window) {
                     return window;
                   }),
                   aten_bridge::meta([](const Tensor& x, int64_t window) {
                     return x.new_empty({x.size(0) - window + 1});
                   }),
                   aten_bridge::input("x").dtype(at::kFloat).rank(1));
// [/kernel]
