// Calls the kernel as MindSpore does: x / (1 + exp(-x)).
#include <aten_bridge/testing.h>

#include <cmath>
#include <cstdio>

int main(int /*argc*/, char** argv) {
  // [call]
  const aten_bridge::testing::Library library(argv[1]);
  const aten_bridge::testing::Result result =
      library.call("Swish").input<double>({2}, {0, 1}).output<double>({2}).run();
  // [/call]
  if (!result.ok()) {
    std::printf("%s\n", result.error().c_str());
    return 1;
  }
  const std::vector<double> y = result.output<double>(0);
  std::printf("swish(0) = %.6f, swish(1) = %.6f\n", y[0], y[1]);
  return y[0] == 0 && std::abs(y[1] - 1 / (1 + std::exp(-1.0))) < 1e-15 ? 0 : 1;
}
