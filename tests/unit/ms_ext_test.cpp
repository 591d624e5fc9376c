// ms_ext.h: source written for MindSpore's tutorial.
#include <gtest/gtest.h>

#include <complex>
#include <vector>

#include "libraries.h"

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Result;

using Floats = std::vector<float>;

TEST(MsExtTest, TutorialsExample) {
  const Result result = tutorial("LeakyRelu")
                            .input<float>({2, 2}, {0.0F, -0.1F, -0.2F, 1.0F})
                            .output<float>({2, 2})
                            .run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{0.0F, -0.001F, -0.002F, 1.0F}));
}

TEST(MsExtTest, SlotsByIndexAndAResultThatIsNotContiguous) {
  const Result result =
      tutorial("Transpose").input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).output<float>({3, 2}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{1, 4, 2, 5, 3, 6}));
}

TEST(MsExtTest, AutogradOnAClone) {
  const Result result = tutorial("SquareGrad").input<float>({2}, {1, 4}).output<float>({2}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{2, 8}));
}

TEST(MsExtTest, InputsMayBeWritten) {
  Call call = tutorial("NegateInPlace");
  const Result result = call.input<std::int8_t>({1}, {1}).output<std::int8_t>({1}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(call.input_now(0), std::vector<unsigned char>{0xff});
}

TEST(MsExtTest, TensorKeptAcrossCallsNeitherMovesNorChanges) {
  Call first = tutorial("AddFirst");
  EXPECT_EQ(first.input<float>({1}, {1}).output<float>({1}).run_here().output<float>(0), Floats{2});
  Call second = tutorial("AddFirst");
  EXPECT_EQ(second.input<float>({1}, {10}).output<float>({1}).run_here().output<float>(0),
            Floats{11});
}

TEST(MsExtTest, LazyConjugateIsResolved) {
  const Result result = tutorial("Conjugate")
                            .input<std::complex<float>>({1}, {{1, 2}})
                            .output<std::complex<float>>({1})
                            .run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<std::complex<float>>(0), (std::vector<std::complex<float>>{{1, -2}}));
}

TEST(MsExtTest, WrongOperandsAreReportedTogether) {
  const Result result =
      tutorial("LeakyRelu").input_bytes("string", {}, {0}).output_bytes("typetype", {}, 0).run();
  EXPECT_EQ(result.error(),
            "get_torch_tensors: slot 0: expected a tensor, got \"string\", a str\n"
            "get_torch_tensors: slot 1: expected a tensor, got \"typetype\", a dtype");
  EXPECT_EQ(result.last_error(), result.error());
}

TEST(MsExtTest, OutputOfTheWrongSizeIsRefusedByAten) {
  const Result result = tutorial("LeakyRelu").input<float>({2}, {1, 2}).output<float>({1}).run();
  EXPECT_EQ(result.error().find("Trying to resize storage that is not resizable"), 0)
      << result.error();
}

TEST(MsExtTest, WhatOutputMemcpyCannotCopyIsAnError) {
  const auto error_of = [](const char* name) {
    return tutorial(name).input<float>({2}, {1, 2}).output<float>({2}).run().error();
  };
  EXPECT_EQ(error_of("CopySparse"), "output_memcpy: expected a dense tensor, got layout Sparse");
  EXPECT_EQ(error_of("CopyUndefined"),
            "output_memcpy: expected a dense tensor, got an undefined one");
  EXPECT_EQ(error_of("CopyToNull"), "output_memcpy: expected a pointer to 2 elements, got null");
}

TEST(MsExtTest, DeviceOfAnotherBuildIsAnError) {
  EXPECT_EQ(tutorial("AskForCuda").output<float>({1}).run().error(),
            "get_torch_tensors: expected device cpu, got cuda; this library was built for the CPU");
}

}  // namespace
