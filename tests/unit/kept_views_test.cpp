// Views are kept from call to call: whatever a kernel does with them, the next call has views like
// new.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "libraries.h"

namespace {

thread_local int64_t allocations = 0;
thread_local int64_t frees = 0;

}  // namespace

// Counted in the whole process, PyTorch's libraries among it.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  frees += memory == nullptr ? 0 : 1;
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  operator delete(memory);
}

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Result;
using aten_bridge::testing::detail::Attributes;
using aten_bridge::testing::detail::Extra;
using aten_bridge::testing::detail::Value;
using Ints = std::vector<int64_t>;

struct Operand {
  void* data;
  Ints sizes;
  const char* dtype;
};

/// One call site of a network, whose calls share an `extra`. Nothing is kept of a call but its
/// views.
class CallSite {
 public:
  explicit CallSite(const std::string& name) : function_(kernel(name).function()) {}

  void use(const std::string& name) { function_ = kernel(name).function(); }

  /// The operator's attributes from now on.
  void set(Attributes attributes) { extra_.emplace(std::move(attributes)); }

  /// The text of the error, or "". Without Init: the attributes are read in each call.
  std::string call(std::vector<Operand> operands) {
    std::vector<void*> params;
    std::vector<int> ndims;
    std::vector<int64_t*> shapes;
    std::vector<const char*> dtypes;
    for (Operand& operand : operands) {
      params.push_back(operand.data);
      ndims.push_back(static_cast<int>(operand.sizes.size()));
      shapes.push_back(operand.sizes.data());
      dtypes.push_back(operand.dtype);
    }
    try {
      function_(static_cast<int>(params.size()), params.data(), ndims.data(), shapes.data(),
                dtypes.data(), /*stream=*/nullptr, &*extra_);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

 private:
  aten_bridge::testing::HostFunction function_;
  std::optional<Extra> extra_{std::in_place};
};

TEST(KeptViewsTest, AreLikeNewInTheNextCall) {
  // rank, size, strides, offset, requires_grad, is_neg or named, bytes, first element
  Ints expected = {2, 2, 3, 1, 0, 0, 0, 24, 1};
  std::deque<std::vector<float>> inputs;
  CallSite site("Spoil");
  for (const int64_t how : {0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 6, 0, 7, 0}) {
    inputs.push_back({static_cast<float>(expected[8]), 2, 3, 4, 5, 6});
    Ints result(9);
    site.set({{"how", Value(how)}});
    const std::string error =
        site.call({{inputs.back().data(), {2, 3}, "float32"}, {result.data(), {9}, "int64"}});
    if (how == 10) {
      EXPECT_EQ(error, "Spoil: on purpose (input 0: float32 [2, 3]; output 0: int64 [9])");
    } else if (how == 6 || how == 7) {  // which keeps it
      EXPECT_NE(error, "");
    } else {
      EXPECT_EQ(error, "");
    }
    EXPECT_EQ(result, expected) << "after " << inputs.size() << " calls";
    ++expected[8];
  }
}

TEST(KeptViewsTest, HaveTheStridesOfANewOneWhereASizeIsOne) {
  constexpr int64_t kTranspose = 0;  // after the view was looked at
  float x[3] = {1, 2, 3};
  Ints result(9);
  CallSite site("Spoil");
  site.set({{"how", Value(kTranspose)}});
  EXPECT_EQ(site.call({{x, {3, 1}, "float32"}, {result.data(), {9}, "int64"}}), "");
  EXPECT_EQ(site.call({{x, {1, 3}, "float32"}, {result.data(), {9}, "int64"}}), "");
  EXPECT_EQ(Ints(result.begin(), result.begin() + 4), Ints({2, 1, 3, 1})) << "rank, size, strides";
}

TEST(KeptViewsTest, AKernelOfTheSameTypeHasItsOwnChecksAndNames) {
  CallSite site("CheckedFirst");  // whose `extra` is at one address for both
  std::vector<float> x(4);
  std::vector<float> y(4);
  for (int times = 0; times < 3; ++times) {
    site.use("CheckedFirst");
    EXPECT_EQ(site.call({{x.data(), {4}, "float32"}, {y.data(), {4}, "float32"}}), "");
    site.use("CheckedSecond");
    EXPECT_EQ(site.call({{x.data(), {4}, "float32"}, {y.data(), {4}, "float32"}}),
              "CheckedSecond: input 0 'second': expected rank 2, got float32 [4]");
    EXPECT_EQ(site.call({{x.data(), {2, 2}, "float32"}, {y.data(), {2, 2}, "float32"}}), "");
    site.use("CheckedFirst");
    EXPECT_EQ(site.call({{x.data(), {2, 2}, "float32"}, {y.data(), {2, 2}, "float32"}}),
              "CheckedFirst: input 0 'first': expected rank 1, got float32 [2, 2]");
  }
}

TEST(KeptViewsTest, FollowShapesRanksAndDtypes) {
  CallSite site("Copy");
  const auto copy = [&](auto values, const char* dtype, const Ints& sizes, auto copied,
                        const char* to_dtype) {
    const auto expected = copied;
    copied.assign(copied.size(), 0);
    EXPECT_EQ(site.call({{values.data(), sizes, dtype}, {copied.data(), sizes, to_dtype}}), "");
    EXPECT_EQ(copied, expected);
  };
  using Floats = std::vector<float>;
  using Doubles = std::vector<double>;
  float value = 0;
  for (int times = 0; times < 2; ++times) {
    copy(Floats{1, 2}, "float32", {2}, Floats{1, 2}, "float32");
    copy(Floats{3}, "float32", {}, Floats{3}, "float32");
    copy(Ints{4, 5}, "int64", {1, 2, 1, 1, 1, 1}, Ints{4, 5}, "int64");
    copy(Floats{}, "float32", {0, 3}, Doubles{}, "float64");
    copy(std::vector<unsigned char>{1, 0}, "bool", {2, 1}, Doubles{1, 0}, "float64");
    EXPECT_EQ(site.call({{nullptr, {}, "none"}, {&value, {1}, "float32"}}),
              "Copy: input 0: expected a tensor, got None");
  }
  for (int64_t n = 1; n < 100; ++n) {  // more of them than views are kept for
    Floats values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), 1.0F);
    copy(values, "float32", {n}, values, "float32");
    copy(values, "float32", {1, n, 1, 1, 1, 1}, values, "float32");
    copy(values, "float32", {n, 1}, Doubles(values.begin(), values.end()), "float64");
  }
}

TEST(KeptViewsTest, ACallLikeTheLastButForOneFaultIsRefused) {
  const auto add = kernel("AddIfGiven").function();
  float values[6] = {};
  int64_t sizes[] = {2, 3};
  int64_t* shapes[] = {sizes, sizes, sizes};
  // The fault is that of the operand in the middle: views are kept by the sizes of the others.
  const auto call = [&](void* data, int ndim, const char* dtype) -> std::string {
    const auto with = [&](void* middle, int rank, const char* type) {
      void* params[] = {values, middle, values};
      int ndims[] = {2, rank, 2};
      const char* dtypes[] = {"float32", type, "float32"};
      add(3, params, ndims, shapes, dtypes, nullptr, nullptr);
    };
    with(values, 2, "float32");
    try {
      with(data, ndim, dtype);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(call(values, 2, "float32"), "");
  EXPECT_EQ(call(nullptr, 2, "float32"),
            "AddIfGiven: input 1: expected a pointer to 6 elements, got null with float32 [2, 3]");
  EXPECT_EQ(call(values, -1, "float32"),
            "AddIfGiven: input 1: expected a rank from 0 to 64, got -1");
  EXPECT_EQ(call(values, 2, nullptr),
            "AddIfGiven: input 1: expected a dtype, got null with shape [2, 3]");
  EXPECT_EQ(call(values, 2, "none"), "");
}

TEST(KeptViewsTest, AWrongCountIsRefusedBeforeAnyOperandIsLookedAt) {
  const auto copy = kernel("Copy").function();
  float values[6] = {};
  int64_t sizes[] = {2, 3};
  auto* const nowhere = reinterpret_cast<int64_t*>(0x21);
  void* params[] = {values, values, values};
  int ndims[] = {2, 2, 2};
  int64_t* shapes[] = {nowhere, sizes, nowhere};
  const char* dtypes[] = {"float32", "float32", "float32"};
  try {
    copy(3, params, ndims, shapes, dtypes, nullptr, nullptr);
    ADD_FAILURE() << "not refused";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "Copy: expected 1 input and 1 output, got 3 slots; compare the arguments of the "
                 "call, out_shape and out_dtype with the kernel");
  }
}

TEST(KeptViewsTest, ARefusedCallLeavesNothingBehind) {
  CallSite site("AddIfGiven");
  std::vector<float> x(16);
  std::iota(x.begin(), x.end(), 1.0F);
  std::vector<float> zeros(16);
  std::vector<float> y(16);
  // Views are kept by the sizes of the first and the last operand: the one between them is another.
  const auto call = [&](const char* dtype, const Ints& sizes, const char* other_dtype) {
    return site.call({{x.data(), {4, 4}, dtype},
                      {zeros.data(), sizes, other_dtype},
                      {y.data(), {4, 4}, "float32"}});
  };
  const auto good = [&] {
    y.assign(16, 0.0F);
    EXPECT_EQ(call("float32", {4, 4}, "float32"), "");
    EXPECT_EQ(y, x);
  };
  good();
  const std::string refused =
      ": expected bool|uint8|int8|uint16|int16|uint32|int32|uint64|int64|float16|bfloat16|float32"
      "|float64|complex64|complex128|float8e4m3fn|float8e5m2, got \"quack\" with shape ";
  for (const Ints& sizes : {Ints{2, 2, 4}, Ints{16}, Ints{1, 2, 2, 2, 2}, Ints{}}) {
    EXPECT_EQ(call("quack", sizes, "float32"), "AddIfGiven: input 0" + refused + "[4, 4]");
    good();
    EXPECT_NE(call("float32", sizes, "quack").find("AddIfGiven: input 1" + refused),
              std::string::npos);
    good();
    if (!sizes.empty()) {
      EXPECT_NE(call("float32", {3, 5}, "int32"), "") << "cannot be added";
      good();
    }
  }
}

TEST(KeptViewsTest, AreNotUsedWhereAnAttributeIsWrong) {
  CallSite site("Fill");
  std::vector<float> input = {1, 2};
  std::vector<float> result;
  const auto call = [&](const Attributes& attributes) {
    result = {-1, -1};
    site.set(attributes);
    return site.call({{input.data(), {2}, "float32"}, {result.data(), {2}, "float32"}});
  };
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(call({{"value", Value(int64_t{3})}}), "");
    EXPECT_EQ(result, (std::vector<float>{3, 3}));
    EXPECT_EQ(call({}),
              "Fill: attribute 'value': expected an int, got nothing; set it where the operator is "
              "made, as in add_prim_attr(\"value\", ...)");
    EXPECT_EQ(result, (std::vector<float>{-1, -1})) << "the body has run";
  }
}

// Where it is copied, the copy is old when the body is over.
TEST(KeptViewsTest, AComplex128ThatTheKernelLeftAloneIsNotWritten) {
  for (const std::size_t begin : {0, 1}) {  // in one of the two it is not aligned
    CallSite site("DoubleFirst");
    std::vector<double> memory = {1, 2, 3, 4, 5};
    double result = 0;
    double* const data = memory.data() + begin;
    for (int times = 0; times < 2; ++times) {
      EXPECT_EQ(
          site.call({{data, {4}, "float64"}, {data, {2}, "complex128"}, {&result, {1}, "float64"}}),
          "");
    }
    std::vector<double> expected = {1, 2, 3, 4, 5};
    for (std::size_t i = begin; i < begin + 4; ++i) {
      expected[i] *= 4;
    }
    EXPECT_EQ(memory, expected);
  }
}

TEST(KeptViewsTest, EachCallSiteHasItsOwn) {
  constexpr int kSites = 100;
  std::deque<CallSite> sites;
  for (int i = 0; i < kSites; ++i) {
    sites.emplace_back("AddIfGiven");
  }
  std::vector<float> values(4);
  const auto allocations_of_a_call = [&](CallSite& site, bool has_second) {
    const Operand given = {values.data(), {2, 2}, "float32"};
    const Operand none = {nullptr, {0, 0}, "none"};
    const int64_t before = allocations;
    EXPECT_EQ(site.call({given, has_second ? given : none, given}), "");
    return allocations - before;
  };
  CallSite& first = sites.front();
  allocations_of_a_call(first, false);
  const int64_t without = allocations_of_a_call(first, false);
  EXPECT_GT(allocations_of_a_call(first, true), without) << "a view is made";
  const int64_t with = allocations_of_a_call(first, true);
  // Alternately: every other site has a second input.
  for (int i = 0; i < kSites; ++i) {
    allocations_of_a_call(sites[static_cast<std::size_t>(i)], i % 2 == 0);
  }
  std::vector<int> made_again;
  for (int i = 0; i < kSites; ++i) {
    const int64_t expected = i % 2 == 0 ? with : without;
    if (allocations_of_a_call(sites[static_cast<std::size_t>(i)], i % 2 == 0) != expected) {
      made_again.push_back(i);
    }
  }
  EXPECT_EQ(made_again, std::vector<int>());
}

TEST(KeptViewsTest, OfCallSitesWithoutEndAreNotKept) {
  std::vector<float> values(4);
  const Operand given = {values.data(), {2, 2}, "float32"};
  std::deque<CallSite> sites;  // all alive, so that each has an address of its own
  const auto kept_of_new_sites = [&] {
    const std::size_t before = sites.size();
    for (int i = 0; i < 16384; ++i) {
      sites.emplace_back("Negate");
    }
    const int64_t begin = allocations - frees;
    for (std::size_t i = before; i < sites.size(); ++i) {
      EXPECT_EQ(sites[i].call({given, given}), "");
    }
    return (allocations - frees) - begin;
  };
  const int64_t of_the_first = kept_of_new_sites();  // 16 times as many as are kept
  EXPECT_GT(of_the_first, 0);
  EXPECT_LT(kept_of_new_sites(), of_the_first / 8) << "more is kept for more sites";
}

TEST(KeptViewsTest, AKernelMayCallAnotherOfItsType) {
  for (int times = 0; times < 2; ++times) {
    const Result result =
        kernel("Nest").input<float>({2, 2}, {1, 2, 3, 4}).output<float>({2, 2}).run_here();
    EXPECT_EQ(result.error(), "");
    EXPECT_EQ(result.output<float>(0), (std::vector<float>{2, 3, 4, 5}));
  }
}

TEST(KeptViewsTest, EachThreadHasItsOwn) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(8);
  threads.reserve(wrong.size());
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 50; ++i) {
        const int64_t size = 1 + (i * 7 + t) % 5;
        const std::vector<float> values(static_cast<std::size_t>(size),
                                        static_cast<float>(i * 8 + t));
        Call call = kernel("Copy");
        call.input<float>({size}, values).output<float>({size});
        wrong[static_cast<std::size_t>(t)] += call.run_here().output<float>(0) == values ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, std::vector<int>(8));
}

TEST(KeptViewsTest, AreRightInForkedProcesses) {
  const std::vector<float> values = {1, 2, 3, 4};
  const auto is_right = [&] {
    Call call = kernel("Copy");
    call.input<float>({2, 2}, values).output<float>({2, 2});
    return call.run_here().output<float>(0) == values;
  };
  EXPECT_TRUE(is_right());
  std::vector<pid_t> children(8);
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) {
      _exit(is_right() ? 0 : 1);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

int64_t allocations_of_a_call(const char* name, int inputs) {
  constexpr int kMost = 8;
  const auto function = kernel(name).function();
  float values[4] = {};
  void* params[kMost + 1];
  int ndims[kMost + 1];
  int64_t sizes[] = {2, 2};
  int64_t* shapes[kMost + 1];
  const char* dtypes[kMost + 1];
  for (int i = 0; i <= inputs; ++i) {
    params[i] = values;
    ndims[i] = 2;
    shapes[i] = sizes;
    dtypes[i] = "float32";
  }
  const auto call = [&] { function(inputs + 1, params, ndims, shapes, dtypes, nullptr, nullptr); };
  call();
  const int64_t before = allocations;
  call();
  return allocations - before;
}

TEST(KeptViewsTest, CostNoMemoryFromTheSecondCallOn) {
  EXPECT_EQ(allocations_of_a_call("Nothing", 1), 0);
  EXPECT_EQ(allocations_of_a_call("NothingOfMany", 8), 0);
  EXPECT_GT(allocations_of_a_call("LeakyReluResult", 1), 0);  // the counter counts
}

}  // namespace
