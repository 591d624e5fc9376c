// The simulated host itself, over functions written here: no PyTorch, no bridge.
#include <aten_bridge/testing.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Library;
using aten_bridge::testing::Result;

// What the last call of `record` saw.
struct Seen {
  int nparam;
  std::vector<void*> params;
  std::vector<int> ndims;
  std::vector<int64_t> first_sizes;  // 0 for a null shape
  std::vector<std::string> dtypes;
  void* stream;
  void* extra;
  std::thread::id thread;
} seen;

int record(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
           void* stream, void* extra) {
  const int described = nparam - 1;  // one workspace
  std::vector<int64_t> first_sizes;
  first_sizes.reserve(described);
  for (int i = 0; i < described; ++i) {
    first_sizes.push_back(shapes[i] == nullptr ? 0 : shapes[i][0]);
  }
  seen = {nparam,
          std::vector<void*>(params, params + nparam),
          std::vector<int>(ndims, ndims + described),
          first_sizes,
          std::vector<std::string>(dtypes, dtypes + described),
          stream,
          extra,
          std::this_thread::get_id()};
  return 0;
}

TEST(SimulatedHostTest, CallsAsTheRealHostDoes) {
  Call call(&record);
  call.input<float>({2, 1}, {1, 2})
      .input<int64_t>({}, {3})
      .input_none()
      .input<float>({0}, {})
      .input_again(0)
      .output<double>({2})
      .workspace(10);
  EXPECT_EQ(call.run().error(), "");
  EXPECT_EQ(seen.nparam, 7);
  EXPECT_EQ(seen.ndims, (std::vector<int>{2, 0, 0, 1, 2, 1}));
  EXPECT_EQ(seen.first_sizes, (std::vector<int64_t>{2, 0, 0, 0, 2, 2}));
  EXPECT_EQ(seen.dtypes, (std::vector<std::string>{"float32", "int64", "none", "float32", "float32",
                                                   "float64"}));
  EXPECT_EQ(seen.params[2], nullptr);
  EXPECT_NE(seen.params[3], nullptr) << "an empty tensor has a pointer";
  EXPECT_EQ(seen.params[4], seen.params[0]);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(seen.params[5]) % 64, 16);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(seen.params[6]) % 64, 16);
  EXPECT_EQ(seen.stream, nullptr);
  EXPECT_NE(seen.extra, nullptr);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
}

TEST(SimulatedHostTest, RunHereStaysInTheCallingThread) {
  Call call(&record);
  call.workspace(1).run_here();
  EXPECT_EQ(seen.thread, std::this_thread::get_id());
}

int do_nothing(int, void**, int*, int64_t**, const char**, void*, void*) { return 0; }
int return_seven(int, void**, int*, int64_t**, const char**, void*, void*) { return 7; }
int throw_text(int, void**, int*, int64_t**, const char**, void*, void*) {
  throw std::runtime_error("text");
}

TEST(SimulatedHostTest, OutputsThatAreNotWrittenAreSeen) {
  const Result result = Call(&do_nothing).output<std::int8_t>({2}).run();
  EXPECT_EQ(result.output<std::int8_t>(0), (std::vector<std::int8_t>{-1, -1}));
}

TEST(SimulatedHostTest, ReturnCodesAndExceptionsComeBack) {
  const Result returned = Call(&return_seven).run();
  EXPECT_FALSE(returned.ok());
  EXPECT_EQ(returned.code(), 7);
  EXPECT_EQ(returned.error(), "return code 7");
  const Result thrown = Call(&throw_text).run();
  EXPECT_FALSE(thrown.ok());
  EXPECT_EQ(thrown.code(), 0);
  EXPECT_EQ(thrown.error(), "text");
}

// AddressSanitizer stops the process at the write itself.
#ifndef ATEN_BRIDGE_TESTING_ASAN
int write_behind(int, void** params, int*, int64_t**, const char**, void*, void*) {
  std::memset(params[0], 0, 5);
  return 0;
}
int write_in_front(int, void** params, int*, int64_t**, const char**, void*, void*) {
  static_cast<char*>(params[0])[-1] = 0;
  return 0;
}

TEST(SimulatedHostTest, WritesBesideABufferAreFound) {
  const auto message_of = [](Call& call) -> std::string {
    try {
      call.run();
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "";
  };
  Call behind(&write_behind);
  behind.output<float>({1});
  EXPECT_EQ(message_of(behind),
            "the kernel wrote to memory that is not its own: output 0, behind its last byte");
  Call in_front(&write_in_front);
  in_front.input<float>({1}, {1});
  EXPECT_EQ(message_of(in_front),
            "the kernel wrote to memory that is not its own: input 0, in front of its first byte");
}
#endif

TEST(SimulatedHostTest, MistakesInTheDescriptionAreErrors) {
  EXPECT_THROW(Call(&do_nothing).input<float>({2}, {1}), std::logic_error);
  const Result result = Call(&do_nothing).output<float>({1}).run();
  EXPECT_THROW(result.output<double>(0), std::logic_error);
  EXPECT_THROW(result.output<float>(1), std::out_of_range);
}

TEST(SimulatedHostTest, MissingLibrariesAndFunctionsAreErrors) {
  try {
    Library library("./no_such_library.so");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "./no_such_library.so: cannot open shared object file: No such file or directory");
  }
  EXPECT_THROW(Library("libc.so.6").call("no_such_function"), std::runtime_error);
}

}  // namespace
