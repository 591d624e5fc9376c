// Kernels whose results have sizes that depend on values, in each form in which hosts call them.
#include <aten_bridge/testing.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "jax_frame.h"
#include "table.h"

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Result;

using Ints = std::vector<int64_t>;
using jax_frame::Floats;

constexpr int64_t kColumns = 66;  // dtype, rank, and as many sizes as a tensor can have
constexpr int64_t kFloat32 = 12;  // the bridge's numbers of dtypes
constexpr int64_t kInt64 = 9;

void* library() {
  static void* const opened = dlopen(TEST_UNSIZED, RTLD_LAZY | RTLD_LOCAL);
  return opened;
}

Call unsized(const std::string& name) {
  static const aten_bridge::testing::Library opened(TEST_UNSIZED);
  return opened.call(name);
}

Call in_form(const std::string& name, const std::string& form, const Floats& x) {
  Call call = unsized(name);
  call.attribute("aten_bridge_form", form);
  call.input<float>({static_cast<int64_t>(x.size())}, x);
  return call;
}

/// The first numbers of a row.
Ints row(const Result& result, int64_t index, std::size_t count) {
  const Ints all = result.output<int64_t>(0);
  const auto begin = all.begin() + index * kColumns;
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

/// The library's functions for results that are left by a call for their sizes.
struct Results {
  template <class F>
  static F* function(const char* name) {
    return reinterpret_cast<F*>(dlsym(library(), name));
  }

  void (*set)(void**) = function<void(void**)>("aten_bridge_set_results");
  void (*copy)(const void*, void* const*) =
      function<void(const void*, void* const*)>("aten_bridge_copy_results");
  void (*free)(void*) = function<void(void*)>("aten_bridge_free_results");
};

TEST(DataDependentTest, TheValuesHaveMemoryOfTheirSizes) {
  for (int times = 0; times < 2; ++times) {
    Call call = unsized("Positives");
    call.input<float>({3}, {1, -2, 3}).output<float>({2});
    EXPECT_EQ(call.run().output<float>(0), (Floats{1, 3}));
  }
  for (const int64_t size : {1, 3}) {  // also where there is more
    Call call = unsized("Positives");
    call.input<float>({3}, {1, -2, 3}).output<float>({size});
    EXPECT_EQ(call.run().error(),
              "Positives: output 0: expected float32 [" + std::to_string(size) +
                  "] as out_shape and out_dtype or the run for the sizes say, got float32 [2] from "
                  "the kernel");
  }
}

TEST(DataDependentTest, TheSizesAreARowForEachResult) {
  const Result one = in_form("Positives", "sizes", {1, -2, 3}).output<int64_t>({1, kColumns}).run();
  EXPECT_EQ(row(one, 0, 4), (Ints{kFloat32, 1, 2, 0}));
  const Result two = in_form("Above", "sizes", {1, -2, 3}).output<int64_t>({2, kColumns}).run();
  EXPECT_EQ(row(two, 0, 4), (Ints{kFloat32, 1, 2, 0}));
  EXPECT_EQ(row(two, 1, 5), (Ints{kInt64, 2, 2, 1, 0}));
  const Result other =  // a kernel of the same type
      in_form("Negatives", "sizes", {1, -2, 3}).output<int64_t>({1, kColumns}).run();
  EXPECT_EQ(row(other, 0, 3), (Ints{kFloat32, 1, 1}));
}

TEST(DataDependentTest, TheSizesAreThoseOfMemoryOnTheDevice) {
  for (const bool is_sparse : {false, true}) {
    Call call = in_form("Formless", "sizes", {1, 2});
    call.attribute("is_sparse", is_sparse).output<int64_t>({1, kColumns});
    EXPECT_EQ(call.run().error(),
              std::string("Formless: expected strided results on cpu, got float32 [2] on ") +
                  (is_sparse ? "cpu, which is not strided" : "meta"));
  }
}

TEST(DataDependentTest, ACallForSizesMayLeaveTheResults) {
  Floats x = {3, 1, 2, 4};
  Ints table(kColumns);
  const auto ask = [&] {
    jax_frame::Frame frame(library(), "First");
    frame.text("aten_bridge_form", "sizes").input(x);
    return frame.output(table.data(), {1, kColumns}, jax_frame::xla::kInt64).run();
  };
  const Results results;
  void* kept = nullptr;
  results.set(&kept);
  EXPECT_EQ(ask(), "");
  results.set(nullptr);
  EXPECT_EQ(table[2], 3);
  ASSERT_NE(kept, nullptr);
  x = {0, 0, 0, 0};  // the kernel's result is a view of it
  Floats copied(3);
  void* memory[] = {copied.data()};
  results.copy(kept, memory);
  EXPECT_EQ(copied, (Floats{3, 1, 2}));
  results.free(kept);

  kept = nullptr;
  x = {3, 1, 2, 4};
  EXPECT_EQ(ask(), "");
  EXPECT_EQ(kept, nullptr);
}

TEST(DataDependentTest, ResultsThatAreLeftAreInMemoryOfTheirOwn) {
  Floats x = {3, -1, 2, 4};
  Ints table(2 * kColumns);
  const Results results;
  void* kept = nullptr;
  results.set(&kept);
  jax_frame::Frame frame(library(), "Lent");
  frame.text("aten_bridge_form", "sizes").input(x);
  EXPECT_EQ(frame.output(table.data(), {2, kColumns}, jax_frame::xla::kInt64).run(), "");
  results.set(nullptr);
  ASSERT_NE(kept, nullptr);
  x = {0, 0, 0, 0};
  Floats copied(3);
  Floats begin(3);
  void* memory[] = {copied.data(), begin.data()};
  results.copy(kept, memory);
  EXPECT_EQ(copied, (Floats{3, 2, 4}));
  EXPECT_EQ(begin, (Floats{3, -1, 2}));
  results.free(kept);
}

TEST(DataDependentTest, ResultsThatAreLeftStayAsTheyWereWhereTheKernelChangesThem) {
  Floats x = {3, -1};
  Ints table(kColumns);
  const Results results;
  void* kept = nullptr;
  const auto ask = [&](void** place) {
    jax_frame::Frame frame(library(), "SumOfCalls");
    frame.text("aten_bridge_form", "sizes").input(x);
    results.set(place);
    EXPECT_EQ(frame.output(table.data(), {1, kColumns}, jax_frame::xla::kInt64).run(), "");
    results.set(nullptr);
  };
  ask(&kept);
  ASSERT_NE(kept, nullptr);
  ask(nullptr);
  Floats copied(2);
  void* memory[] = {copied.data()};
  results.copy(kept, memory);
  EXPECT_EQ(copied, (Floats{3, -1}));
  results.free(kept);
}

TEST(DataDependentTest, TheLargestMayHaveTheMemoryOfAnInput) {
  Floats x = {-1, 2, 3};  // donated: the first result's memory too
  Floats rest(3, -1);
  Ints sizes(1);
  Ints sizes_of_rest(1);
  jax_frame::Frame frame(library(), "WithRest");
  frame.text("aten_bridge_form", "padded").input(x).output(x).output(rest);
  frame.output(sizes.data(), {1}, jax_frame::xla::kInt64);
  EXPECT_EQ(frame.output(sizes_of_rest.data(), {1}, jax_frame::xla::kInt64).run(), "");
  EXPECT_EQ(x, (Floats{2, 3, 0}));
  EXPECT_EQ(rest, (Floats{2, 3, 0}));
  EXPECT_EQ(sizes[0], 2);
  EXPECT_EQ(sizes_of_rest[0], 2);
}

TEST(DataDependentTest, TheLargestBeginWithTheResults) {
  const Result padded = in_form("Above", "padded", {1, -2, 3})
                            .output<float>({3})
                            .output<int64_t>({3, 1})
                            .output<int64_t>({1})
                            .output<int64_t>({2})
                            .run();
  EXPECT_EQ(padded.output<float>(0), (Floats{1, 3, 0}));
  EXPECT_EQ(padded.output<int64_t>(1), (Ints{0, 2, 0}));
  EXPECT_EQ(padded.output<int64_t>(2), (Ints{2}));
  EXPECT_EQ(padded.output<int64_t>(3), (Ints{2, 1}));
  EXPECT_EQ(in_form("Positives", "padded", {1, 2, 3})
                .output<float>({2})
                .output<int64_t>({2})
                .run()
                .error(),
            "Positives: output 0: expected float32 [2] or less of it, as out_shape and out_dtype "
            "say, got float32 [3]");
  EXPECT_EQ(in_form("Positives", "padded", {1, 2, 3})
                .output<float>({3})
                .output<int64_t>({2})
                .run()
                .error(),
            "Positives: output 1: expected int64 [1] for the sizes of output 0, got int64 [2]");
}

TEST(DataDependentTest, ChecksAreThoseOfTheInputsAndTheResults) {
  EXPECT_EQ(in_form("First", "sizes", {2, 1}).output<int64_t>({1, kColumns}).run().error(),
            "First: output 0 'begin': expected sizes [3], got float32 [2]");
  Call call = unsized("First");
  call.attribute("aten_bridge_form", std::string("sizes"));
  call.input<float>({1, 1}, {1}).output<int64_t>({1, kColumns});
  EXPECT_EQ(call.run().error(), "First: input 0 'x': expected rank 1, got float32 [1, 1]");
}

TEST(DataDependentTest, NamesOfSizesStandForThoseOfTheInputs) {
  const auto rows = [](const std::string& form) {
    Call call = unsized("Rows");
    call.attribute("aten_bridge_form", form).input<float>({2, 2}, {1, -2, 3, 4});
    return call;
  };
  const std::string wrong =
      "Rows: output 0 'y': expected sizes [-1, C] with C = 2 as in input 0 'x', got float32 [3, 1]";
  EXPECT_EQ(rows("sizes").output<int64_t>({1, kColumns}).run().error(), wrong);
  EXPECT_EQ(rows("padded").output<float>({4, 2}).output<int64_t>({2}).run().error(), wrong);
  Call right = unsized("Rows");
  right.attribute("aten_bridge_form", std::string("sizes")).input<float>({2, 1}, {1, -2});
  EXPECT_EQ(row(right.output<int64_t>({1, kColumns}).run(), 0, 4), (Ints{kFloat32, 2, 1, 1}));
}

TEST(DataDependentTest, ErrorsNameWhatTheKernelHas) {
  const std::string aten = "First: start (0) + length (9) exceeds dimension size (2).";
  EXPECT_EQ(in_form("First", "sizes", {9, 1}).output<int64_t>({1, kColumns}).run().error(),
            aten + " (input 0 'x': float32 [2])");
  EXPECT_EQ(
      in_form("First", "padded", {3, 1, 2}).output<float>({2}).output<int64_t>({2}).run().error(),
      "First: output 0 'begin': expected float32 [2] or less of it, as out_shape and "
      "out_dtype say, got float32 [3]");
  EXPECT_EQ(
      in_form("First", "padded", {3, 1, 2}).output<float>({3}).output<int64_t>({2}).run().error(),
      "First: output 1: expected int64 [1] for the sizes of output 0 'begin', got int64 [2]");
}

TEST(DataDependentTest, XlaAsksInTheSameWay) {
  Floats x = {1, -2, 3};
  Floats y(2);
  Ints table(kColumns);
  Ints sizes(1);
  Floats padded(3, -1);
  for (int times = 0; times < 2; ++times) {
    jax_frame::Frame values(library(), "Positives");
    EXPECT_EQ(values.input(x).output(y).run(), "");
    EXPECT_EQ(y, (Floats{1, 3}));
    jax_frame::Frame told(library(), "Positives");
    told.text("aten_bridge_form", "sizes").input(x);
    EXPECT_EQ(told.output(table.data(), {1, kColumns}, jax_frame::xla::kInt64).run(), "");
    EXPECT_EQ(table[2], 2);
    jax_frame::Frame largest(library(), "Positives");
    largest.text("aten_bridge_form", "padded").input(x).output(padded);
    EXPECT_EQ(largest.output(sizes.data(), {1}, jax_frame::xla::kInt64).run(), "");
    EXPECT_EQ(padded, (Floats{1, 3, 0}));
  }
}

TEST(DataDependentTest, TheTableSaysSo) {
  using GetTable = const LibraryTable*();
  const LibraryTable& table = *Results::function<GetTable>("aten_bridge_library")();
  const auto description = [&](const std::string& name) {
    return table.description(table.number_of(name));
  };
  const std::string said = R"("meta": false, "data_dependent": true, "gradient": false)";
  EXPECT_NE(description("Positives").find(said), std::string::npos) << description("Positives");
  EXPECT_EQ(description("PositivesGrad").find("data_dependent"), std::string::npos);
  const int64_t size = 3;
  const PythonInput input{"float32", 1, &size};
  const PythonQuestion question{"out", "the call", true, &input, 1, nullptr, 0};
  int status = 0;
  EXPECT_STREQ(table.infer(table.number_of("Positives"), &question, &status),
               "Positives: expected an operator whose results have sizes that follow from those of "
               "its inputs, got one whose sizes depend on values");
  EXPECT_EQ(status, 13);
}

}  // namespace
