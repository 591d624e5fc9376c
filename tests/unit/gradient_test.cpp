// Gradient kernels through the simulated host: their values against differences of the forward
// kernel's, and what they do with inputs, outputs and attributes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "typed.h"

namespace {

using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;

Call graded(const std::string& name) {
  static const aten_bridge::testing::Library library(TEST_GRADIENTS);
  return library.call(name);
}

//===--- values ---===//

struct Input {
  Ints sizes;
  Doubles values;  // a float64 input's
  Ints integers;   // an int64 input's
  bool is_none = false;
};

int64_t product(const Ints& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Numbers of both signs, none near another or near 0, where some functions have a kink.
Input real(const Ints& sizes) {
  Input input{sizes, Doubles(static_cast<std::size_t>(product(sizes))), {}};
  int64_t state = 7 + product(sizes);
  for (double& value : input.values) {
    state = (state * 37 + 11) % 1009;
    value = static_cast<double>(state) / 504.5 - 1.0007;
  }
  return input;
}
Input integers(const Ints& sizes, const Ints& values) { return {sizes, {}, values}; }
Input none() { return {{}, {}, {}, true}; }

struct Operator {
  std::string name;
  std::function<void(Call&)> attributes;
  std::vector<Input> inputs;
  std::vector<Ints> outputs;  // float64; Topk has an int64 one more
};

Call with_inputs(const std::string& name, const Operator& op) {
  Call call = graded(name);
  op.attributes(call);
  for (const Input& input : op.inputs) {
    if (input.is_none) {
      call.input_none();
    } else if (!input.integers.empty()) {
      call.input<int64_t>(input.sizes, input.integers);
    } else {
      call.input<double>(input.sizes, input.values);
    }
  }
  return call;
}

// A weighted sum of all outputs, the weights being the gradients that the gradient kernel gets.
double weigh(const Operator& op) {
  Call call = with_inputs(op.name, op);
  for (const Ints& sizes : op.outputs) {
    call.output<double>(sizes);
  }
  if (op.name == "Topk") {
    call.output<int64_t>(op.outputs[0]);
  }
  const Result result = call.run();
  EXPECT_EQ(result.error(), "");
  double sum = 0;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const Doubles values = result.output<double>(static_cast<int>(i));
    const Doubles weights = real(op.outputs[i]).values;
    sum += std::inner_product(values.begin(), values.end(), weights.begin(), 0.0);
  }
  return sum;
}

std::vector<Doubles> gradients(const Operator& op) {
  Call call = with_inputs(op.name + "Grad", op);
  for (const Ints& sizes : op.outputs) {
    call.input<double>(sizes, real(sizes).values);
  }
  if (op.name == "Topk") {
    call.input<int64_t>(op.outputs[0], Ints(static_cast<std::size_t>(product(op.outputs[0]))));
  }
  for (const Input& input : op.inputs) {
    if (!input.integers.empty()) {
      call.output<int64_t>(input.sizes);
    } else {
      call.output<double>(input.is_none ? Ints{0} : input.sizes);
    }
  }
  const Result result = call.run();
  EXPECT_EQ(result.error(), "");
  std::vector<Doubles> found;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i].integers.empty()) {
      found.push_back(result.output<double>(static_cast<int>(i)));
    } else {
      EXPECT_EQ(result.output<int64_t>(static_cast<int>(i)), Ints(op.inputs[i].integers.size()));
      found.emplace_back();
    }
  }
  return found;
}

const auto no_attributes = [](Call&) {};

std::vector<Operator> operators() {
  const auto ints = [](const char* name, const Ints& values) {
    return [=](Call& call) { call.attribute(name, values); };
  };
  const auto number = [](const char* name, double value) {
    return [=](Call& call) { call.attribute(name, value); };
  };
  const auto integer = [](const char* name, int64_t value) {
    return [=](Call& call) { call.attribute(name, value); };
  };
  return {
      {"LeakyRelu", number("negative_slope", 0.2), {real({3, 4})}, {{3, 4}}},
      {"Elu", number("alpha", 1.5), {real({7})}, {{7}}},
      {"Gelu",
       [](Call& call) { call.attribute("approximate", std::string("tanh")); },
       {real({5})},
       {{5}}},
      {"Softplus", number("beta", 2), {real({2, 3})}, {{2, 3}}},
      {"Softmax", integer("dim", 0), {real({3, 2})}, {{3, 2}}},
      {"Conv2d",
       [](Call& call) {
         call.attribute("stride", Ints{2, 1}).attribute("groups", 2);
       },
       {real({2, 4, 5, 4}), real({6, 2, 3, 2}), real({6})},
       {{2, 6, 2, 3}}},
      {"Conv2d",
       ints("padding", {1, 1}),
       {real({1, 2, 4, 4}), real({3, 2, 3, 3}), none()},
       {{1, 3, 4, 4}}},
      {"LayerNorm", number("eps", 0.01), {real({3, 5}), real({5}), real({5})}, {{3, 5}}},
      {"LayerNorm", number("eps", 0.01), {real({3, 5}), none(), real({5})}, {{3, 5}}},
      {"GroupNorm", integer("groups", 2), {real({2, 4, 3}), real({4}), real({4})}, {{2, 4, 3}}},
      {"AvgPool2d", ints("kernel_size", {3, 2}), {real({1, 2, 5, 6})}, {{1, 2, 3, 4}}},
      {"MaxPool2d", ints("kernel_size", {2, 2}), {real({1, 2, 4, 6})}, {{1, 2, 2, 3}}},
      {"AdaptiveAvgPool2d", ints("size", {2, 3}), {real({1, 2, 5, 5})}, {{1, 2, 2, 3}}},
      {"HuberLoss", number("delta", 0.5), {real({3, 3}), real({9, 1})}, {{}}},
      {"CrossEntropy",
       number("label_smoothing", 0.1),
       {real({4, 3}), integers({4}, {0, 2, -100, 1}), real({3})},
       {{}}},
      {"Upsample", ints("size", {5, 3}), {real({1, 2, 3, 2})}, {{1, 2, 5, 3}}},
      {"GridSample", integer("mode", 0), {real({1, 2, 4, 4}), real({1, 3, 2, 2})}, {{1, 2, 3, 2}}},
      {"Matmul", no_attributes, {real({2, 3, 4}), real({4, 5})}, {{2, 3, 5}}},
      {"Addmm", number("beta", 0.5), {real({2, 3}), real({2, 4}), real({4, 3})}, {{2, 3}}},
      {"Embedding",
       integer("padding_index", 1),
       {real({4, 3}), integers({2, 2}, {0, 1, 3, 0})},
       {{2, 2, 3}}},
      {"Embedding",
       [](Call& call) { call.attribute("sparse", true); },
       {real({4, 3}), integers({2}, {3, 3})},
       {{2, 3}}},
      {"IndexSelect", integer("dim", 1), {real({2, 4}), integers({3}, {0, 0, 2})}, {{2, 3}}},
      {"Cumsum", integer("dim", 1), {real({2, 5})}, {{2, 5}}},
      {"Topk", integer("k", 2), {real({3, 5})}, {{3, 2}}},
      {"Cat", integer("dim", 1), {real({2, 1}), real({2, 3}), real({2, 2})}, {{2, 6}}},
  };
}

TEST(GradientTest, IsTheSlopeOfTheForwardKernel) {
  for (Operator op : operators()) {
    SCOPED_TRACE(op.name);
    if (op.name == "HuberLoss") {
      op.inputs[1].sizes = op.inputs[0].sizes;
    }
    const std::vector<Doubles> found = gradients(op);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      Doubles& values = op.inputs[i].values;
      if (values.empty()) {
        continue;
      }
      // Along one direction, in which all elements move by another length.
      Doubles direction(values.size());
      for (std::size_t j = 0; j < values.size(); ++j) {
        const bool is_padding = op.name == "Embedding" && j / 3 == 1;
        direction[j] = is_padding ? 0 : 1 + static_cast<double>(j * j % 17) / 7;
      }
      constexpr double kStep = 1e-7;
      const Doubles before = values;
      const auto weigh_at = [&](double step) {
        for (std::size_t j = 0; j < values.size(); ++j) {
          values[j] = before[j] + step * direction[j];
        }
        return weigh(op);
      };
      const double slope = (weigh_at(kStep) - weigh_at(-kStep)) / (2 * kStep);
      values = before;
      const double along =
          std::inner_product(direction.begin(), direction.end(), found[i].begin(), 0.0);
      const bool is_constant = op.name == "CrossEntropy" && i == 2;  // the kernel detaches it
      EXPECT_NEAR(along, is_constant ? 0 : slope, 1e-6) << "input " << i;
    }
  }
}

//===--- the call ---===//

// Everything: y = factor * where(mask, x, -x) + the sum of the list's squares + bias, and 2 * x.
TEST(GradientTest, IsGivenForEachInputThatIsATensor) {
  Call call = graded("EverythingGrad");
  call.input<float>({2}, {1, 2}).input_bytes("bool", {2}, {1, 0});
  call.input<float>({2}, {3, 4}).input<float>({1}, {5}).input<float>({2}, {6, 7}).input_number(3.0);
  call.input<float>({2}, {10, 20}).input<float>({2}, {100, 200});
  call.output<float>({2}).output_bytes("bool", {2}, 1).output<float>({2}).output<float>({1});
  const Result result = call.output<float>({2}).run();
  ASSERT_EQ(result.error(), "");
  using Floats = std::vector<float>;
  EXPECT_EQ(result.output<float>(0), (Floats{10 * 3 + 200, 20 * -3 + 400}));
  EXPECT_EQ(result.bytes(1), (std::vector<unsigned char>{0, 0})) << "of a mask";
  EXPECT_EQ(result.output<float>(2), (Floats{10 * 2 * 3, 20 * 2 * 4}));
  EXPECT_EQ(result.output<float>(3), (Floats{30 * 2 * 5}));
  EXPECT_EQ(result.output<float>(4), (Floats{10, 20})) << "of the bias";
}

TEST(GradientTest, OfNoneIsZerosAndListsMayBeEmpty) {
  Call call = graded("EverythingGrad");
  call.input<float>({1}, {1}).input_bytes("bool", {1}, {1}).input_none().input_number(3.0);
  call.input<float>({1}, {10}).input_none();
  call.output<float>({1}).output_bytes("bool", {1}, 1);
  const Result result = call.output<float>({4}).run();
  ASSERT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), std::vector<float>{30})
      << "the second gradient is None: zeros";
  EXPECT_EQ(result.output<float>(2), std::vector<float>(4)) << "of None";
}

TEST(GradientTest, OfWhatTheResultDoesNotDependOnIsZeros) {
  Call call = graded("FirstGrad");
  call.input<float>({2}, {1, 2}).input<float>({3}, {1, 2, 3}).input<float>({2}, {4, 5});
  const Result result = call.output<float>({2}).output<float>({3}).run();
  ASSERT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (std::vector<float>{4, 5}));
  EXPECT_EQ(result.output<float>(1), (std::vector<float>{0, 0, 0}));
}

TEST(GradientTest, OfAFunctionOfIntegersIsZeros) {
  Call call = graded("CubeGrad");
  call.input<int64_t>({2}, {1, 2}).input<int64_t>({2}, {4, 5}).output<int64_t>({2});
  EXPECT_EQ(call.run().output<int64_t>(0), (Ints{0, 0}));
}

TEST(GradientTest, FollowsPytorchsConventionForComplexNumbers) {
  Call call = graded("ConjugateGrad");
  call.input_bytes("complex64", {1}, {0, 0, 64, 64, 0, 0, 128, 64});  // 3 + 4i
  call.input_bytes("complex64", {1}, {0, 0, 128, 63, 0, 0, 0, 0});    // 1
  call.output_bytes("complex64", {1}, 8);
  EXPECT_EQ(call.run().bytes(0), (std::vector<unsigned char>{0, 0, 192, 64, 0, 0, 0, 65}))
      << "6 + 8i";
}

TEST(GradientTest, HasGradientsOfItsOwn) {
  Call second = graded("CubeGradGrad");  // 3 x^2 g, weighed with 10, gives 60 x g and 30 x^2
  second.input<double>({1}, {2}).input<double>({1}, {5}).input<double>({1}, {10});
  const Result result = second.output<double>({1}).output<double>({1}).run();
  ASSERT_EQ(result.error(), "");
  EXPECT_EQ(result.output<double>(0), Doubles{600});
  EXPECT_EQ(result.output<double>(1), Doubles{120});

  Call third = graded("CubeGradGradGrad");  // 6 x g h and 3 x^2 h, weighed with 1 and 7
  third.input<double>({1}, {2}).input<double>({1}, {5}).input<double>({1}, {10});
  third.input<double>({1}, {1}).input<double>({1}, {7});
  const Result more = third.output<double>({1}).output<double>({1}).output<double>({1}).run();
  ASSERT_EQ(more.error(), "");
  EXPECT_EQ(more.output<double>(0), Doubles{6 * 5 * 10 + 7 * 6 * 2 * 10});
  EXPECT_EQ(more.output<double>(1), Doubles{6 * 2 * 10});
  EXPECT_EQ(more.output<double>(2), Doubles{6 * 2 * 5 + 7 * 3 * 4});

  Call flat = graded("LeakyReluGradGrad");
  flat.input<double>({2}, {-2, 3}).input<double>({2}, {5, 6}).input<double>({2}, {10, 10});
  const Result zeros =
      flat.attribute("negative_slope", 0.5).output<double>({2}).output<double>({2}).run();
  ASSERT_EQ(zeros.error(), "");
  EXPECT_EQ(zeros.output<double>(0), (Doubles{0, 0}));
  EXPECT_EQ(zeros.output<double>(1), (Doubles{5, 10}));
}

TEST(GradientTest, LeavesNothingOfTheGraph) {
  Call call = graded("WatchedGrad");
  call.input<float>({1}, {3}).input<float>({1}, {1}).output<float>({1});
  EXPECT_EQ(call.run().output<float>(0), std::vector<float>{6});
  EXPECT_EQ(graded("IsGraphAlive").output<float>({}).run().output<float>(0), std::vector<float>{0});
}

TEST(GradientTest, HasStateAndWorkspacesOfItsOwn) {
  Call scale = graded("ScaleGrad");
  scale.attribute("factor", 5.0).input<float>({1}, {1}).input<float>({1}, {1}).output<float>({1});
  EXPECT_EQ(scale.run().output<float>(0), std::vector<float>{5});
  Call workspace = graded("WithWorkspaceGrad");
  workspace.input<float>({1}, {1}).input<float>({1}, {1}).output<float>({1});
  EXPECT_EQ(workspace.run().output<float>(0), std::vector<float>{3});
}

TEST(GradientTest, InputsAreNotWritten) {
  Call call = graded("WritesItsInputGrad");
  call.input<float>({1}, {1}).input<float>({1}, {1}).output<float>({1});
  EXPECT_EQ(call.run().error(),
            "WritesItsInputGrad: a leaf Variable that requires grad is being used in an in-place "
            "operation. (input 0: float32 [1]; input 1: float32 [1]; output 0: float32 [1])");
  Call data = graded("WritesDataGrad");
  data.input<float>({1}, {1}).input<int64_t>({1}, {1}).input<float>({1}, {1});
  const std::string written =
      ": expected an input that the function does not write, which is called twice, for the result "
      "and for the gradient, got one that it wrote; write to a clone() in the gradient's function";
  EXPECT_EQ(data.output<float>({1}).output<int64_t>({1}).run().error(),
            "WritesDataGrad: input 0" + written + "\nWritesDataGrad: input 1" + written);
}

TEST(GradientTest, OfWhatAutogradHasNotRecordedIsAnError) {
  Call loop = graded("LoopGrad");
  loop.input<float>({1}, {1}).input<float>({1}, {1}).output<float>({1});
  EXPECT_EQ(loop.run().error(),
            "LoopGrad: expected results of operators that autograd differentiates, got results "
            "that it has no graph of, as from a loop over data or after detach(); write the "
            "gradient by hand and export it with ATEN_BRIDGE_EXPORT");
  Call index = graded("IndexGrad");
  index.input<float>({2}, {1, 2}).input<int64_t>({}, {0}).output<float>({2});
  EXPECT_EQ(index.run().output<float>(0), (std::vector<float>{0, 0})) << "of an integer result";
}

TEST(GradientTest, ErrorsNameWhatIsWrong) {
  Call call = graded("ThrowsGrad");
  call.input<float>({1}, {1}).input<float>({1}, {1}).output<float>({1});
  EXPECT_EQ(
      call.run().error(),
      "ThrowsGrad: rank 1 is not seven (input 0: float32 [1]; input 1: float32 [1]; output 0: "
      "float32 [1])");

  Call shapes = graded("CubeGrad");
  shapes.input<float>({2}, {1, 2}).input<float>({1}, {1}).output<float>({2});
  EXPECT_EQ(
      shapes.run().error(),
      "CubeGrad: input 1: expected float32 [2] as output 0, whose gradient it is, got float32 "
      "[1]");
  shapes.clear_operands().input<float>({2}, {1, 2}).input<double>({2}, {1, 2}).output<float>({2});
  EXPECT_EQ(
      shapes.run().error(),
      "CubeGrad: input 1: expected float32 [2] as output 0, whose gradient it is, got float64 "
      "[2]");
  shapes.clear_operands().input<float>({2}, {1, 2}).input<float>({2}, {1, 2}).output<float>({1});
  EXPECT_EQ(
      shapes.run().error(),
      "CubeGrad: output 0: expected float32 [2] as input 0, whose gradient it is, got float32 "
      "[1]");
  shapes.clear_operands().input<float>({2}, {1, 2}).output<float>({2});
  EXPECT_EQ(shapes.run().error(),
            "CubeGrad: expected 2 inputs and 1 output, got 2 slots; compare the arguments of the "
            "call, out_shape and out_dtype with the kernel");
  Call checked = graded("EverythingGrad");
  checked.input<int32_t>({1}, {1}).input_bytes("bool", {1}, {1}).input_none().input_number(3.0);
  checked.input<float>({1}, {1}).input<float>({1}, {1});
  checked.output<int32_t>({1}).output_bytes("bool", {1}, 1).output<float>({0});
  EXPECT_EQ(checked.run().error(),
            "EverythingGrad: input 0 'x': expected float16|bfloat16|float32|float64, got \"int32\" "
            "with shape [1]");
}

//===--- shapes ---===//

TEST(GradientTest, HasTheShapesOfTheInputs) {
  Call call = graded("HuberLossGrad");
  call.input<double>({2}, {1, 2}).input<double>({2}, {1, 2}).input<double>({}, {1});
  call.multi_output(true);
  EXPECT_EQ(call.infer().sizes(), (std::vector<Ints>{{2}, {2}}));
  call.known_sizes(0, {-1}).known_sizes(1, {-2});
  EXPECT_EQ(call.infer().sizes()[0].size(), 1U);

  Call list = graded("CatGrad");
  list.attribute("aten_bridge_inputs", std::string("float32;float64;float32")).multi_output(true);
  list.input<float>({1}, {1}).input<double>({2}, {1, 2}).input<float>({3}, {1, 2, 3});
  EXPECT_EQ(list.infer().sizes(), (std::vector<Ints>{{1}, {2}}));
}

//===--- autograd in other kernels ---===//

TEST(AutogradOptionTest, RecordsAGraph) {
  Call call = graded("SumOfSquares");
  const Result result = call.input<float>({2}, {3, 4}).output<float>({}).output<float>({2}).run();
  ASSERT_EQ(result.error(), "");
  EXPECT_EQ(call.multi_output(true).infer().sizes(), (std::vector<Ints>{{}, {2}}));
  EXPECT_EQ(result.output<float>(0), std::vector<float>{25});
  EXPECT_EQ(result.output<float>(1), (std::vector<float>{6, 8}));
}

TEST(AutogradOptionTest, WithoutItThereIsNone) {
  Call call = graded("Records");
  EXPECT_EQ(call.input<float>({1}, {3}).output<float>({}).run().output<float>(0),
            std::vector<float>{0});
}

}  // namespace
