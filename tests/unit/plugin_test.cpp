// The adapter for MindSpore's op plugins, with a fake of what that host passes. (The real host
// is in tests/mint.)
#include <aten_bridge/testing.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plugin_host.h"

namespace {

using aten_bridge::testing::HostFunction;
using plugin_host::HostCall;
using plugin_host::Ints;

/// A call of a kernel of tests/kernels/plugin_kernels.cpp.
class PluginCall final : public HostCall {
 public:
  /// "" or the text of the error.
  std::string run(const char* name, bool with_extra = true) {
    static void* library = dlopen(TEST_PLUGIN, RTLD_LAZY | RTLD_LOCAL);
    try {
      const auto function = reinterpret_cast<HostFunction>(dlsym(library, name));
      return HostCall::run(function, with_extra) == 0 ? "" : "return code";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
};

TEST(PluginTest, StridedInputsAreViewsOfTheHostsMemory) {
  std::vector<float> x = {0, 1, 2, 3, 4, 5};
  Ints found(5);
  // The second row and the third, of a transposed view: columns 1 and 2 of 2 rows of 3.
  PluginCall call;
  call.strided("float32", {2, 2}, x.data(), {1, 3}, 1).output("int64", {5}, found.data());
  EXPECT_EQ(call.run("DescribeView"), "");
  EXPECT_EQ(found, (Ints{reinterpret_cast<std::intptr_t>(x.data()), 1, 1, 3, 24}));

  std::vector<float> y(4);
  PluginCall copy;
  copy.strided("float32", {2, 2}, x.data(), {1, 3}, 1).output("float32", {2, 2}, y.data());
  EXPECT_EQ(copy.run("Copy"), "");
  EXPECT_EQ(y, (std::vector<float>{1, 4, 2, 5}));

  // The next call's view is a row-major one again.
  PluginCall dense;
  dense.input("float32", {2, 2}, x.data()).output("float32", {2, 2}, y.data());
  EXPECT_EQ(dense.run("Copy"), "");
  EXPECT_EQ(y, (std::vector<float>{0, 1, 2, 3}));
}

TEST(PluginTest, SizesOfAParameterThatIsNoOperandAreNotRead) {
  std::vector<float> x = {1, 2};
  std::vector<float> y(2);
  PluginCall call;
  call.input("float32", {2}, x.data()).output("float32", {2}, y.data()).more(y.data());
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(call.run("Copy"), "");
  }
  EXPECT_EQ(y, x);
}

TEST(PluginTest, OneElementOfATensorIsFoundByItsOffset) {
  std::vector<float> x = {0, 1, 2, 3};
  float y = 0;
  PluginCall copy;
  copy.strided("float32", {}, x.data(), {}, 3).output("float32", {}, &y);
  EXPECT_EQ(copy.run("Copy"), "");
  EXPECT_EQ(y, 3);

  PluginCall negate;
  negate.strided("float32", {1, 1}, x.data(), {4, 2}, 2).output("float32", {1, 1}, x.data());
  EXPECT_EQ(negate.run("InplaceNegate"), "");
  EXPECT_EQ(x, (std::vector<float>{0, 1, -2, 3}));

  // Also where a number is read from it.
  Ints ints = {4};
  std::vector<float> reals = {0.5F};
  std::vector<double> found(4);
  PluginCall number;
  number.input("int64", {1}, ints.data(), true).none().input("float32", {1}, reals.data(), true);
  number.strided("float32", {}, x.data(), {}, 1).none().output("float64", {4}, found.data());
  EXPECT_EQ(number.run("Values"), "");
  EXPECT_EQ(found, (std::vector<double>{4, 0.5, 1, -1}));
}

TEST(PluginTest, ListsNumbersAndDtypesComeFromInputs) {
  Ints ints = {3, 4};
  Ints one = {7};
  std::vector<float> reals = {0.1F, 0.2F};
  float real = 0.3F;
  int64_t bfloat16 = 45;
  std::vector<double> found(7);
  PluginCall call;
  call.input("int64", {2}, ints.data(), true).input("int64", {}, one.data(), true);
  call.input("float32", {2}, reals.data(), true).input("float32", {}, &real, true);
  call.input("int64", {}, &bfloat16, true).output("float64", {7}, found.data());
  EXPECT_EQ(call.run("Values"), "");
  EXPECT_EQ(found, (std::vector<double>{3, 4, 7, 0.1, 0.2, 0.3, 15}));  // 15: at::kBFloat16

  found.assign(6, 0);
  PluginCall none;
  none.input("int64", {2}, ints.data(), true).none().input("float32", {2}, reals.data(), true);
  none.input("float32", {}, &real, true).none().output("float64", {6}, found.data());
  EXPECT_EQ(none.run("Values"), "");
  EXPECT_EQ(found, (std::vector<double>{3, 4, 0.1, 0.2, 0.3, -1}));

  for (const int64_t count : {0, 1, 8, 9, 100}) {
    std::vector<int64_t> longs(static_cast<std::size_t>(count), 3);
    std::vector<double> doubles(static_cast<std::size_t>(count), 0.5);
    std::vector<double> both(2);
    PluginCall sums;
    sums.input("int64", {count}, longs.data(), true)
        .input("float64", {count}, doubles.data(), true);
    sums.output("float64", {2}, both.data());
    EXPECT_EQ(sums.run("Sums"), "");
    EXPECT_EQ(both, (std::vector<double>{3.0 * static_cast<double>(count),
                                         0.5 * static_cast<double>(count)}));
  }
}

TEST(PluginTest, AnEmptyListArrivesAsNoneOfTheShape0) {
  int64_t unused = 7;  // PyNative mode has a pointer for it, a graph has none
  for (void* const data : {static_cast<void*>(nullptr), static_cast<void*>(&unused)}) {
    std::vector<double> both = {5, 5};
    PluginCall sums;
    sums.input("none", {0}, data, true).input("none", {0}, data, true);
    sums.output("float64", {2}, both.data());
    EXPECT_EQ(sums.run("Sums"), "");
    EXPECT_EQ(both, (std::vector<double>{0, 0}));
  }

  // None itself is no list.
  std::vector<double> both(2);
  PluginCall none;
  none.none().input("none", {0}, nullptr, true).output("float64", {2}, both.data());
  EXPECT_EQ(none.run("Sums"), "Sums: input 0: expected a number, got None");

  // Beside other parameters, and for one that may be None.
  int64_t one = 7;
  float real = 0.25F;
  std::vector<double> found(3);
  PluginCall lists;
  lists.input("none", {0}, nullptr, true).input("int64", {}, &one, true);
  lists.input("none", {0}, nullptr, true).input("float32", {}, &real, true).none();
  lists.output("float64", {3}, found.data());
  EXPECT_EQ(lists.run("Values"), "");
  EXPECT_EQ(found, (std::vector<double>{7, 0.25, -1}));
}

TEST(PluginTest, ListsOfNumbersMayBeViews) {
  Ints ints = {9, 3, 9, 4, 9, 5};  // 3, 4, 5 is every second one
  std::vector<float> reals = {9, 0.1F, 0.2F};
  std::vector<double> doubles = {0.5, 9, 9, 0.25};
  int64_t one = 7;
  std::vector<double> found(8);
  PluginCall call;
  call.strided("int64", {3}, ints.data(), {2}, 1).input("int64", {}, &one, true);
  call.strided("float32", {2}, reals.data(), {1}, 1).strided("float64", {}, doubles.data(), {}, 3);
  call.none().output("float64", {8}, found.data());
  EXPECT_EQ(call.run("Values"), "");
  EXPECT_EQ(found, (std::vector<double>{3, 4, 5, 7, 0.1, 0.2, 0.25, -1}));

  found.assign(6, 0);
  PluginCall others;  // one that is repeated, and a step between float64
  others.strided("int64", {2}, ints.data(), {0}, 5).none();
  others.strided("float64", {2}, doubles.data(), {3}, 0).input("float64", {}, doubles.data());
  others.none().output("float64", {6}, found.data());
  EXPECT_EQ(others.run("Values"), "");
  EXPECT_EQ(found, (std::vector<double>{5, 5, 0.5, 0.25, 0.5, -1}));
}

TEST(PluginTest, StridesAreAsManyAsDimensions) {
  std::vector<float> x = {0, 1, 2, 3};
  std::vector<float> y(4);
  PluginCall few;
  few.strided("float32", {2, 2}, x.data(), {2}, 0).output("float32", {2, 2}, y.data());
  EXPECT_EQ(few.run("Copy"), "Copy: input 0: expected 2 strides, got 1 with float32 [2, 2]");
  PluginCall many;
  many.strided("float32", {2}, x.data(), {2, 1}, 0).output("float32", {2}, y.data());
  EXPECT_EQ(many.run("Copy"), "Copy: input 0: expected 1 stride, got 2 with float32 [2]");
  Ints ints = {1, 2};
  std::vector<double> found(6);
  PluginCall list;
  list.strided("int64", {2}, ints.data(), {1, 1}, 0).none().input("float32", {2}, x.data(), true);
  list.input("float32", {}, x.data(), true).none().output("float64", {6}, found.data());
  EXPECT_EQ(list.run("Values"), "Values: input 0: expected 1 stride, got 2 with int64 [2]");
}

TEST(PluginTest, TheLargestNumbersOfDtypesStayInTheirRange) {
  // The shortest decimals are 3.4028235e38 and 3.3895314e38, which both are more.
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kLargestBFloat16 = 0x1.fep127F;
  std::vector<float> list = {-kLargest, kLargestBFloat16};
  for (float real : {kLargest, -kLargest, kLargestBFloat16, -kLargestBFloat16, 65504.0F,
                     std::numeric_limits<float>::infinity()}) {
    std::vector<double> found(4);
    PluginCall call;
    call.input("int64", {0}, nullptr, true).none().input("float32", {2}, list.data(), true);
    call.input("float32", {}, &real, true).none().output("float64", {4}, found.data());
    EXPECT_EQ(call.run("Values"), "");
    EXPECT_EQ(found, (std::vector<double>{-kLargest, kLargestBFloat16, real, -1}));
  }
}

TEST(PluginTest, WrongValuesAreNamed) {
  std::vector<float> reals = {0.5F, 1};
  int64_t unknown = 7;
  double y = 0;
  PluginCall call;
  call.input("float32", {2}, reals.data(), true).none().input("float32", {2}, reals.data(), true);
  call.input("float32", {2}, reals.data(), true).input("int64", {}, &unknown, true);
  call.output("float64", {}, &y);
  EXPECT_EQ(call.run("Values"),
            "Values: input 0: expected a list of ints, got float32 [2]\n"
            "Values: input 3: expected a real number as one element, got float32 [2]\n"
            "Values: input 4: expected the number of a dtype, got int64 []");
}

TEST(PluginTest, AListTakesTheInputsThatAreLeft) {
  std::vector<float> a = {1};
  std::vector<float> b = {2, 3};
  std::vector<float> y(3);
  int64_t dim = 0;
  PluginCall call;
  call.input("float32", {1}, a.data()).input("float32", {2}, b.data());
  call.input("int64", {}, &dim, true).output("float32", {3}, y.data());
  EXPECT_EQ(call.run("CatPlugin"), "");
  EXPECT_EQ(y, (std::vector<float>{1, 2, 3}));
}

TEST(PluginTest, KernelsWithoutOutputsWriteTheirInput) {
  std::vector<float> x = {1, 2, 3, 4};
  PluginCall call;
  call.strided("float32", {2}, x.data(), {2}, 1).output("float32", {2}, x.data());
  EXPECT_EQ(call.run("InplaceNegate"), "");
  EXPECT_EQ(x, (std::vector<float>{1, -2, 3, -4}));

  std::vector<float> y(2);
  PluginCall other;
  other.input("float32", {2}, x.data()).output("float32", {2}, y.data());
  EXPECT_EQ(other.run("InplaceNegate"),
            "InplaceNegate: output 0: expected the memory of an input, which the kernel writes in "
            "place, got other memory");

  PluginCall refused;
  refused.input("string", {2}, x.data()).output("string", {2}, x.data());
  EXPECT_EQ(refused.run("InplaceNegate"),
            "InplaceNegate: input 0: expected a tensor, got \"string\", a str");
}

TEST(PluginTest, WhatLiesInTheWrittenMemoryIsReadAsItWas) {
  std::vector<float> x = {1, 2, 3, 4};
  PluginCall following;  // the three last elements plus those before them
  following.strided("float32", {3}, x.data(), {1}, 1).strided("float32", {3}, x.data(), {1}, 0);
  following.output("float32", {3}, x.data());
  EXPECT_EQ(following.run("InplaceAdd"), "");
  EXPECT_EQ(x, (std::vector<float>{1, 3, 5, 7}));

  PluginCall transposed;
  transposed.strided("float32", {2, 2}, x.data(), {2, 1}, 0);
  transposed.strided("float32", {2, 2}, x.data(), {1, 2}, 0).output("float32", {2, 2}, x.data());
  EXPECT_EQ(transposed.run("InplaceAdd"), "");
  EXPECT_EQ(x, (std::vector<float>{2, 8, 8, 14}));

  PluginCall itself;
  itself.input("float32", {4}, x.data()).input("float32", {4}, x.data());
  itself.output("float32", {4}, x.data());
  EXPECT_EQ(itself.run("InplaceAdd"), "");
  EXPECT_EQ(x, (std::vector<float>{4, 16, 16, 28}));
}

TEST(PluginTest, SizesThatAreKnownAfterwardsAreReported) {
  std::vector<float> x = {0, 5, 0, 6};
  Ints y(4, -1);
  PluginCall call;
  call.input("float32", {4}, x.data()).output("int64", {4, 1}, y.data());
  EXPECT_EQ(call.run("NonZeroPlugin"), "");
  ASSERT_NE(call.found, nullptr);
  EXPECT_EQ(call.found->sizes, std::vector<Ints>({{2, 1}}));
  EXPECT_EQ(call.found->is_known, std::vector<bool>{true});
  EXPECT_EQ(y, (Ints{1, 3, -1, -1}));

  PluginCall small;
  small.input("float32", {4}, x.data()).output("int64", {1, 1}, y.data());
  EXPECT_EQ(small.run("NonZeroPlugin"),
            "NonZeroPlugin: output 0: expected int64 [1, 1] or less of it, got int64 [2, 1] from "
            "the kernel");
}

TEST(PluginTest, TheNumberOfInputsIsKnown) {
  std::vector<float> x = {1};
  PluginCall call;
  call.input("float32", {1}, x.data()).input("float32", {1}, x.data());
  EXPECT_EQ(
      call.run("Copy"),
      "Copy: expected 1 input and 1 output, got 2 and 0; compare the kernel's parameters with "
      "MindSpore's definition of the operator");
  PluginCall other;
  other.input("float32", {1}, x.data()).output("float32", {1}, x.data());
  EXPECT_EQ(other.run("Copy", /*with_extra=*/false),
            "Copy: expected `extra` to describe the inputs, as MindSpore's op plugins get it, got "
            "null");
}

TEST(PluginTest, OutputsOfOtherOperatorsBehindItsOwnAreLeftAlone) {
  float x = 1;
  std::vector<float> y = {5, 6};
  PluginCall call;
  call.input("float32", {}, &x).output("float32", {}, y.data());
  call.output("float32", {}, y.data() + 1);
  EXPECT_EQ(call.run("Copy"), "");
  EXPECT_EQ(y, (std::vector<float>{1, 6}));
}

#if PYTORCH_MINOR >= 3  // which has uint16
TEST(PluginTest, ADtypeThatATenHasNoKernelForIsComputedInAWiderOne) {
  std::vector<std::uint16_t> x = {0, 1};
  std::vector<std::uint16_t> y(2);
  PluginCall call;
  call.input("uint16", {2}, x.data()).output("uint16", {2}, y.data());
  EXPECT_EQ(call.run("NegateNumbers"), "");
  EXPECT_EQ(y, (std::vector<std::uint16_t>{0, 65535}));
}
#endif

TEST(PluginTest, ADtypeThatAnOperatorRefusesIsAnError) {
  bool x = true;
  bool y = false;
  PluginCall call;
  call.input("bool", {}, &x).output("bool", {}, &y);
  EXPECT_EQ(call.run("NegateNumbers"),
            "NegateNumbers: Negation of bools is not supported (input 0: bool []; output 0: bool "
            "[])");
  EXPECT_FALSE(y);
}

TEST(PluginTest, TheLibraryTellsItsOperators) {
  void* library = dlopen(TEST_PLUGIN, RTLD_LAZY | RTLD_LOCAL);
  const auto count = [&](const char* name) {
    return reinterpret_cast<int (*)()>(dlsym(library, name))();
  };
  const auto names = [&](const char* name) {
    return reinterpret_cast<const char** (*)()>(dlsym(library, name))();
  };
  ASSERT_EQ(count("GetRegisteredOpCount"), 9);
  EXPECT_STREQ(names("GetAllRegisteredOps")[0], "Copy");
  EXPECT_STREQ(names("GetAllRegisteredOps")[6], "NonZeroPlugin");
  ASSERT_EQ(count("GetComputeDependOpCount"), 1);
  EXPECT_STREQ(names("GetAllOpPluginComputeDependOps")[0], "NonZeroPlugin");
}

TEST(PluginTest, ARefusedCallLeavesNothingBehind) {
  // In PyNative mode the calls share one `extra`, and so their views.
  std::optional<PluginCall> call;
  std::vector<float> x = {0, 1, 2, 3, 4, 5};
  std::vector<float> y(4);
  float ones[2] = {1, 1};
  int64_t dim = 0;
  // Views are kept by the sizes of the first operand and the last: the one between is another.
  const auto good = [&] {
    y.assign(4, -1);
    call.emplace().input("float32", {2}, ones).strided("float32", {2}, x.data(), {2}, 1);
    call->input("int64", {}, &dim, true).output("float32", {4}, y.data());
    EXPECT_EQ(call->run("CatPlugin"), "");
    EXPECT_EQ(y, (std::vector<float>{1, 1, 1, 3}));
  };
  const auto refused = [&](const char* dtype, const Ints& sizes, const Ints& strides) {
    call.emplace().input("float32", {2}, ones).strided(dtype, sizes, x.data(), strides, 0);
    call->input("int64", {}, &dim, true).output("float32", {4}, y.data());
    return call->run("CatPlugin");
  };
  const std::string dtypes =
      "expected bool|uint8|int8|uint16|int16|uint32|int32|uint64|int64|float16|bfloat16|float32|"
      "float64|complex64|complex128|float8e4m3fn|float8e5m2, got \"quack\" with shape [2, 1, 2]";
  good();
  EXPECT_EQ(refused("quack", {2, 1, 2}, {1, 6, 2}), "CatPlugin: input 1: " + dtypes);
  good();
  EXPECT_NE(refused("float32", {2, 1, 2}, {1, 6, 2}), "") << "of another rank than the first";
  good();
  EXPECT_NE(refused("float32", {2, 2}, {1, 3}), "") << "transposed";
  good();
}

}  // namespace
