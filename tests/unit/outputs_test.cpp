// Results that lie in memory of outputs, as where a host writes an output to the memory of an
// input.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "libraries.h"

namespace {

using aten_bridge::testing::Call;

using Floats = std::vector<float>;
using Sizes = std::vector<int64_t>;

/// Calls a kernel over memory of the test's; "" or the error's text.
std::string run(Call call, const std::vector<float*>& operands, Sizes sizes = {2},
                const char* dtype = "float32") {
  const auto count = static_cast<int>(operands.size());
  std::vector<void*> params(operands.begin(), operands.end());
  std::vector<int> ndims(operands.size(), static_cast<int>(sizes.size()));
  std::vector<int64_t*> shapes(operands.size(), sizes.data());
  std::vector<const char*> dtypes(operands.size(), dtype);
  try {
    call.function()(count, params.data(), ndims.data(), shapes.data(), dtypes.data(),
                    /*stream=*/nullptr, /*extra=*/nullptr);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(OutputsTest, AViewOfTheInputIsWrittenToTheMemoryOfTheInput) {
  Floats x = {1, 2, 3, 4};
  EXPECT_EQ(run(kernel("Itself"), {x.data(), x.data()}, {2, 2}), "");
  EXPECT_EQ(x, (Floats{1, 2, 3, 4}));
  EXPECT_EQ(run(kernel("Transposed"), {x.data(), x.data()}, {2, 2}), "");
  EXPECT_EQ(x, (Floats{1, 3, 2, 4}));
  EXPECT_EQ(run(kernel("RepeatLast"), {x.data(), x.data()}, {4}), "");
  EXPECT_EQ(x, (Floats{4, 4, 4, 4}));
  Floats complex = {1, 2, 3, 4};
  EXPECT_EQ(run(kernel("Conjugated"), {complex.data(), complex.data()}, {2}, "complex64"), "");
  EXPECT_EQ(complex, (Floats{1, -2, 3, -4}));
}

TEST(OutputsTest, AViewOfTheInputIsWrittenToMemoryThatOverlapsIt) {
  Floats memory = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(run(kernel("Transposed"), {memory.data(), memory.data() + 2}, {2, 2}), "");
  EXPECT_EQ(memory, (Floats{1, 2, 1, 3, 2, 4}));
  memory = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(run(kernel("Itself"), {memory.data() + 1, memory.data()}, {5}), "");
  EXPECT_EQ(memory, (Floats{2, 3, 4, 5, 6, 6}));
}

TEST(OutputsTest, AResultMayBeReadFromTheMemoryOfAnEarlierOne) {
  Floats x = {1, 2};
  Floats other = {0, 0};
  EXPECT_EQ(run(kernel("NextAndSame"), {x.data(), x.data(), other.data()}), "");
  EXPECT_EQ(x, (Floats{2, 3}));
  EXPECT_EQ(other, (Floats{1, 2}));
  Floats y = {5, 6};
  EXPECT_EQ(run(kernel("Swapped"), {x.data(), y.data(), x.data(), y.data()}), "");
  EXPECT_EQ(x, (Floats{5, 6}));
  EXPECT_EQ(y, (Floats{2, 3}));
  EXPECT_EQ(run(kernel("Swapped"), {x.data(), y.data(), y.data(), x.data()}), "");
  EXPECT_EQ(x, (Floats{5, 6})) << "where they are";
  EXPECT_EQ(y, (Floats{2, 3}));
}

TEST(OutputsTest, AGradientMayLieInTheMemoryOfAnother) {
  Floats x(4);
  Floats dy = {1, 2, 3, 4};
  EXPECT_EQ(run(graded("TransposeGrad"), {x.data(), dy.data(), dy.data()}, {2, 2}), "");
  EXPECT_EQ(dy, (Floats{1, 3, 2, 4}));
  Floats first = {1, 2};
  Floats second = {3, 4};
  EXPECT_EQ(run(graded("SwapGrad"),
                {x.data(), x.data() + 2, first.data(), second.data(), first.data(), second.data()}),
            "");
  EXPECT_EQ(first, (Floats{3, 4}));
  EXPECT_EQ(second, (Floats{1, 2}));
}

}  // namespace
