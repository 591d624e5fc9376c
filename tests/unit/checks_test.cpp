// Checks: what a kernel says that it accepts as an operand.
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "typed.h"

namespace {

using Ints = std::vector<int64_t>;

TEST(CheckTest, DtypeIsOneOfThose) {
  Call call = typed("CheckedDtypes");
  call.input<std::complex<double>>({1}, {1}).input<std::int32_t>({}, {1}).output<float>({1});
  EXPECT_EQ(call.run().error(), "");
  call.clear_operands().input_bytes("bfloat16", {1}, {0, 0}).input_number(1).output<float>({1});
  EXPECT_EQ(call.run().error(), "");
}

TEST(CheckTest, AllFaultsAreReported) {
  Call call = typed("CheckedDtypes");
  call.input<std::int32_t>({1}, {1}).input_number(2.5).output<double>({2});
  EXPECT_EQ(call.run().error(),
            "CheckedDtypes: input 0 'x': expected float16|bfloat16|float32|float64|complex64|"
            "complex128, got \"int32\" with shape [1]\n"
            "CheckedDtypes: input 1 'index': expected an integer that an int64 can hold, got the "
            "float32 2.5\n"
            "CheckedDtypes: input 1 'index': expected int32|int64, got \"float32\" with shape []\n"
            "CheckedDtypes: output 0 'y': expected float32, got \"float64\" with shape [2]");
}

TEST(CheckTest, NamesStandInOtherTextsToo) {
  Call call = typed("CheckedRanks");
  call.input_none().input_bytes("string", {}, {0}).output<float>({1});
  EXPECT_EQ(call.run().error(),
            "CheckedRanks: input 0 'a': expected a tensor, got None\n"
            "CheckedRanks: input 1 'b': expected a tensor, got \"string\", a str");
}

TEST(CheckTest, RankIsOneOrFromOneToAnother) {
  const auto error = [](const Ints& a, const Ints& b) {
    Call call = typed("CheckedRanks");
    input_of_ones(input_of_ones(call, a), b).output<float>({1});
    return call.run().error();
  };
  EXPECT_EQ(error({1, 2}, {1}), "");
  EXPECT_EQ(error({1, 2}, {1, 2, 3}), "");
  EXPECT_EQ(error({2}, {}),
            "CheckedRanks: input 0 'a': expected rank 2, got float32 [2]\n"
            "CheckedRanks: input 1 'b': expected a rank from 1 to 3, got float32 []");
  EXPECT_EQ(error({1, 1, 1}, {1, 1, 1, 1}),
            "CheckedRanks: input 0 'a': expected rank 2, got float32 [1, 1, 1]\n"
            "CheckedRanks: input 1 'b': expected a rank from 1 to 3, got float32 [1, 1, 1, 1]");
}

// x: [N, 3, ..., C]; weight, or None: [C, C]; any number of [N]; y: [N, ...].
std::string sizes_error(const Ints& x, const Ints& weight, const std::vector<Ints>& list,
                        const Ints& y) {
  Call call = typed("CheckedSizes");
  input_of_ones(call, x);
  if (weight.empty()) {
    call.input_none();
  } else {
    input_of_ones(call, weight);
  }
  for (const Ints& sizes : list) {
    input_of_ones(call, sizes);
  }
  return call.output<float>(y).run().error();
}

TEST(CheckTest, SizesAreNumbersNamesAndTheRest) {
  EXPECT_EQ(sizes_error({2, 3, 4}, {4, 4}, {{2}, {2}}, {2}), "");
  EXPECT_EQ(sizes_error({2, 3, 7, 8, 4}, {4, 4}, {}, {2, 9, 9}), "");
  EXPECT_EQ(sizes_error({0, 3, 0}, {}, {{0}}, {0}), "") << "0 is a size as any other";
  EXPECT_EQ(sizes_error({2, 3}, {}, {}, {2}),
            "CheckedSizes: input 0 'x': expected sizes [N, 3, ..., C], got float32 [2, 3]");
  EXPECT_EQ(sizes_error({2, 4, 4}, {}, {}, {2}),
            "CheckedSizes: input 0 'x': expected sizes [N, 3, ..., C], got float32 [2, 4, 4]");
}

TEST(CheckTest, TheRestIsOneOnly) {
  Call call = typed("CheckedTwice");
  input_of_ones(call, {2, 3}).output<float>({1});
  EXPECT_EQ(call.run().error(),
            "CheckedTwice: input 0 'x': expected \"...\" once in the sizes of its check, got "
            "[..., C, ...]; correct the kernel's export");
}

TEST(CheckTest, NameStandsForOneSizeInAllOperands) {
  EXPECT_EQ(sizes_error({2, 3, 4}, {4, 5}, {{2}, {1}}, {7, 1}),
            "CheckedSizes: input 1 'weight': expected sizes [C, C] with C = 4 as in input 0 'x', "
            "got float32 [4, 5]\n"
            "CheckedSizes: input 3 'list': expected sizes [N] with N = 2 as in input 0 'x', got "
            "float32 [1]\n"
            "CheckedSizes: output 0 'y': expected sizes [N, ...] with N = 2 as in input 0 'x', got "
            "float32 [7, 1]");
  EXPECT_EQ(sizes_error({2, 3, 4}, {5, 6}, {}, {2}),
            "CheckedSizes: input 1 'weight': expected sizes [C, C] with C = 4 as in input 0 'x' "
            "and C = 4 as in input 0 'x', got float32 [5, 6]");
}

TEST(CheckTest, NameThatNoneWouldHaveSetIsSetByTheNextOperand) {
  EXPECT_EQ(sizes_error({2, 4, 4}, {5, 5}, {{3}}, {2}),
            "CheckedSizes: input 0 'x': expected sizes [N, 3, ..., C], got float32 [2, 4, 4]\n"
            "CheckedSizes: input 1 'weight': expected sizes [C, C] with C = 4 as in input 0 'x' "
            "and C = 4 as in input 0 'x', got float32 [5, 5]\n"
            "CheckedSizes: input 2 'list': expected sizes [N] with N = 2 as in input 0 'x', got "
            "float32 [3]");
  EXPECT_EQ(sizes_error({2}, {5, 6}, {{3}, {4}}, {}),
            "CheckedSizes: input 0 'x': expected sizes [N, 3, ..., C], got float32 [2]\n"
            "CheckedSizes: input 1 'weight': expected sizes [C, C] with C = 5 as in input 1 "
            "'weight', got float32 [5, 6]\n"
            "CheckedSizes: input 3 'list': expected sizes [N] with N = 3 as in input 2 'list', got "
            "float32 [4]\n"
            "CheckedSizes: output 0 'y': expected sizes [N, ...], got float32 []");
}

TEST(CheckTest, WithoutSizesOnlyARankOfZeroPasses) {
  Call call = typed("CheckedScalar");
  EXPECT_EQ(call.input<float>({}, {1}).output<float>({}).run().error(), "");
  EXPECT_EQ(call.clear_operands().input<float>({1}, {1}).output<float>({}).run().error(),
            "CheckedScalar: input 0 'x': expected sizes [], got float32 [1]");
}

}  // namespace
