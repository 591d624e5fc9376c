// The adapter interface of hosts: one of fewer than a hundred lines beside the others, in one
// library.
#include <aten_bridge/testing.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../kernels/toy_host.h"
#include "jax_frame.h"
#include "table.h"

namespace {

using Floats = std::vector<float>;
using Sizes = std::vector<int64_t>;

void* library() {
  static void* const opened = dlopen(TEST_TOY, RTLD_LAZY | RTLD_LOCAL);
  return opened;
}

/// "" or the error's text.
std::string call(const std::string& name, const std::vector<ToyTensor>& tensors) {
  const auto function = reinterpret_cast<const char* (*)(const ToyTensor*, int)>(
      dlsym(library(), (name + "Toy").c_str()));
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

TEST(ToyHostTest, IsBesideTheOthers) {
  Floats x = {1, 2};
  Floats other = {3, 4};
  Floats sum = {0, 0};
  EXPECT_EQ(jax_frame::Frame(library(), "ToyAdd").input(x).input(other).output(sum).run(), "");
  EXPECT_EQ(sum, (Floats{4, 6}));
  const aten_bridge::testing::Library of_mindspore(TEST_TOY);
  EXPECT_EQ(of_mindspore.call("ToyAdd")
                .input<float>({2}, x)
                .input<float>({2}, other)
                .output<float>({2})
                .run()
                .output<float>(0),
            (Floats{4, 6}));
  const LibraryTable& table =
      *reinterpret_cast<const LibraryTable* (*)()>(dlsym(library(), "aten_bridge_library"))();
  const std::string operators = table.register_with_pytorch(/*replace=*/0);
  EXPECT_NE(operators.find(R"(["test_toy::toy_add", "ToyAdd", "default"], )"), std::string::npos)
      << operators;
  EXPECT_NE(table.description(table.number_of("ToyAdd"))
                .find(R"("hosts": ["MINDSPORE", "PYTORCH", "JAX"], )"),
            std::string::npos);
  Toy toy_x = {x, {2}};
  Toy toy_other = {other, {1, 2}};
  Toy toy_sum = {sum, {2}};
  // Each host has its own words for the same fault.
  EXPECT_EQ(call("ToyAdd", {toy_x.tensor(), toy_other.tensor(), toy_sum.tensor()}),
            "ToyAdd: output 0: expected float32 [2] as the toy's tensors or the meta function say, "
            "got float32 [1, 2] from the kernel");
  EXPECT_EQ(
      jax_frame::Frame(library(), "ToyAdd").input(x).input(other.data(), {1, 2}).output(sum).run(),
      "ToyAdd: output 0: expected float32 [2] as out or the meta function say, got float32 "
      "[1, 2] from the kernel");
}

TEST(ToyHostTest, AStateOfOneCallGoesWhileItsDeviceAndPyTorchsSettingsAreThoseOfTheCall) {
  Toy x = {{1, 2}, {2}};
  Toy y = {{0, 0}, {2}};
  EXPECT_EQ(call("ToyWatched", {x.tensor(), y.tensor()}), "");
  EXPECT_EQ(y.values, (Floats{2, 4}));
  EXPECT_TRUE(reinterpret_cast<bool (*)()>(dlsym(library(), "destroyed_in_its_call"))());
}

TEST(ToyHostTest, AsTheOnlyHostItAnswersPython) {
  constexpr int kAttributesAlone = -1;
  void* const sole = dlopen(TEST_SOLE_TOY, RTLD_LAZY | RTLD_LOCAL);
  const LibraryTable& table =
      *reinterpret_cast<const LibraryTable* (*)()>(dlsym(sole, "aten_bridge_library"))();
  int status = -1;
  const PythonQuestion question{"out", "the call", true, nullptr, kAttributesAlone, nullptr, 0};
  EXPECT_STREQ(table.infer(table.number_of("SoleLeakyReluOfSlope"), &question, &status),
               R"([["a float, such as 1.0", "nothing", "", 6, "attribute", -1, "slope"]])");
  EXPECT_EQ(status, 0);
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
