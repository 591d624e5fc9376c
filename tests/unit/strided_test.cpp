// Kernels with strided(): a host tells how inputs lie in memory, before a call.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "table.h"

namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using HostFunction = int(int, void**, int*, int64_t**, const char**, void*, void*);

template <class F>
F* function(const std::string& name) {
  static void* const library = dlopen(TEST_STRIDED, RTLD_LAZY | RTLD_LOCAL);
  return reinterpret_cast<F*>(dlsym(library, name.c_str()));
}

void set_strides(const int64_t* const* strides, int count) {
  function<void(const int64_t* const*, int)>("aten_bridge_set_strides")(strides, count);
}

/// One call in this thread, of operands over the caller's memory.
class Call {
 public:
  explicit Call(const std::string& name) : function_(function<HostFunction>(name)) {}

  Call& input(const Floats& data, Ints sizes, Ints strides = {}) {
    ++inputs_;
    strides_.push_back(std::move(strides));
    return operand("float32", std::move(sizes), const_cast<float*>(data.data()));
  }
  Call& none() {
    ++inputs_;
    strides_.emplace_back();
    return operand("none", {}, nullptr);
  }
  Call& output(Floats& data, Ints sizes) {
    return operand("float32", std::move(sizes), data.data());
  }
  Call& output(Ints& data) {
    return operand("int64", {static_cast<int64_t>(data.size())}, data.data());
  }

  /// The text of its error, or "". `told` of the inputs have strides.
  std::string run(int told) {
    std::vector<const int64_t*> strides;
    for (const Ints& one : strides_) {
      strides.push_back(one.empty() ? nullptr : one.data());
    }
    set_strides(strides.data(), told);
    return run_row_major();
  }
  std::string run() { return run(inputs_); }

  /// The same by a host that tells nothing.
  std::string run_row_major() {
    try {
      function_(static_cast<int>(data_.size()), data_.data(), ndims_.data(), shapes_.data(),
                dtypes_.data(), /*stream=*/nullptr, /*extra=*/nullptr);
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  }

 private:
  Call& operand(const char* dtype, Ints sizes, void* data) {
    sizes_.push_back(std::move(sizes));
    data_.push_back(data);
    ndims_.push_back(static_cast<int>(sizes_.back().size()));
    shapes_.push_back(sizes_.back().data());
    dtypes_.push_back(dtype);
    return *this;
  }

  HostFunction* function_;
  int inputs_ = 0;
  std::deque<Ints> sizes_;
  std::deque<Ints> strides_;
  std::vector<void*> data_;
  std::vector<int> ndims_;
  std::vector<int64_t*> shapes_;
  std::vector<const char*> dtypes_;
};

int64_t address(const Floats& data, std::size_t element = 0) {
  return reinterpret_cast<int64_t>(data.data() + element);
}

TEST(StridedTest, ACallHasTheStridesThatItWasToldAndNoOtherHas) {
  const Floats x = {1, 2, 3, 4, 5, 6};
  Floats y(3);
  for (int times = 0; times < 3; ++times) {  // views are kept from call to call
    Call call("RowSums");
    call.input(x, {3, 2}, {1, 3}).output(y, {3});
    EXPECT_EQ(call.run(), "");
    EXPECT_EQ(y, (Floats{5, 7, 9}));
    EXPECT_EQ(call.run_row_major(), "");
    EXPECT_EQ(y, (Floats{3, 7, 11}));
    EXPECT_EQ(call.run_row_major(), "");
    EXPECT_EQ(y, (Floats{3, 7, 11}));
  }
}

TEST(StridedTest, InputsOfTheSameSizesMayLieInAnyWay) {
  const Floats x = {1, 2, 3, 4, 5, 6};
  Floats y(2);
  const auto sums = [&](Ints strides) {
    EXPECT_EQ(Call("RowSums").input(x, {2, 2}, std::move(strides)).output(y, {2}).run(), "");
    return y;
  };
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(sums({2, 1}), (Floats{3, 7}));
    EXPECT_EQ(sums({1, 2}), (Floats{4, 6}));
    EXPECT_EQ(sums({1, 1}), (Floats{3, 5}));  // they overlap
    EXPECT_EQ(sums({0, 1}), (Floats{3, 3}));  // expanded
    EXPECT_EQ(sums({0, 0}), (Floats{2, 2}));
    EXPECT_EQ(sums({4, 1}), (Floats{3, 11}));
    EXPECT_EQ(sums({}), (Floats{3, 7}));
  }
}

TEST(StridedTest, MemoryIsTheHosts) {
  const Floats x(24);
  Ints place(4);
  Ints none(0);
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(Call("Place").input(x, {2, 3, 2}, {2, 4, 1}).output(place).run(), "");
    EXPECT_EQ(place, (Ints{address(x), 2, 4, 1}));
    EXPECT_EQ(Call("PlaceByState").input(x, {2, 3, 2}, {2, 4, 1}).output(place).run(), "");
    EXPECT_EQ(place, (Ints{address(x), 2, 4, 1}));
    EXPECT_EQ(Call("Place").input(x, {2, 3, 2}).output(place).run(), "");
    EXPECT_EQ(place, (Ints{address(x), 6, 2, 1}));
    EXPECT_EQ(Call("Place").input(x, {2, 0, 2}, {1, 1, 2}).output(place).run(), "");
    EXPECT_EQ(place[0], 0);  // ATen's of a tensor without elements
  }
}

TEST(StridedTest, StridesAreThoseOfTheOperandInTheirPlace) {
  const Floats x(6);
  const Floats number = {1};
  Ints first(3);
  Ints second(3);
  Call call("Places");
  call.input(x, {2, 3}, {1, 2}).input(number, {}).input(x, {6}).input(x, {3, 2}, {1, 3});
  call.output(first).output(second);
  EXPECT_EQ(call.run(), "");
  EXPECT_EQ(first, (Ints{address(x), 1, 2}));
  EXPECT_EQ(second, (Ints{address(x), 1, 3}));
  EXPECT_EQ(call.run(/*told=*/2), "");
  EXPECT_EQ(first, (Ints{address(x), 1, 2}));
  EXPECT_EQ(second, (Ints{address(x), 2, 1}));

  Ints nothing;
  Call without("Places");
  without.none().input(number, {}).input(x, {3, 2}, {1, 3}).output(nothing).output(second);
  EXPECT_EQ(without.run(), "");
  EXPECT_EQ(second, (Ints{address(x), 1, 3}));
}

TEST(StridedTest, AKernelWithoutTheOptionTakesNone) {
  const Floats x(6);
  Ints place(3);
  EXPECT_EQ(Call("PlaceOfRowMajor").input(x, {3, 2}, {1, 3}).output(place).run(), "");
  set_strides(nullptr, 0);
  EXPECT_EQ(place, (Ints{address(x), 2, 1}));
}

TEST(StridedTest, ResultsAreRowMajor) {
  const Floats x = {1, -2, 3, 4, 5, -6};
  Floats y(6);
  EXPECT_EQ(Call("Scaled").input(x, {3, 2}, {1, 3}).output(y, {3, 2}).run(), "");
  EXPECT_EQ(y, (Floats{2, 32, 8, 50, 18, 72}));
  EXPECT_EQ(Call("Positive").input(x, {3, 2}, {1, 3}).output(y, {3, 2}).run(), "");
  EXPECT_EQ(y, (Floats{1, 4, 0, 5, 3, 0}));
  EXPECT_EQ(Call("Same").input(x, {3, 2}, {1, 3}).output(y, {3, 2}).run(), "");
  EXPECT_EQ(y, (Floats{1, 4, -2, 5, 3, -6}));
  EXPECT_EQ(Call("Above").input(x, {3, 2}, {1, 3}).output(y, {4}).run(), "");
  EXPECT_EQ(Floats(y.begin(), y.begin() + 4), (Floats{1, 4, 5, 3}));
}

TEST(StridedTest, AResultInItsInputsMemoryIsRowMajor) {
  Floats x = {1, 2, 3, 4};
  EXPECT_EQ(Call("Same").input(x, {2, 2}, {1, 2}).output(x, {2, 2}).run(), "");
  EXPECT_EQ(x, (Floats{1, 3, 2, 4}));
}

TEST(StridedTest, Gradients) {
  const Floats x = {1, 2, 3, 4, 5, 6};
  const Floats one = {1};
  Floats dx(6);
  Call gradient("ScaledGrad");  // 4x
  gradient.input(x, {3, 2}, {1, 3}).input(one, {3, 2}, {0, 0}).output(dx, {3, 2});
  EXPECT_EQ(gradient.run(), "");
  EXPECT_EQ(dx, (Floats{4, 16, 8, 20, 12, 24}));
}

TEST(StridedTest, ErrorsAreThoseOfOtherKernels) {
  const Floats x(6);
  Floats y(3);
  EXPECT_EQ(Call("RowSums").input(x, {3}, {2}).output(y, {3}).run(),
            "RowSums: input 0 'x': expected rank 2, got float32 [3]");
  EXPECT_EQ(Call("RowSums").input(x, {3, -1}, {1, 3}).output(y, {3}).run(),
            "RowSums: input 0 'x': expected sizes of 0 or more, got float32 [3, -1]");
  EXPECT_EQ(Call("RowSums").input(x, {3, 2}, {1, 3}).output(y, {3}).run(), "");
}

TEST(StridedTest, TheTableSaysSo) {
  const LibraryTable& table = *function<const LibraryTable*()>("aten_bridge_library")();
  const auto description = [&](const std::string& name) {
    return table.description(table.number_of(name));
  };
  const std::string said = R"("meta": true, "strided": true, "gradient": )";
  EXPECT_NE(description("Place").find(said), std::string::npos) << description("Place");
  EXPECT_NE(description("ScaledGrad").find(said), std::string::npos) << description("ScaledGrad");
  EXPECT_EQ(description("PlaceOfRowMajor").find("strided"), std::string::npos);
}

}  // namespace
