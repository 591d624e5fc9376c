// What a kernel says of itself: the host's infer hooks, and what Python asks.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "table.h"
#include "typed.h"

namespace {

using aten_bridge::testing::Inferred;

using Ints = std::vector<int64_t>;

// "float32 [2, -1]; int64 [2]", or the error.
std::string text(const Inferred& inferred) {
  std::string text;
  for (std::size_t i = 0; i < inferred.sizes().size() && inferred.ok(); ++i) {
    text += (i == 0 ? "" : "; ") + inferred.dtypes().at(i) + " [";
    for (const int64_t size : inferred.sizes()[i]) {
      text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
    }
    text += ']';
  }
  return text + inferred.error();
}

// The same for a kernel of one input, of which so much is known.
std::string infer(const char* kernel, const Ints& known) {
  Call call = typed(kernel);
  return text(call.input<float>({0}, {}).known_sizes(0, known).infer());
}

TEST(InferTest, OutputHasShapeAndDtype) {
  EXPECT_EQ(infer("LeakyRelu", {2, 3}), "float32 [2, 3]");
  EXPECT_EQ(infer("LeakyRelu", {}), "float32 []");
  EXPECT_EQ(infer("LeakyRelu", {0, 3}), "float32 [0, 3]");
}

TEST(InferTest, DtypeIsThatOfTheInput) {
  for (const char* dtype : {"float16", "float64", "int8"}) {
    Call call = typed("LeakyRelu");
    call.input_bytes(dtype, {0}, {});
    EXPECT_EQ(text(call.infer()), std::string(dtype) + " [0]");
  }
}

TEST(InferTest, SeveralOutputs) {
  Call call = typed("TransposeAndSum");
  call.multi_output(true).input<float>({2, 1}, {1, 2});
  EXPECT_EQ(text(call.infer()), "float32 [1, 2]; float32 []");
  EXPECT_EQ(text(call.known_sizes(0, {-1, 3}).infer()), "float32 [3, -1]; float32 []");
  EXPECT_EQ(text(call.known_sizes(0, {-2}).infer()), "float32 [-2]; float32 [-2]");
}

TEST(InferTest, AttributesAreRead) {
  Call call = typed("TopK");
  call.multi_output(true).attribute("k", 2).input<float>({4, 1}, {1, 2, 3, 4});
  EXPECT_EQ(text(call.attribute("dim", 0).infer()), "float32 [2, 1]; int64 [2, 1]");
  EXPECT_EQ(
      text(call.attribute("dim", 7).infer()),
      "TopK: Dimension out of range (expected to be in range of [-2, 1], but got 7) (inferring "
      "from input 0: any dtype [4, 1])");
  EXPECT_EQ(text(call.attribute("k", 1.5).infer()),
            "TopK: attribute 'k': expected an int, got the float 1.5");
}

TEST(InferTest, WhatIsNotKnownYetIsNotKnownInTheResult) {
  EXPECT_EQ(infer("LeakyRelu", {-1, 3}), "float32 [-1, 3]");
  EXPECT_EQ(infer("LeakyRelu", {-1, -1}), "float32 [-1, -1]");
  EXPECT_EQ(infer("LeakyRelu", {-2}), "float32 [-2]");
  Call call = typed("TopK");
  call.multi_output(true).attribute("k", 3).input<float>({0}, {});
  EXPECT_EQ(text(call.known_sizes(0, {-1, 5}).infer()), "float32 [-1, 3]; int64 [-1, 3]");
  EXPECT_EQ(text(call.known_sizes(0, {5, -1}).infer()), "float32 [5, 3]; int64 [5, 3]");
  EXPECT_EQ(text(call.known_sizes(0, {-2}).infer()), "float32 [-2]; int64 [-2]");
}

TEST(InferTest, UnknownSizeThatMustBeThatOfAnotherInputIsFound) {
  Call call = typed("Where");
  call.input_bytes("bool", {7}, std::vector<unsigned char>(7));
  input_of_ones(input_of_ones(call, {7}), {0}).known_sizes(2, {-1});
  EXPECT_EQ(text(call.infer()), "float32 [7]") << "it is 1 or 7";
}

TEST(InferTest, WhatOneSizeAloneGivesIsNotKnown) {
  Call call = typed("SameRows");
  input_of_ones(input_of_ones(call, {7}), {0}).known_sizes(1, {-1});
  EXPECT_EQ(text(call.infer()), "float32 [-1, -1]") << "7 was the only size that it took";
}

// The hook for shapes does not know dtypes.
TEST(InferTest, OperatorsThatTakeOtherDtypesThanFloatAreInferred) {
  Call embed = typed("Embed");
  embed.input<float>({3, 2}, {0, 1, 2, 3, 4, 5}).input<int64_t>({4}, {0, 1, 2, 0});
  EXPECT_EQ(text(embed.infer()), "float32 [4, 2]");
  EXPECT_EQ(text(embed.known_sizes(1, {-1}).infer()), "float32 [-1, 2]");
  EXPECT_EQ(text(embed.known_sizes(0, {-2}).infer()), "float32 [-2]");

  Call where = typed("Where");
  where.input_bytes("bool", {2}, {0, 1}).input<double>({2}, {1, 2}).input<double>({}, {3});
  EXPECT_EQ(text(where.infer()), "float64 [2]");

  Call conjugate = typed("ConjugatePairs");
  conjugate.input<int64_t>({2}, {1, 2});
  EXPECT_EQ(conjugate.infer_shape_only().sizes(), (std::vector<Ints>{{2}}));
  EXPECT_EQ(conjugate.infer_type_only().error(),
            "ConjugatePairs: expected complex numbers (inferring from input 0: int64 [2])");
}

TEST(InferTest, OperatorWithoutAMetaFunctionOfPytorchsIsAnError) {
  Call call = typed("WhereByItself");
  call.input_bytes("bool", {2}, {0, 1}).input<float>({2}, {1, 2}).input<float>({2}, {1, 2});
  EXPECT_EQ(text(call.infer()),
            "WhereByItself: expected operators that tell the shapes of their results without data, "
            "got aten::where.self (inferring from input 0: any dtype [2]; input 1: any dtype [2]; "
            "input 2: any dtype [2]); import torch, whose Python part knows more of them, or give "
            "the kernel a meta function: aten_bridge::meta(function)");
}

TEST(InferTest, TypeHookAloneNeedsNoShapes) {
  Call call = typed("TransposeAndSum");  // forgets what the hooks of TopK have seen
  call.multi_output(true).input<float>({1, 1}, {1});
  EXPECT_EQ(call.infer_type_only().dtypes(), (std::vector<std::string>{"float32", "float32"}));
  Call topk = typed("TopK");
  topk.multi_output(true).attribute("k", 2).input<double>({3, 2}, std::vector<double>(6));
  EXPECT_EQ(topk.infer_type_only().dtypes(), (std::vector<std::string>{"float64", "int64"}));
  EXPECT_EQ(text(topk.infer()), "float64 [3, 2]; int64 [3, 2]");
  EXPECT_EQ(topk.infer_type_only().dtypes(), (std::vector<std::string>{"float64", "int64"}));
}

TEST(InferTest, DtypesThatDifferBetweenHostsAreErrorsOfTheTypeHook) {
  Call call = typed("LeakyRelu");
  call.type_id("bfloat16", 45).input_bytes("bfloat16", {1}, {0, 0});
  EXPECT_EQ(call.infer_shape_only().sizes(), (std::vector<Ints>{{1}}));
  EXPECT_EQ(call.infer_type_only().error(),
            "LeakyRelu: input 0: expected bool, an integer, float16, float32 or float64, got "
            "MindSpore's type 45, whose number differs between its versions; make the operator "
            "with aten_bridge.mindspore.kernel, or give out_dtype");
  Call convert = typed("Convert");
  convert.attribute("dtype", "bfloat16").input<float>({1}, {1});
  EXPECT_EQ(text(convert.infer()),
            "Convert: output 0: expected bool, an integer, float16, float32 or float64, got "
            "bfloat16, whose number differs between versions of MindSpore; make the operator with "
            "aten_bridge.mindspore.kernel, or give out_dtype");
}

TEST(InferTest, EveryDtypeThatHostsAgreeOnIsToldApart) {
  for (const std::string dtype : {
         "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
#if PYTORCH_MINOR >= 3
             "uint16", "uint32", "uint64"
#endif
       }) {
    Call call = typed("Convert");
    call.attribute("dtype", dtype).input_bytes(dtype, {0}, {});
    EXPECT_EQ(text(call.infer()), dtype + " [0]");
  }
}

TEST(InferTest, OutputOfADtypeWithoutANameIsAnError) {
  Call call = typed("MetaOfAnotherDtype");
  EXPECT_EQ(
      text(call.input<float>({1}, {1}).infer()),
      "MetaOfAnotherDtype: output 0: expected bool|uint8|int8|uint16|int16|uint32|int32|uint64|"
      "int64|float16|bfloat16|float32|float64|complex64|complex128|float8e4m3fn|float8e5m2, "
      "got ComplexHalf [1] from the meta function");
}

TEST(InferTest, MultiOutputIsThatOfTheKernel) {
  Call several = typed("TransposeAndSum");
  several.input<float>({1, 1}, {1});
  EXPECT_EQ(several.infer_shape_only().error(),
            "TransposeAndSum: expected the operator to have 2 outputs, got its attribute "
            "multi_output False; make the operator with aten_bridge.mindspore.kernel, register its "
            "outputs, or set the attribute");
  Call one = typed("LeakyRelu");
  one.multi_output(true).input<float>({1}, {1});
  EXPECT_EQ(one.infer_shape_only().error(),
            "LeakyRelu: expected the operator to have 1 output, got its attribute multi_output "
            "True; make the operator with aten_bridge.mindspore.kernel, register its outputs, or "
            "set the attribute");
}

TEST(InferTest, NumberOfTensorsIsThatOfTheKernel) {
  Call call = typed("LeakyRelu");
  call.input<float>({1}, {1}).input<float>({1}, {1});
  EXPECT_EQ(call.infer_type_only().error(), "LeakyRelu: expected 1 tensor, got 2");
  Call where = typed("Where");
  where.input<float>({1}, {1});
  EXPECT_EQ(where.infer_type_only().error(), "Where: expected 3 tensors, got 1");
}

TEST(InferTest, InputsThatAreNoTensorsMustBeDescribed) {
  for (const std::string name : {"AnyInputs", "Maybe"}) {
    Call call = typed(name);
    const std::string error =
        name +
        ": expected a kernel whose inputs are tensors, got one that takes None, numbers or any "
        "number of tensors, about which MindSpore tells its infer hooks nothing; make the operator "
        "with aten_bridge.mindspore.kernel, or give out_shape and out_dtype";
    call.input<float>({1}, {1});
    EXPECT_EQ(call.infer_shape_only().error(), error);
    EXPECT_EQ(call.infer_type_only().error(), error);
  }
}

// AnyInputs: [rows, last size of x + size of w + number of tensors in the list].
TEST(InferTest, InputsThatAreNoTensorsAreInferredFromTheirDescription) {
  const auto described = [](const std::string& inputs) {
    Call call = typed("AnyInputs");
    return call.attribute("aten_bridge_inputs", inputs);
  };
  Call none = described("float32;none;#int64=7");
  none.input<float>({1, 4}, {1, 2, 3, 4}).input_none().input_number(7);
  EXPECT_EQ(text(none.infer()), "float32 [7, 4]");
  EXPECT_EQ(text(none.known_sizes(0, {1, -1}).infer()), "float32 [7, -1]");
  EXPECT_EQ(text(none.known_sizes(0, {-2}).infer()), "float32 [-2]");

  Call all = described("float64;float32;#int64=-1;float32;int8");
  all.input<double>({2}, {1, 2}).input<float>({3}, {1, 2, 3}).input_number(-1);
  all.input<float>({1}, {1}).input<std::int8_t>({}, {1});
  EXPECT_EQ(
      text(all.known_sizes(0, {2}).infer()),
      "AnyInputs: Trying to create tensor with negative dimension -1: [-1, 7] (inferring from "
      "input 0: float64 [2]; input 1: float32 [3]; input 2: int64 number; input 3: float32 "
      "[1]; input 4: int8 [])");
  all.attribute("aten_bridge_inputs", "float64;float32;#int64=2;float32;int8");
  EXPECT_EQ(text(all.infer()), "float64 [2, 7]");
}

TEST(InferTest, NumbersAreReadFromTheDescription) {
  const auto inferred = [](const std::string& factor, const std::string& flag) {
    Call call = typed("Maybe");
    call.attribute("aten_bridge_inputs", "float32;" + factor + ';' + flag);
    return text(call.input<float>({1}, {1}).infer());
  };
  EXPECT_EQ(inferred("#float32=1069547520", "#bool=1"), "float32 [3, 2]") << "1.5";
  EXPECT_EQ(inferred("#int64=2", "#bool=0"), "float32 [4, 1]");
  EXPECT_EQ(inferred("none", "none"), "float32 [0, 0]");
  EXPECT_EQ(inferred("#float32", "none"),
            "Maybe: expected the numbers on which the shape of the output depends to be known "
            "before the call, got a tensor (inferring from input 0: float32 [1]; input 1: float32 "
            "[]; input 2: None); pass a Python number, make it an attribute, or give out_shape and "
            "out_dtype");
}

TEST(InferTest, TensorForANumberIsTriedWithSeveralValues) {
  const auto inferred = [](const char* name, const std::string& dtypes, const Ints& sizes) {
    Call call = typed(name);
    call.attribute("aten_bridge_inputs", dtypes).input<float>({2, 3}, {1, 2, 3, 4, 5, 6});
    call.input<float>({1}, {1}).known_sizes(1, sizes);
    return text(call.infer());
  };
  EXPECT_EQ(inferred("Scaled", "float32;float64;#bool=1", {}), "float32 [2, 3]");
  EXPECT_EQ(inferred("Scaled", "float32;int8;#bool", {1, 1}), "float32 [2, 3]");
  EXPECT_EQ(inferred("Scaled", "float32;int8;#bool", {-1}), "float32 [2, 3]");
  EXPECT_EQ(inferred("AnyNumber", "float32;complex128", {}), "float32 [2, 3]");
  EXPECT_EQ(inferred("FirstRows", "float32;int64", {}),
            "FirstRows: expected the numbers on which the shape of the output depends to be known "
            "before the call, got a tensor (inferring from input 0: float32 [2, 3]; input 1: int64 "
            "[]); pass a Python number, make it an attribute, or give out_shape and out_dtype");
  EXPECT_EQ(inferred("Scaled", "float32;float32;#bool=1", {2}),
            "Scaled: input 1: expected a real number as one element, got float32 [2]");
}

TEST(InferTest, SizesThatAreNotKnownAreTriedApart) {
  Call windows = typed("Windows");
  windows.input<float>({0}, {}).input<float>({0}, {}).known_sizes(0, {-1}).known_sizes(1, {-1});
  EXPECT_EQ(text(windows.infer()), "float32 [-1, -1]") << "of equal sizes it is 1";
}

TEST(InferTest, KernelItselfGivesItsOutputsAShape) {
  for (const std::string name : {"Fill", "CopyTwice"}) {
    const std::string error =
        ": output 0: expected an _out function that gives the output its shape, got a kernel that "
        "writes to "
        "the shape it has; give the kernel a meta function: aten_bridge::meta(function)";
    EXPECT_EQ(infer(name.c_str(), {1}), name + error);
    EXPECT_EQ(infer(name.c_str(), {}), name + error);
  }
  EXPECT_EQ(infer("CopyTwice", {2, 3}),
            "CopyTwice: expected an _out function that gives the output its shape, got a kernel "
            "that writes to the shape it has; give the kernel a meta function: "
            "aten_bridge::meta(function) (inferring from input 0: any dtype [2, 3])");
}

TEST(InferTest, OutputsAreChecked) {
  EXPECT_EQ(infer("CheckedResult", {2, 3}),
            "CheckedResult: output 0 'y': expected int32, got \"float32\" with shape [2, 3]\n"
            "CheckedResult: output 0 'y': expected sizes [C, N] with C = 3 as in input 0 'x' and N "
            "= 2 as in input 0 'x', got float32 [2, 3]");
}

TEST(InferTest, DescriptionThatDoesNotFitIsAnError) {
  Call call = typed("LeakyRelu");
  call.attribute("aten_bridge_inputs", "float32;none").input<float>({1}, {1});
  EXPECT_EQ(text(call.infer()),
            "LeakyRelu: expected 1 input and 1 output, got 3 slots; compare the arguments of the "
            "call, out_shape and out_dtype with the kernel");
  call.attribute("aten_bridge_inputs", "none").clear_operands();
  EXPECT_EQ(text(call.infer()), "LeakyRelu: input 0: expected a tensor, got None");
}

// The hook of LeakyRelu, for a host that passes whatever it likes.
std::string hook_error(int* ndims, int64_t** shapes, const char* inputs = "float32") {
  aten_bridge::testing::detail::Extra extra(
      {{"aten_bridge_inputs", aten_bridge::testing::detail::Value(std::string(inputs))}});
  const auto infer_shape =
      typed_function<std::vector<int64_t> (*)(int*, int64_t**, void*)>("LeakyReluInferShape");
  try {
    infer_shape(ndims, shapes, &extra);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(InferTest, WhatTheHookIsGivenIsLookedAt) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  int64_t sizes[] = {0, kLeast};
  int64_t* shapes[] = {sizes};
  int64_t* no_shapes[] = {nullptr};
  int rank = 2;
  int negative = -1;
  int large = 65;
  EXPECT_EQ(hook_error(nullptr, shapes),
            "LeakyRelu: input 0: expected `ndims` and `shapes`, got a null pointer");
  EXPECT_EQ(hook_error(&rank, nullptr),
            "LeakyRelu: input 0: expected `ndims` and `shapes`, got a null pointer");
  EXPECT_EQ(hook_error(&rank, no_shapes), "LeakyRelu: input 0: expected 2 sizes, got a null shape");
  EXPECT_EQ(hook_error(&negative, shapes),
            "LeakyRelu: input 0: expected a rank from 0 to 64, got -1");
  EXPECT_EQ(hook_error(&large, shapes), "LeakyRelu: input 0: expected a rank from 0 to 64, got 65");
  EXPECT_EQ(hook_error(&rank, shapes),
            "LeakyRelu: input 0: expected sizes of 0 or more, or -1 where one is not known, got "
            "[0, -9223372036854775808]");
  sizes[1] = -2;
  EXPECT_EQ(hook_error(&rank, shapes),
            "LeakyRelu: input 0: expected sizes of 0 or more, or -1 where one is not known, got "
            "[0, -2]");
  sizes[1] = -1;
  EXPECT_EQ(hook_error(&rank, shapes), "");
}

TEST(InferTest, MoreInputsThanTheKernelHasAreRefusedBeforeTheirShapesAreRead) {
  EXPECT_EQ(hook_error(nullptr, nullptr, "float32;float32;float32"),
            "LeakyRelu: expected 1 input and 1 output, got 4 slots; compare the arguments of the "
            "call, out_shape and out_dtype with the kernel");
}

TEST(InferTest, ChecksAreMadeOfWhatIsKnown) {
  Call call = typed("CheckedSizes");
  call.input<float>({1}, {1}).input_none().input<float>({0}, {});
  const auto inferred = [&](const Ints& x, const Ints& list) {
    call.attribute("aten_bridge_inputs", "float32;none;float32");
    return text(call.known_sizes(0, x).known_sizes(2, list).infer());
  };
  EXPECT_EQ(inferred({2, 3, 4}, {2}), "float32 [2, 3, 4]");
  EXPECT_EQ(inferred({-1, -1, 4}, {2}), "float32 [-1, -1, 4]");
  EXPECT_EQ(inferred({-2}, {2}), "float32 [-2]");
  EXPECT_EQ(inferred({-1, 4, 4}, {2, 2}),
            "CheckedSizes: input 0 'x': expected sizes [N, 3, ..., C], got float32 [-1, 4, 4]\n"
            "CheckedSizes: input 2 'list': expected sizes [N], got float32 [2, 2]");
  call.attribute("aten_bridge_inputs", "int32;none;float32");
  EXPECT_EQ(call.known_sizes(0, {2, 3, 4}).known_sizes(2, {2}).infer_shape_only().error(),
            "CheckedSizes: input 0 'x': expected float32, got \"int32\" with shape [2, 3, 4]");
}

TEST(InferTest, ChecksOfShapesAreMadeWithoutDtypes) {
  Call call = typed("CheckedMeta");
  call.input<std::int32_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(call.infer_shape_only().sizes(), (std::vector<Ints>{{2, 2}}));
  EXPECT_EQ(call.infer_type_only().error(),
            "CheckedMeta: input 0 'x': expected int16, got \"int32\" with shape [2, 2]");
  EXPECT_EQ(call.known_sizes(0, {2}).infer_shape_only().error(),
            "CheckedMeta: input 0 'x': expected rank 2, got [2]");
}

TEST(InferTest, KernelItselfMayWriteItsOutputs) {
  EXPECT_EQ(infer("LeakyReluOut", {2, 3}), "float32 [2, 3]");
  EXPECT_EQ(infer("LeakyReluOut", {-1, 3}), "float32 [-1, 3]");
  EXPECT_EQ(infer("WriteOut", {5, 6, 7}), "float32 [3, 2]");
  Call call = typed("LeakyReluOut");
  EXPECT_EQ(text(call.input<double>({1}, {1}).infer()), "float64 [1]");
}

TEST(InferTest, KernelWithStateHasAMetaFunctionOfItsAttributes) {
  Call call = typed("StateWithMeta");
  call.attribute("start", 4.0).input<float>({2}, {1, 2});
  EXPECT_EQ(text(call.infer()), "float32 [4]");
}

TEST(InferTest, KernelWithoutAMetaFunctionSaysHowToGetOne) {
  const std::string error =
      "WithoutMeta: expected out_shape and out_dtype where the operator is made, or a kernel with "
      "a meta function, got neither; add aten_bridge::meta(function) or aten_bridge::meta() to the "
      "kernel's export";
  Call call = typed("WithoutMeta");
  call.input<float>({1}, {1});
  EXPECT_EQ(call.infer_shape_only().error(), error);
  EXPECT_EQ(call.infer_type_only().error(), error);
}

TEST(InferTest, MetaFunctionCannotTouchData) {
#if PYTORCH_MINOR >= 6  // up to 2.4 a meta tensor's data is null, and nobody is told
  const std::vector<std::string> names = {"MetaReads", "MetaWrites", "MetaItem"};
#else
  const std::vector<std::string> names = {"MetaItem"};
#endif
  for (const std::string& name : names) {
    Call call = typed(name);
    EXPECT_EQ(text(call.input<float>({1}, {1}).infer()),
              name +
                  ": expected shapes and dtypes to be all that is needed to infer those of the "
                  "outputs, got a kernel or meta function that touches a tensor's data (inferring "
                  "from input 0: any dtype [1]); give the kernel a meta function that does not: "
                  "aten_bridge::meta(function)");
  }
  EXPECT_EQ(infer("MetaNonzero", {2}),
            "MetaNonzero: expected operators that tell the shapes of their results without data, "
            "got aten::nonzero (inferring from input 0: any dtype [2]); import torch, whose Python "
            "part knows more of them, or give the kernel a meta function: "
            "aten_bridge::meta(function)");
}

TEST(InferTest, MetaFunctionReturnsTensors) {
  Call call = typed("MetaUndefined");
  EXPECT_EQ(text(call.input<float>({1}, {1}).infer()),
            "MetaUndefined: output 0: expected bool|uint8|int8|uint16|int16|uint32|int32|uint64|"
            "int64|float16|bfloat16|float32|float64|complex64|complex128|float8e4m3fn|float8e5m2, "
            "got an undefined tensor from the meta function");
}

TEST(InferTest, WhatAMetaFunctionThrowsIsReported) {
  EXPECT_EQ(infer("MetaThrows", {2, 2}),
            "MetaThrows: rank 2 is not seven (inferring from input 0: any dtype [2, 2])");
  EXPECT_EQ(infer("MetaThrows", {-1, 2}),
            "MetaThrows: rank 2 is not seven (inferring from input 0: any dtype [-1, 2])");
  EXPECT_EQ(infer("MetaThrows", {-2}),
            "MetaThrows: rank 4 is not seven (inferring from input 0: any dtype of any rank)");
  Call call = typed("MetaThrows");
  EXPECT_EQ(call.input<float>({1}, {1}).infer_type_only().error(),
            "MetaThrows: rank 4 is not seven (inferring from input 0: float32 of any rank)");
}

TEST(InferTest, ErrorsAreRecordedForLastError) {
  infer("MetaThrows", {2, 2});
  EXPECT_STREQ(typed_function<const char* (*)()>("aten_bridge_last_error")(),
               "MetaThrows: rank 2 is not seven (inferring from input 0: any dtype [2, 2])");
}

//===--- what Python asks ---===//

// As aten_bridge.h and aten_bridge.mindspore declare them.
enum PythonType : int { kBool, kInt, kFloat, kString, kInts, kFloats, kIntLists, kFloatLists };

const LibraryTable& table() {
  return *typed_function<const LibraryTable* (*)()>("aten_bridge_library")();
}

/// All of it but the name, the host and the device, with which it begins.
std::string describe(const char* kernel) {
  const std::string text = table().description(table().number_of(kernel));
  std::string begin = R"({"name": "Op", "hosts": ["MINDSPORE"], "entry_points": ["Op", "OpInit", )"
                      R"("OpInferShape", "OpInferType"], "device": "cpu", )";
  for (std::size_t at = 0; (at = begin.find("\"Op", at)) != std::string::npos;) {
    begin.replace(++at, 2, kernel);
  }
  EXPECT_EQ(text.substr(0, begin.size()), begin);
  return '{' + text.substr(text.find("\"inputs\": "));
}

// The answer, or "failed: " and the error.
std::string ask(const char* kernel, int input_count, const PythonInput* inputs,
                const std::vector<PythonAttribute>& attributes) {
  int status = -1;
  const PythonQuestion question = {"out_shape and out_dtype",
                                   "the arguments of the call, out_shape and out_dtype with the "
                                   "kernel",
                                   /*is_exact=*/false,
                                   inputs,
                                   input_count,
                                   attributes.data(),
                                   static_cast<int>(attributes.size())};
  const char* answer = table().infer(table().number_of(kernel), &question, &status);
  return (status == 0 ? "" : "failed: ") + std::string(answer);
}

std::string ask(const char* kernel, const std::vector<PythonInput>& inputs,
                const std::vector<PythonAttribute>& attributes = {}) {
  return ask(kernel, static_cast<int>(inputs.size()), inputs.data(), attributes);
}

TEST(LibraryTableTest, BeginsWithTheInterfaceAndTheVersion) {
  EXPECT_EQ(table().interface, 8);
  EXPECT_STREQ(table().version, "0.1.0");
  EXPECT_EQ(table().release, nullptr);
  EXPECT_EQ(table().register_with_pytorch, nullptr);
  const std::string text = table().describe();
  const std::string begin =
      R"({"pytorch": "2.)" + std::to_string(PYTORCH_MINOR) + R"(", "cxx11_abi": )";
  EXPECT_EQ(text.substr(0, begin.size()), begin);
  EXPECT_NE(text.find(R"(, "fault": "", "kernels": [{"name": ")"), std::string::npos);
  EXPECT_EQ(text.substr(text.size() - 4), "]}]}");
}

TEST(DescribeTest, InputsOutputsMetaAndAttributes) {
  EXPECT_EQ(
      describe("LeakyRelu"),
      R"({"inputs": [["", 0, false]], "outputs": 1, "meta": true, )"
      R"("gradient": false, "side_effect": false, "attributes": [["negative_slope", 10, "a number", false]]})");
  EXPECT_EQ(describe("Around"),
            R"({"inputs": [["", 0, false], ["", 1, false], ["", 0, true], ["", 2, false]], )"
            R"("outputs": 2, "meta": false, "gradient": false, "side_effect": false, )"
            R"("attributes": [["name", 3, "a str", false]]})");
  EXPECT_EQ(describe("Maybe"),
            R"({"inputs": [["", 0, false], ["", 2, true], ["", 2, true]], )"
            R"("outputs": 1, "meta": true, "gradient": false, "side_effect": false, )"
            R"("attributes": []})");
  EXPECT_EQ(describe("CheckedSizes"),
            R"({"inputs": [["x", 0, false], ["weight", 0, true], ["list", 1, false]], )"
            R"("outputs": 1, "meta": true, "gradient": false, "side_effect": false, )"
            R"("attributes": []})");
  EXPECT_EQ(describe("FirstCall"),
            R"({"inputs": [["", 0, false], ["", 0, true], ["", 2, false]], "outputs": 1, )"
            R"("meta": false, "gradient": false, "side_effect": false, )"
            R"("attributes": [["name", 3, "a str", false], ["count", 1, "an int", true]]})");
  EXPECT_EQ(
      describe("Alive"),
      R"({"inputs": [], "outputs": 1, "meta": false, "gradient": false, "side_effect": false, )"
      R"("attributes": []})");
  EXPECT_EQ(
      describe("OverFrame"),
      R"({"inputs": [], "outputs": 0, "meta": false, "gradient": false, "side_effect": false, )"
      R"("attributes": []})");
}

TEST(DescribeTest, AStateThatChangesHasASideEffect) {
  const auto has_one = [](const char* kernel) {
    return describe(kernel).find(R"("side_effect": true, "changes_state": true, )") !=
           std::string::npos;
  };
  EXPECT_TRUE(has_one("MutableMeeting"));
  EXPECT_FALSE(has_one("ConstMeeting"));
  EXPECT_FALSE(has_one("LeakyRelu"));
}

TEST(DescribeTest, NamesAttributesTypes) {
  EXPECT_EQ(
      describe("Values"),
      R"({"inputs": [], "outputs": 1, "meta": true, "gradient": false, "side_effect": false, )"
      R"("attributes": [)"
      R"(["flag", 0, "a bool", true], ["integer", 1, "an int", true], )"
      R"(["real", 2, "a float, such as 1.0", true], ["string", 3, "a str", true], )"
      R"(["integers", 4, "a list of ints", true], )"
      R"(["reals", 5, "a list of floats, such as [1.0, 2.0]", true], )"
      R"(["integer_lists", 6, "a list of lists of ints", true], )"
      R"(["real_lists", 7, "a list of lists of floats, such as [[1.0], [2.0, 3.0]]", true], )"
      R"(["dtype", 11, "the name of a dtype, such as \"float32\"", true], )"
      R"(["number", 10, "a number", true]]})");
  EXPECT_EQ(
      describe("AttributeViews"),
      R"({"inputs": [], "outputs": 1, "meta": false, "gradient": false, "side_effect": false, )"
      R"("attributes": [)"
      R"(["integers", 4, "a list of ints", false], )"
      R"(["reals", 5, "a list of floats, such as [1.0, 2.0]", false], )"
      R"(["string", 3, "a str", false], ["maybe_integers", 4, "a list of ints", false], )"
      R"(["maybe", 3, "a str", false]]})");
}

TEST(PythonInferTest, FaultsOfAttributesAloneAreAList) {
  constexpr int kAttributesAlone = -1;
  EXPECT_EQ(ask("FirstCall", kAttributesAlone, nullptr, {}),
            R"([["an int", "nothing", "", 6, "attribute", -1, "count"]])");
  const int64_t three = 3;
  EXPECT_EQ(ask("FirstCall", kAttributesAlone, nullptr, {{"count", 1, 1, &three}}), "[]");
}

TEST(PythonInferTest, FaultsOfTheLastFailuresAreToldNewestFirst) {
  const int64_t sizes[] = {2};
  EXPECT_EQ(ask("CheckedRanks", {{"float32", 1, sizes}, {"float32", 1, sizes}}),
            "failed: CheckedRanks: input 0 'a': expected rank 2, got float32 [2]");
  const std::string newest =
      R"json([["CheckedRanks: input 0 'a': expected rank 2, got float32 [2]", )json"
      R"json([["rank 2", "float32 [2]", "", 3, "input", 0, "a"]]])json";
  EXPECT_EQ(std::string(table().failures()).substr(0, newest.size()), newest);
  for (int i = 0; i < 20; ++i) {
    ask("CheckedScalar", {{"float32", 1, sizes}});
  }
  const std::string all = table().failures();
  EXPECT_EQ(all.find("CheckedRanks"), std::string::npos) << all;
  EXPECT_NE(all.find("CheckedScalar"), std::string::npos) << all;
}

TEST(PythonInferTest, OutputsComeWithDtypeAndSizes) {
  const int64_t sizes[] = {2, 3};
  EXPECT_EQ(ask("LeakyRelu", {{"float32", 2, sizes}}), R"([["float32", [2, 3]]])");
  EXPECT_EQ(ask("TransposeAndSum", {{"float32", 2, sizes}}),
            R"([["float32", [3, 2]], ["float32", []]])");
  EXPECT_EQ(ask("LeakyRelu", {{"bfloat16", 0, nullptr}}), R"([["bfloat16", []]])");
}

TEST(PythonInferTest, UnknownSizesAndRanks) {
  const int64_t sizes[] = {-1, 3};
  const int64_t rank[] = {-2};
  EXPECT_EQ(ask("LeakyRelu", {{"float32", 2, sizes}}), R"([["float32", [-1, 3]]])");
  EXPECT_EQ(ask("LeakyRelu", {{"float32", 1, rank}}), R"([["float32", [-2]]])");
}

TEST(PythonInferTest, NoneNumbersAndLists) {
  const int64_t sizes[] = {4};
  EXPECT_EQ(ask("AnyInputs", {{"float32", 1, sizes},
                              {"none", 0, nullptr},
                              {"#int64=7", 0, nullptr},
                              {"float32", 1, sizes},
                              {"float32", 1, sizes}}),
            R"([["float32", [7, 6]]])");
  EXPECT_EQ(ask("Maybe",
                {{"float32", 1, sizes}, {"#float32=1075838976", 0, nullptr}, {"none", 0, nullptr}}),
            R"([["float32", [5, 0]]])");
}

TEST(PythonInferTest, AttributesOfEveryType) {
  const int64_t yes = 1;
  const int64_t integer = -7;
  const double real = 0.01;
  const int64_t integers[] = {1, 2};
  const double reals[] = {0.1, 1.0 / 3};  // float32, as in the host
  const PythonAttribute integer_lists[] = {{nullptr, kInts, 2, integers},
                                           {nullptr, kInts, 0, nullptr}};
  const PythonAttribute real_lists[] = {{nullptr, kFloats, 2, reals}};
  const std::vector<PythonAttribute> attributes = {
      {"flag", kBool, 0, &yes},
      {"integer", kInt, 0, &integer},
      {"real", kFloat, 0, &real},
      {"string", kString, 4, "textual"},
      {"integers", kInts, 2, integers},
      {"reals", kFloats, 2, reals},
      {"integer_lists", kIntLists, 2, integer_lists},
      {"real_lists", kFloatLists, 1, real_lists},
      {"dtype", kString, 5, "int64"},
      {"number", kFloat, 0, &real},
  };
  EXPECT_EQ(ask("Values", {}, attributes),
            "failed: Values: true -7 0.01 \"text\" [1, 2] [0.10000000000000001, "
            "0.33333333999999998] [[1, 2], []] [[0.10000000000000001, 0.33333333999999998]] Long "
            "float 0.01");
  EXPECT_EQ(ask("Values", {}, {{"flag", kInt, 0, &yes}}).substr(0, 65),
            "failed: Values: attribute 'flag': expected a bool, got the int 1\n");
}

TEST(PythonInferTest, ErrorsAreTexts) {
  const int64_t sizes[] = {2};
  EXPECT_EQ(
      ask("WithoutMeta", {{"float32", 1, sizes}}),
      "failed: WithoutMeta: expected out_shape and out_dtype where the operator is made, or a "
      "kernel with a meta function, got neither; add aten_bridge::meta(function) or "
      "aten_bridge::meta() to the kernel's export");
  EXPECT_EQ(
      ask("LeakyRelu", {}),
      "failed: LeakyRelu: expected 1 input and 1 output, got 1 slot; compare the arguments of "
      "the call, out_shape and out_dtype with the kernel");
  EXPECT_EQ(ask("LeakyRelu", {{"none", 0, nullptr}}),
            "failed: LeakyRelu: input 0: expected a tensor, got None");
  EXPECT_EQ(ask("OverFrame", {}),
            "failed: OverFrame: expected out_shape and out_dtype where the operator is made, or a "
            "kernel with a meta function, got neither; add aten_bridge::meta(function) or "
            "aten_bridge::meta() to the kernel's export");
}

}  // namespace
