// The seam between the bridge and its hosts, with a host of fewer than a hundred lines.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../kernels/toy_host.h"

namespace {

using Floats = std::vector<float>;
using Sizes = std::vector<int64_t>;

/// "" or the error's text.
std::string call(const char* name, const std::vector<ToyTensor>& tensors) {
  static void* const library = dlopen(TEST_TOY, RTLD_LAZY | RTLD_LOCAL);
  const auto function =
      reinterpret_cast<const char* (*)(const ToyTensor*, int)>(dlsym(library, name));
  const char* error = function(tensors.data(), static_cast<int>(tensors.size()));
  return error == nullptr ? "" : error;
}

struct Toy {
  Floats values;
  Sizes sizes;

  ToyTensor tensor(const char* dtype = "float32") {
    return {values.data(), dtype, sizes.data(), static_cast<int>(sizes.size())};
  }
};

TEST(ToyHostTest, CallsKernels) {
  for (int times = 0; times < 2; ++times) {  // the second has the views of the first
    Toy x = {{-2, 4}, {2}};
    Toy y = {{0, 0}, {2}};
    EXPECT_EQ(call("ToyLeakyRelu", {x.tensor(), y.tensor()}), "");
    EXPECT_EQ(y.values, (Floats{-1, 4}));
    Toy sum = {{0, 0}, {2}};
    EXPECT_EQ(call("ToyAdd", {x.tensor(), y.tensor(), sum.tensor()}), "");
    EXPECT_EQ(sum.values, (Floats{-3, 8}));
    Toy dx = {{0, 0}, {2}};
    Toy dother = {{0, 0}, {2}};
    EXPECT_EQ(
        call("ToyAddGrad", {x.tensor(), y.tensor(), sum.tensor(), dx.tensor(), dother.tensor()}),
        "");
    EXPECT_EQ(dother.values, sum.values);
  }
}

TEST(ToyHostTest, HasItsWordsInErrors) {
  Toy x = {{-2, 4}, {2}};
  Toy y = {{0, 0}, {1, 2}};
  EXPECT_EQ(call("ToyLeakyRelu", {x.tensor()}),
            "ToyLeakyRelu: expected 1 input and 1 output, got 1 slot; compare the tensors with the "
            "kernel");
  EXPECT_EQ(call("ToyLeakyRelu", {x.tensor("quack"), y.tensor()}),
            "ToyLeakyRelu: input 0 'x': expected a dtype of the toy's, got \"quack\"");
  EXPECT_EQ(call("ToyLeakyRelu", {x.tensor(), y.tensor()}),
            "ToyLeakyRelu: output 0: expected float32 [1, 2] as the toy's tensors or the meta "
            "function say, got float32 [2] because the kernel resized it; give it an output of "
            "that shape");
  EXPECT_EQ(call("ToyLeakyReluOfSlope", {x.tensor(), y.tensor()}),
            "ToyLeakyReluOfSlope: attribute 'slope': expected a float, such as 1.0, got nothing; "
            "this host has no attributes");
}

}  // namespace
