// The kernel without any framework: as one calls it, and with an input that it refuses.
#include <aten_bridge/testing.h>

#include <cmath>
#include <cstdio>

int main(int argc, char** argv) {
  const aten_bridge::testing::Library library(argc > 1 ? argv[1] : "my_ops.so");
  const aten_bridge::testing::Result result = library.call("Swish")
                                                  .attribute("beta", 2.0)
                                                  .input<double>({2}, {0, 1})
                                                  .output<double>({2})
                                                  .run();
  if (!result.ok()) {
    std::printf("%s\n", result.error().c_str());
    return 1;
  }
  const std::vector<double> y = result.output<double>(0);
  const aten_bridge::testing::Result refused =
      library.call("Swish").input<int32_t>({2}, {0, 1}).output<int32_t>({2}).run();
  std::printf("swish(0) = %g, swish(1) = %g; of ints: %s\n", y[0], y[1], refused.error().c_str());
  return y[0] == 0 && std::abs(y[1] - 1 / (1 + std::exp(-2.0))) < 1e-15 && !refused.ok() ? 0 : 1;
}
