// Views: what a kernel sees of the host's memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "libraries.h"

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Result;

// Fields of the kernel Describe.
enum Field { kAddress, kDim, kNumel, kContiguous, kInference, kRequiresGrad, kScalarType, kFields };

std::vector<int64_t> describe(Call& call) {
  const Result result = call.output<int64_t>({kFields}).run();
  EXPECT_EQ(result.error(), "");
  return result.output<int64_t>(0);
}

TEST(ViewsTest, DataPointerIsTheHostsAtAnyAlignment) {
  for (const std::size_t remainder : {0, 1, 16, 32, 48, 63}) {
    Call call = kernel("Describe");
    call.input_alignment(remainder).input<double>({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(describe(call)[kAddress] % 64, static_cast<int64_t>(remainder));
  }
}

// The compiler takes a complex128 as two halves of 16 bytes, and ends the process elsewhere.
TEST(ViewsTest, Complex128WorksAtAnyAddress) {
  using Complex = std::complex<double>;
  const std::vector<Complex> x = {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}};
  std::vector<Complex> negative(x.size());
  std::transform(x.begin(), x.end(), negative.begin(), std::negate<>());
  for (const std::size_t input : {0, 8, 16, 1}) {
    for (const std::size_t output : {16, 8, 1}) {
      Call call = kernel("Negate");
      call.input_alignment(input).output_alignment(output);
      call.input<Complex>({2, 3}, x).output<Complex>({2, 3});
      for (const auto& [values, expected] : {std::pair(x, negative), std::pair(negative, x)}) {
        const Result result = call.set_input(0, values).run();
        EXPECT_EQ(result.error(), "");
        EXPECT_EQ(result.output<Complex>(0), expected);
      }
    }
  }
  Call empty = kernel("Copy");
  empty.input_alignment(8).input<Complex>({0}, {}).output<Complex>({0});
  EXPECT_EQ(empty.run().error(), "");
}

TEST(ViewsTest, Complex128ThatAKernelAsksForItselfHasToBeAligned) {
  Call call = kernel("FirstSlot");
  call.input_alignment(8).input<std::complex<double>>({2}, {1, 2});
  EXPECT_EQ(call.output<std::complex<double>>({2}).run().error(),
            "FirstSlot: slot 0: expected complex128 [2] at a multiple of 16 bytes, got an address "
            "that is not");
}

TEST(ViewsTest, OutputIsTheHostsMemory) {
  const Result result = kernel("DescribeOutput").input<float>({1}, {1}).output<int64_t>({2}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<int64_t>(0)[0] % 64, 16);
}

TEST(ViewsTest, ViewIsAnOrdinaryContiguousTensor) {
  Call call = kernel("Describe");
  call.input<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::vector<int64_t> found = describe(call);
  EXPECT_EQ(found[kDim], 2);
  EXPECT_EQ(found[kNumel], 6);
  EXPECT_EQ(found[kContiguous], 1);
  EXPECT_EQ(found[kInference], 0);
  EXPECT_EQ(found[kRequiresGrad], 0);
}

TEST(ViewsTest, RankZeroHasOneElement) {
  Call call = kernel("Describe");
  call.input<float>({}, {1.5F});
  const std::vector<int64_t> found = describe(call);
  EXPECT_EQ(found[kDim], 0);
  EXPECT_EQ(found[kNumel], 1);
  const Result copied = kernel("Copy").input<float>({}, {1.5F}).output<float>({}).run();
  EXPECT_EQ(copied.error(), "");
  EXPECT_EQ(copied.output<float>(0), std::vector<float>{1.5F});
}

TEST(ViewsTest, EmptyTensorsAreOrdinary) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{0}, {2, 0, 3}}) {
    const Result result = kernel("Copy").input<float>(sizes, {}).output<float>(sizes).run();
    EXPECT_EQ(result.error(), "");
    EXPECT_EQ(result.output<float>(0), std::vector<float>{});
  }
}

TEST(ViewsTest, EmptyTensorMayHaveANullPointer) {
  Call call = kernel("Copy");
  void* params[2] = {nullptr, nullptr};
  int ndims[2] = {1, 1};
  int64_t size = 0;
  int64_t* shapes[2] = {&size, &size};
  const char* dtypes[2] = {"float32", "float32"};
  EXPECT_EQ(call.function()(2, params, ndims, shapes, dtypes, nullptr, nullptr), 0);
}

TEST(ViewsTest, RankEight) {
  std::vector<float> values(256);
  std::iota(values.begin(), values.end(), 0.0F);
  const std::vector<int64_t> sizes(8, 2);
  const Result result = kernel("Copy").input<float>(sizes, values).output<float>(sizes).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), values);
}

template <class T>
class DtypeTest : public testing::Test {};
using ElementTypes = testing::Types<
#if PYTORCH_MINOR >= 3
    std::uint16_t, std::uint32_t, std::uint64_t,
#endif
    bool, std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t, float, double,
    std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(DtypeTest, ElementTypes);

TYPED_TEST(DtypeTest, ElementsAreCarriedUnchanged) {
  const std::vector<TypeParam> values = {TypeParam{1}, TypeParam{0}, TypeParam{1}};
  const Result result =
      kernel("Copy").input<TypeParam>({3}, values).template output<TypeParam>({3}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.template output<TypeParam>(0), values);
}

TEST(ViewsTest, DtypesWithoutACppTypeAreCarriedUnchanged) {
  const std::vector<unsigned char> two_bytes = {0x00, 0x3c, 0x00, 0xc0};
  for (const char* dtype : {"float16", "bfloat16"}) {
    const Result result =
        kernel("Copy").input_bytes(dtype, {2}, two_bytes).output_bytes(dtype, {2}, 2).run();
    EXPECT_EQ(result.error(), "") << dtype;
    EXPECT_EQ(result.bytes(0), two_bytes) << dtype;
  }
  const std::vector<unsigned char> one_byte = {0x38, 0xb8};
  for (const char* dtype : {"float8e4m3fn", "float8e5m2"}) {
    const Result result =
        kernel("Copy").input_bytes(dtype, {2}, one_byte).output_bytes(dtype, {2}, 1).run();
    EXPECT_EQ(result.error(), "") << dtype;
    EXPECT_EQ(result.bytes(0), one_byte) << dtype;
  }
}

TEST(ViewsTest, ScalarTypesArePyTorchsOwn) {
  // Values of c10::ScalarType, which are stable: Byte 0, Char 1, ... UInt16 27, ...
  const std::vector<std::pair<const char*, int64_t>> expected = {
    {"uint8", 0},
    {"int8", 1},
    {"int16", 2},
    {"int32", 3},
    {"int64", 4},
    {"float16", 5},
    {"float32", 6},
    {"float64", 7},
    {"complex64", 9},
    {"complex128", 10},
    {"bool", 11},
    {"bfloat16", 15},
    {"float8e5m2", 23},
    {"float8e4m3fn", 24},
    {"int", 3},
    {"float", 6},
#if PYTORCH_MINOR >= 3
    {"uint16", 27},
    {"uint32", 28},
    {"uint64", 29},
    {"uint", 28},
#endif
  };
  for (const auto& [dtype, scalar_type] : expected) {
    Call call = kernel("Describe");
    call.input_bytes(dtype, {1}, std::vector<unsigned char>(16));
    EXPECT_EQ(describe(call)[kScalarType], scalar_type) << dtype;
  }
}

TEST(ViewsTest, TheSameMemoryTwice) {
  const Result result = kernel("AddSubtract")
                            .input<float>({2}, {1, 2})
                            .input_again(0)
                            .output<float>({2})
                            .output<float>({2})
                            .run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (std::vector<float>{2, 4}));
  EXPECT_EQ(result.output<float>(1), (std::vector<float>{0, 0}));
}

TEST(ViewsTest, InputsMayBeWritten) {
  Call call = kernel("WriteInput");
  const Result result = call.input<std::int8_t>({2}, {1, -2}).output<std::int8_t>({2}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<std::int8_t>(0), (std::vector<std::int8_t>{-1, 2}));
  EXPECT_EQ(call.input_now(0), (std::vector<unsigned char>{0xff, 2}));
}

TEST(ViewsTest, InputReshapedInPlaceIsWholeAgainInTheNextCall) {
  for (int i = 0; i < 2; ++i) {
    const Result result =
        kernel("ReshapeInput").input<float>({2, 2}, {1, 2, 3, 4}).output<int64_t>({2}).run_here();
    EXPECT_EQ(result.error(), "");
    EXPECT_EQ(result.output<int64_t>(0), (std::vector<int64_t>{2, 3}));
  }
}

TEST(ViewsTest, WorkspacesOfTheCallAreFoundAndAreNoOperands) {
  const Result raw =
      kernel("Workspaces").output<int64_t>({5}).workspace(100).workspace(0).workspace(64).run();
  EXPECT_EQ(raw.error(), "");
  EXPECT_EQ(raw.output<int64_t>(0), (std::vector<int64_t>{1, 3, 100, 0, 64}));
  const Result typed = kernel("Copy").input<float>({1}, {2}).output<float>({1}).workspace(8).run();
  EXPECT_EQ(typed.error(), "");
  EXPECT_EQ(typed.output<float>(0), std::vector<float>{2});
}

}  // namespace
