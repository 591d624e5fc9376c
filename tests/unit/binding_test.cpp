// ParameterInfo: every kind of kernel that ATEN_BRIDGE_EXPORT takes, and the calls that do not fit.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "libraries.h"

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Result;

using Floats = std::vector<float>;

TEST(BindingTest, FunctionWithTwoInputsAndTwoOutputs) {
  const Result result = kernel("AddSubtract")
                            .input<float>({2}, {5, 7})
                            .input<float>({2}, {1, 2})
                            .output<float>({2})
                            .output<float>({2})
                            .run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{6, 9}));
  EXPECT_EQ(result.output<float>(1), (Floats{4, 5}));
}

TEST(BindingTest, Lambda) {
  const Result result = kernel("Negate").input<float>({2}, {1, -2}).output<float>({2}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{-1, 2}));
}

TEST(BindingTest, FunctionObject) {
  const Result result = kernel("Halve").input<float>({2}, {1, -2}).output<float>({2}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{0.5F, -1}));
}

TEST(BindingTest, ExportedNameMayBeThatOfTheFunction) {
  const Result result = kernel("Same").input<float>({1}, {3}).output<float>({1}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), Floats{3});
}

TEST(BindingTest, OutputParameterMayStandFirstAndBeReturned) {
  const Result result = kernel("ExpOut").input<float>({2}, {0, 1}).output<float>({2}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{1, std::exp(1.0F)}));
}

TEST(BindingTest, OutputParametersMayBeReturnedInATuple) {
  const Result result =
      kernel("ReturnOutputs").input<float>({1}, {3}).output<float>({1}).output<float>({1}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(1), Floats{3});
}

TEST(BindingTest, KernelsMayStandInNamespaces) {
  for (const char* name : {"InUnnamedNamespace", "InNestedNamespace"}) {
    const Result result = kernel(name).input<float>({1}, {3}).output<float>({1}).run();
    EXPECT_EQ(result.error(), "") << name;
    EXPECT_EQ(result.output<float>(0), Floats{3}) << name;
  }
}

TEST(BindingTest, TwoSourcesOfOneLibraryExportKernels) {
  const Result result = kernel("FromAnotherSource").input<float>({1}, {3}).output<float>({1}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), Floats{3});
}

TEST(BindingTest, KernelMayCallAnotherOfItsLibrary) {
  const Result result = kernel("CallCopy").input<float>({}, {3}).output<float>({}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), Floats{3});
}

TEST(BindingTest, ManyThreadsCallAtOnce) {
  std::vector<std::string> errors(4);
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (std::string& error : errors) {
    threads.emplace_back([&error] {
      for (int i = 0; i < 200; ++i) {
        const auto value = static_cast<float>(i);
        Call call = kernel("Copy");
        const Result result = call.input<float>({1}, {value}).output<float>({1}).run_here();
        error += result.error();
        error += result.output<float>(0) == Floats{value} ? "" : "wrong value";
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(errors, std::vector<std::string>(4));
}

TEST(BindingTest, NoInputs) {
  const Result result = kernel("FortyTwo").output<std::int32_t>({2}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<std::int32_t>(0), (std::vector<std::int32_t>{42, 42}));
}

TEST(BindingTest, ResultIsCopiedToTheOutput) {
  const Result result =
      kernel("LeakyReluResult").input<float>({2}, {100, -100}).output<float>({2}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{100, -1}));
}

TEST(BindingTest, TupleOfResultsIsCopiedToTheOutputs) {
  for (const char* name : {"MinMax", "MinMaxPair"}) {
    const Result result =
        kernel(name).input<float>({3}, {2, 1, 3}).output<float>({}).output<float>({}).run();
    EXPECT_EQ(result.error(), "");
    EXPECT_EQ(result.output<float>(0), Floats{1});
    EXPECT_EQ(result.output<float>(1), Floats{3});
  }
}

TEST(BindingTest, OptionalInputGivenAndNotGiven) {
  Call with = kernel("AddIfGiven");
  with.input<float>({1}, {1}).input<float>({1}, {10}).output<float>({1});
  EXPECT_EQ(with.run().output<float>(0), Floats{11});
  Call without = kernel("AddIfGiven");
  without.input<float>({1}, {1}).input_none().output<float>({1});
  EXPECT_EQ(without.run().output<float>(0), Floats{1});
  Call first = kernel("AddIfFirstGiven");
  first.input_none().input<float>({1}, {1}).output<float>({1});
  EXPECT_EQ(first.run().output<float>(0), Floats{1});
}

TEST(BindingTest, NoneForATensorIsAnError) {
  EXPECT_EQ(kernel("Copy").input_none().output<float>({1}).run().error(),
            "Copy: input 0: expected a tensor, got None");
}

TEST(BindingTest, TwentySlotsTyped) {
  Call call = kernel("Sum19");
  for (int i = 1; i <= 19; ++i) {
    call.input<float>({1}, {static_cast<float>(i)});
  }
  const Result result = call.output<float>({1}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), Floats{190});
}

TEST(BindingTest, SixtySlotsRaw) {
  Call call = kernel("SumSlots");
  for (int i = 1; i <= 59; ++i) {
    call.input<float>({1}, {static_cast<float>(i)});
  }
  const Result result = call.output<float>({1}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), Floats{1770});
}

TEST(BindingTest, RawSlotsByIndex) {
  const Result result = kernel("FirstSlot").input<float>({1}, {7}).output<float>({1}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), Floats{7});
}

TEST(BindingTest, RawSlotsOutOfRangeAreErrors) {
  EXPECT_EQ(kernel("BadSlot").input<float>({1}, {7}).output<float>({1}).run().error(),
            "BadSlot: slot 2: expected one of the call's 2 slots\n"
            "BadSlot: slot -1: expected one of the call's 2 slots");
}

TEST(BindingTest, RawSlotsThatAreWrongAreErrors) {
  EXPECT_EQ(kernel("SumSlots")
                .input_bytes("string", {}, {'a', 0})
                .output_bytes("typetype", {}, 0)
                .run()
                .error(),
            "SumSlots: slot 0: expected a tensor, got \"string\", a str\n"
            "SumSlots: slot 1: expected a tensor, got \"typetype\", a dtype");
}

TEST(BindingTest, TooFewSlots) {
  Call call = kernel("AddSubtract");
  EXPECT_EQ(call.input<float>({1}, {1}).output<float>({1}).output<float>({1}).run().error(),
            "AddSubtract: expected 2 inputs and 2 outputs, got 3 slots; compare the arguments of "
            "the call, out_shape and out_dtype with the kernel");
}

TEST(BindingTest, TooManySlotsAndNothingIsTouched) {
  const Result result =
      kernel("Copy").input<float>({1}, {1}).input<float>({1}, {2}).output<float>({1}).run();
  EXPECT_EQ(result.error(),
            "Copy: expected 1 input and 1 output, got 3 slots; compare the arguments of the call, "
            "out_shape and out_dtype with the kernel");
  EXPECT_EQ(result.bytes(0), std::vector<unsigned char>(4, 0xff));
}

}  // namespace
