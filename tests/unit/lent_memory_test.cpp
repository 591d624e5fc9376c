// A kernel that keeps memory of the host's past the call meets an error, in that call and in those
// that read what it kept.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "libraries.h"

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Result;

using Floats = std::vector<float>;

Result keep(const std::string& how, const std::string& dtype = "float32") {
  Call call = kernel("Keep");
  call.attribute("how", how);
  for (int i = 0; i < 3; ++i) {
    if (dtype == "float32") {
      call.input<float>({1, 2}, {1, 2});
    } else {
      call.input_bytes(dtype, {2}, std::vector<unsigned char>(32, 1));
    }
  }
  return call.output<float>({1, 2}).run_here();
}

std::string kept(const std::string& operand) {
  return "Keep: " + operand +
         ": expected no reference to this tensor after the call, because its memory belongs to the "
         "host, got one that the kernel keeps (the tensor or a view of it); keep a clone() instead";
}

const std::string operands_text =
    " (input 0: float32 [1, 2]; input 1: float32 [1, 2]; input 2: float32 [1, 2]; "
    "output 0: float32 [1, 2])";

const std::string read_error =
    "Keep: expected a tensor of this call, got one that the kernel kept from an earlier call, "
    "whose memory belongs to the host; keep a clone() instead" +
    operands_text;

class LentMemoryTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(keep("nothing").error(), ""); }
};

TEST_F(LentMemoryTest, AKernelThatKeepsAnInputIsRefused) {
  for (const char* how : {"input", "slice", "contiguous", "detached", "input"}) {
    EXPECT_EQ(keep(how).error(), kept("input 0")) << how;
  }
  EXPECT_EQ(keep("of the list").error(), kept("input 2"));
}

TEST_F(LentMemoryTest, AKernelThatKeepsAStorageIsRefused) {
  EXPECT_EQ(keep("storage").error(), kept("input 0"));
}

TEST_F(LentMemoryTest, AKernelThatKeepsAnOutputIsRefused) {
  EXPECT_EQ(keep("output").error(), kept("output 0"));
}

TEST_F(LentMemoryTest, AllOperandsThatAreKeptAreNamed) {
  EXPECT_EQ(keep("several").error(), kept("input 0") + '\n' + kept("output 0"));
}

// Each call's memory is checked, and copied where it is not aligned.
TEST_F(LentMemoryTest, AComplex128ThatIsKeptIsRefused) {
  EXPECT_EQ(keep("input", "complex128").error(), kept("input 0"));
}

#if PYTORCH_MINOR >= 6  // an older one has no such errors
TEST_F(LentMemoryTest, WhatWasKeptCannotBeRead) {
  for (const char* how : {"input", "slice", "output"}) {
    EXPECT_NE(keep(how).error(), "");
    EXPECT_EQ(keep("read").error(), read_error) << how;
    EXPECT_EQ(keep("read").error(), read_error) << how;
  }
  EXPECT_NE(keep("storage").error(), "");
  EXPECT_EQ(keep("read storage").error(), read_error);
}

TEST_F(LentMemoryTest, WhatAKernelThatThrewHasKeptCannotBeRead) {
  EXPECT_EQ(keep("throw").error(), "Keep: on purpose" + operands_text);
  EXPECT_EQ(keep("read").error(), read_error);
}
#endif

TEST_F(LentMemoryTest, WhatIsTheKernelsOwnMayBeKept) {
  for (const char* how : {"clone", "another's memory", "own memory", "weak"}) {
    EXPECT_EQ(keep(how).error(), "") << how;
  }
  EXPECT_EQ(keep("own memory").error(), "");
  const Result result = keep("read");
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{1, 1}));
}

TEST_F(LentMemoryTest, AThreadThatHasDoneItsWorkKeepsNothing) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(keep("thread").error(), "");
  }
}

TEST_F(LentMemoryTest, AReturningKernelTellsItsStatus) {
  Call call = returning_kernel("Keep");
  call.attribute("how", "input").input<float>({1}, {1}).output<float>({1});
  EXPECT_EQ(call.run_here().code(), 7);
  call.attribute("how", "nothing");
  EXPECT_EQ(call.run_here().error(), "");
}

}  // namespace
