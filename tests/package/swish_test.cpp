// Calls the kernel as MindSpore does, and once with an input that it refuses.
#include <aten_bridge/testing.h>

#include <cmath>
#include <cstdio>

int main(int /*argc*/, char** argv) {
  // [call]
  const aten_bridge::testing::Library library(argv[1]);
  const aten_bridge::testing::Result result = library.call("Swish")
                                                  .attribute("beta", 2.0)
                                                  .input<double>({2}, {0, 1})
                                                  .output<double>({2})
                                                  .run();
  // [/call]
  if (!result.ok()) {
    std::printf("%s\n", result.error().c_str());
    return 1;
  }
  const std::vector<double> y = result.output<double>(0);
  std::printf("swish(0) = %.6f, swish(1) = %.6f\n", y[0], y[1]);
  // [refused]
  const aten_bridge::testing::Result refused =
      library.call("Swish").input<int32_t>({2}, {0, 1}).output<int32_t>({2}).run();
  const bool is_refused = refused.error() ==
                          "Swish: input 0 'x': expected float16|bfloat16|float32|float64, got "
                          "\"int32\" with shape [2]";
  // [/refused]
  return is_refused && y[0] == 0 && std::abs(y[1] - 1 / (1 + std::exp(-2.0))) < 1e-15 ? 0 : 1;
}
