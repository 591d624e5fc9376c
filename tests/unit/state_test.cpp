// State that a kernel keeps over its calls, and workspaces.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "typed.h"

namespace {

using aten_bridge::testing::detail::Extra;
using aten_bridge::testing::detail::Value;

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Bytes = std::vector<std::size_t>;

//===--- state ---===//

Result accumulate(Call& call, const Floats& values) {
  const auto size = static_cast<int64_t>(values.size());
  return call.clear_operands().input<float>({size}, values).output<float>({1}).run();
}

TEST(StateTest, IsKeptOverCallsOfAnyShape) {
  Call call = typed("Accumulate");
  call.attribute("start", 100.0);
  EXPECT_EQ(accumulate(call, {1}).output<float>(0), Floats{101});
  EXPECT_EQ(accumulate(call, {2, 3}).output<float>(0), Floats{106});
  EXPECT_EQ(accumulate(call, {}).output<float>(0), Floats{106});
}

TEST(StateTest, IsItsOwnInEachInstance) {
  Call first = typed("Accumulate");
  Call second = typed("Accumulate");
  EXPECT_EQ(accumulate(first, {1}).output<float>(0), Floats{1});
  EXPECT_EQ(accumulate(second, {2}).output<float>(0), Floats{2});
  EXPECT_EQ(accumulate(first, {3}).output<float>(0), Floats{4});
}

TEST(StateTest, IsMadeForEachCallInAHostWithoutInit) {
  Call call = typed("Accumulate");
  call.without_init();
  EXPECT_EQ(accumulate(call, {1}).output<float>(0), Floats{1});
  EXPECT_EQ(accumulate(call, {2}).output<float>(0), Floats{2});
}

TEST(StateTest, IsMadeFromAttributesAndTheFirstCallsInputs) {
  Call call = typed("FirstCall");
  call.attribute("count", 3).input<float>({2, 1}, {1, 2}).input_none().input_number(5);
  EXPECT_EQ(printed(call.output<std::uint8_t>({128}).run()),
            "\"first\" 3 \"Float[2, 1] without data;None;Long[] without data;\" 5");
  call.clear_operands().input<int64_t>({}, {1}).input<float>({0}, {}).input_number(6);
  EXPECT_EQ(printed(call.output<std::uint8_t>({128}).run()),
            "\"first\" 3 \"Float[2, 1] without data;None;Long[] without data;\" 6");
}

#if PYTORCH_MINOR >= 6  // up to 2.4 the data is null, and nobody is told
TEST(StateTest, WhatMakesItCannotTouchData) {
  for (const std::string name : {"StateReads", "StateWrites"}) {
    Call call = typed(name);
    call.input<float>({2}, {1, 2}).output<float>({2});
    EXPECT_EQ(call.run().error(),
              name +
                  ": expected a state that is made from the shapes and dtypes of the inputs, got a "
                  "constructor that touches a tensor's data; read it in operator()");
  }
}
#endif

TEST(StateTest, ThatCannotBeMadeIsTriedAgainAtTheNextCall) {
  Call call = typed("ThrowsAtFirst");
  call.input<float>({1}, {1}).output<int64_t>({1});
  EXPECT_EQ(call.run().error(),
            "ThrowsAtFirst: there is no such file (input 0: float32 [1]; output 0: int64 [1])");
  const Ints attempts = call.run().output<int64_t>(0);
  EXPECT_EQ(attempts[0] % 2, 0);
  EXPECT_EQ(call.run().output<int64_t>(0), attempts) << "made once";
}

int64_t alive() {
  Call call = typed("Alive");
  return call.output<int64_t>({}).run().output<int64_t>(0)[0];
}

TEST(StateTest, IsMadeWithTheFirstCallAndDestroyedWithItsInstance) {
  ASSERT_EQ(alive(), 0);
  {
    Call first = typed("Counted");
    first.input<float>({1}, {1}).output<int64_t>({1});
    EXPECT_EQ(alive(), 0);
    EXPECT_EQ(first.run().output<int64_t>(0), Ints{7});
    EXPECT_EQ(alive(), 1);
    EXPECT_EQ(first.run().output<int64_t>(0), Ints{7});
    EXPECT_EQ(alive(), 1);
    Call second = first;
    EXPECT_EQ(second.attribute("number", 8).run().output<int64_t>(0), Ints{8});
    EXPECT_EQ(alive(), 2);
  }
  EXPECT_EQ(alive(), 0);
  Call call = typed("Counted");
  call.without_init().input<float>({1}, {1}).output<int64_t>({1});
  EXPECT_EQ(call.run().output<int64_t>(0), Ints{7});
  EXPECT_EQ(alive(), 0);
}

TEST(StateTest, InstanceWithoutACallHasNone) {
  Extra extra;
  float x = 0;
  HandCall call;
  call.operand(&x, {}, "float32").operand(&x, {}, "float32");
  ASSERT_EQ(call.init("Counted", &extra), 0);
  EXPECT_NE(extra.kernel_data, nullptr);
  EXPECT_EQ(alive(), 0);
}

// What two threads that call one instance say of each other.
Ints meet(const char* name, int64_t milliseconds) {
  Extra extra({{"milliseconds", Value(milliseconds)}});
  Ints met(2, -1);
  HandCall calls[2];
  for (int i = 0; i < 2; ++i) {
    calls[i].operand(&met[i], {}, "int64");
  }
  EXPECT_EQ(calls[0].init(name, &extra), 0);
  std::thread other([&] { EXPECT_EQ(calls[1].run(name, &extra), ""); });
  EXPECT_EQ(calls[0].run(name, &extra), "");
  other.join();
  return met;
}

TEST(StateTest, IsUsedByTwoThreadsAtATimeWhereItsOperatorIsConst) {
  EXPECT_EQ(meet("ConstMeeting", 10'000), (Ints{1, 1}));
}

TEST(StateTest, IsUsedByOneThreadAtATimeWhereItsOperatorIsNotConst) {
  EXPECT_EQ(meet("MutableMeeting", 100), (Ints{0, 0}));
}

//===--- workspaces ---===//

// A call of Workspaces, which has 5 floats and `each` int64_t for each element of its input.
class WorkspaceTest : public testing::Test {
 protected:
  void set_elements(int64_t elements) {
    call = HandCall();
    call.operand(input, {elements}, "float32").operand(found, {4}, "int64");
  }

  // What the kernel found, once it is called with the test's memory.
  Ints run() {
    call.workspace(constant).workspace(computed);
    EXPECT_EQ(call.run("Workspaces", &extra), "");
    return {found, found + 4};
  }

  static int64_t address(const void* data) { return reinterpret_cast<int64_t>(data); }

  Extra extra{{{"aten_bridge_counted", Value(true)}}};
  HandCall call;
  float input[8] = {};
  int64_t found[4] = {};
  float constant[5] = {};
  int64_t computed[6] = {};
};

TEST_F(WorkspaceTest, SizesAreAskedOfTheHost) {
  set_elements(2);
  ASSERT_EQ(call.init("Workspaces", &extra), 0);
  EXPECT_EQ(extra.workspaces, (Bytes{5 * sizeof(float), 6 * sizeof(int64_t)}));
}

TEST_F(WorkspaceTest, SizesFollowAttributes) {
  Extra with_attribute({{"each", Value(4)}, {"aten_bridge_counted", Value(true)}});
  set_elements(2);
  ASSERT_EQ(call.init("Workspaces", &with_attribute), 0);
  EXPECT_EQ(with_attribute.workspaces, (Bytes{5 * sizeof(float), 8 * sizeof(int64_t)}));
}

TEST_F(WorkspaceTest, MemoryIsTheHosts) {
  set_elements(2);
  ASSERT_EQ(call.init("Workspaces", &extra), 0);
  EXPECT_EQ(run(), (Ints{address(constant), 5, address(computed), 6}));
  EXPECT_EQ(constant[4], 1);
  EXPECT_EQ(computed[5], 2);
}

TEST_F(WorkspaceTest, MemoryIsTheHostsWhereItIsLargerThanNeeded) {
  set_elements(2);
  ASSERT_EQ(call.init("Workspaces", &extra), 0);
  set_elements(1);
  EXPECT_EQ(run(), (Ints{address(constant), 5, address(computed), 3}));
  EXPECT_EQ(computed[3], 0) << "behind the elements that were asked for";
}

TEST_F(WorkspaceTest, MemoryIsPytorchsWhereTheHostsIsTooSmall) {
  set_elements(2);
  ASSERT_EQ(call.init("Workspaces", &extra), 0);
  set_elements(3);
  const Ints grown = run();
  EXPECT_EQ((Ints{grown[0], grown[1], grown[3]}), (Ints{address(constant), 5, 9}));
  EXPECT_NE(grown[2], address(computed));
  EXPECT_EQ(grown[2] % 64, 0);
  EXPECT_EQ(computed[0], 0);
}

TEST_F(WorkspaceTest, MemoryIsPytorchsWhereInitDoesNotKnowTheShape) {
  for (const Ints& unknown : {Ints{-1}, Ints{-1, -1}, Ints{-2}}) {
    Extra without({{"aten_bridge_counted", Value(true)}});
    call = HandCall();
    call.operand(input, unknown, "float32").operand(found, {4}, "int64");
    ASSERT_EQ(call.init("Workspaces", &without), 0);
    EXPECT_EQ(without.workspaces, Bytes{});
    EXPECT_NE(without.kernel_data, nullptr) << "the attributes";

    set_elements(2);
    EXPECT_EQ(call.run("Workspaces", &without), "");
    EXPECT_EQ(found[1], 5);
    EXPECT_EQ(found[3], 6);
    EXPECT_EQ(found[0] % 64, 0);
    EXPECT_EQ(found[2] % 64, 0);
  }
}

TEST_F(WorkspaceTest, MemoryIsPytorchsWhereTheHostHasNone) {
  set_elements(2);
  ASSERT_EQ(call.init("Workspaces", &extra), 0);
  call.workspace(nullptr).workspace(computed);
  EXPECT_EQ(call.run("Workspaces", &extra), "");
  EXPECT_NE(found[0], 0);
  EXPECT_EQ(found[2], address(computed));
}

TEST_F(WorkspaceTest, InitWithoutArraysOrWithARankThatIsNoneAsksForNoMemory) {
  const auto init = typed_function<aten_bridge::testing::InitFunction>("WorkspacesInit");
  int64_t size = 2;
  int64_t* shape = &size;
  const char* dtype = "float32";
  int rank = 1;
  int wrong_rank = -1;
  EXPECT_EQ(init(nullptr, &shape, &dtype, &extra), 0);
  EXPECT_EQ(init(&rank, nullptr, &dtype, &extra), 0);
  EXPECT_EQ(init(&rank, &shape, nullptr, &extra), 0);
  EXPECT_EQ(init(&wrong_rank, &shape, &dtype, &extra), 0);
  EXPECT_EQ(extra.workspaces, Bytes{});
  EXPECT_EQ(init(&rank, &shape, &dtype, &extra), 0);
  EXPECT_EQ(extra.workspaces, (Bytes{5 * sizeof(float), 6 * sizeof(int64_t)}));
}

TEST_F(WorkspaceTest, InputsAreCountedOnlyWhereTheAttributeIsTrue) {
  Extra uncounted({{"aten_bridge_counted", Value(false)}});
  set_elements(2);
  ASSERT_EQ(call.init("Workspaces", &uncounted), 0);
  EXPECT_EQ(uncounted.workspaces, Bytes{});
}

TEST_F(WorkspaceTest, InitIsGivenNoDtype) {
  Extra counted({{"aten_bridge_counted", Value(true)}});
  call = HandCall();
  call.operand(input, {2}, nullptr).operand(found, {4}, "int64");
  ASSERT_EQ(call.init("Workspaces", &counted), 0);
  EXPECT_EQ(counted.workspaces, Bytes{});
}

// Init has no count of the inputs, and must not read beyond them.
TEST_F(WorkspaceTest, MemoryIsPytorchsWhereNobodyHasCountedTheInputs) {
  Extra uncounted;
  set_elements(2);
  ASSERT_EQ(call.init("Workspaces", &uncounted), 0);
  EXPECT_EQ(uncounted.workspaces, Bytes{});
  EXPECT_EQ(call.run("Workspaces", &uncounted), "");
  EXPECT_EQ(found[3], 6);
}

TEST_F(WorkspaceTest, IsAlignedForItsType) {
  Call simulated = typed("AlignedWorkspace");
  simulated.attribute("aten_bridge_counted", true).output<int64_t>({2});
  const Ints in_host = simulated.run().output<int64_t>(0);
  EXPECT_EQ(in_host[0] % 256, 0);
  EXPECT_EQ(in_host[1], 2);
  const Ints in_pytorch = simulated.without_init().run().output<int64_t>(0);
  EXPECT_EQ(in_pytorch[0] % 256, 0);
  EXPECT_EQ(in_pytorch[1], 2);
}

TEST_F(WorkspaceTest, MemoryIsPytorchsInAHostWithoutWorkspaces) {
  set_elements(2);
  EXPECT_EQ(call.run("Workspaces", nullptr), "");
  EXPECT_EQ(found[1], 5);
  EXPECT_EQ(found[3], 6);
}

TEST_F(WorkspaceTest, AreWhereTheSimulatedHostPutsThem) {
  Call simulated = typed("Workspaces");
  simulated.attribute("aten_bridge_counted", true);
  const Result result = simulated.input<float>({2}, {1, 2}).output<int64_t>({4}).run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<int64_t>(0)[3], 6);
  EXPECT_EQ(result.output<int64_t>(0)[0] % 64, 16);
}

TEST_F(WorkspaceTest, KernelWithoutAttributesHasThemToo) {
  Call call_of_constant = typed("WorkspaceOfAConstant");
  call_of_constant.output<int64_t>({2});
  EXPECT_EQ(call_of_constant.run().output<int64_t>(0), (Ints{0, 3}));
  call_of_constant.clear_operands().output<int64_t>({2});
  EXPECT_EQ(Call(call_of_constant).without_init().run().output<int64_t>(0), (Ints{0, 3}));
  Extra of_constant({{"aten_bridge_counted", Value(true)}});
  HandCall by_hand;
  by_hand.operand(found, {2}, "int64");
  ASSERT_EQ(by_hand.init("WorkspaceOfAConstant", &of_constant), 0);
  EXPECT_EQ(of_constant.workspaces, Bytes{24});
  EXPECT_EQ(of_constant.kernel_data, nullptr);
}

TEST_F(WorkspaceTest, SizesThatCannotBeAreErrors) {
  const auto error = [](const char* name, const Floats& values) {
    Call simulated = typed(name);
    simulated.input<float>({static_cast<int64_t>(values.size())}, values).output<float>({1});
    return simulated.run().error();
  };
  EXPECT_EQ(error("NegativeWorkspace", {1, 2, 3, 4, 5}), "");
  EXPECT_EQ(error("NegativeWorkspace", {1, 2, 3, 4}), "") << "of no element";
  EXPECT_EQ(error("NegativeWorkspace", {1, 2}),
            "NegativeWorkspace: workspace 0: expected a size from 0 to 2^63 bytes, got -2 "
            "elements");
  EXPECT_EQ(error("HugeWorkspace", {1}),
            "HugeWorkspace: workspace 0: expected a size from 0 to 2^63 bytes, got "
            "2305843009213693952 elements");
}

TEST_F(WorkspaceTest, AtChecksTheIndex) {
  const auto at = [](int64_t index) {
    Call simulated = typed("WorkspaceAt");
    return simulated.input_number(index).output<float>({1}).run();
  };
  EXPECT_EQ(at(2).output<float>(0), Floats{7});
  EXPECT_EQ(at(3).error(),
            "WorkspaceAt: expected an index below 3, got 3 (input 0: int64 []; output 0: float32 "
            "[1])");
  EXPECT_EQ(at(-1).error(),
            "WorkspaceAt: expected an index below 3, got 18446744073709551615 (input 0: int64 []; "
            "output 0: float32 [1])");
}

TEST_F(WorkspaceTest, SizeMayFollowTheNumberOfInputs) {
  for (const int64_t count : {0, 1, 3}) {
    Call simulated = typed("WorkspaceOfAList");
    for (int64_t i = 0; i < count; ++i) {
      simulated.input<float>({1}, {1});
    }
    EXPECT_EQ(simulated.output<int64_t>({}).run().output<int64_t>(0), Ints{count});
  }
}

}  // namespace
