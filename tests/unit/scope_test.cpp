// The caller's state: a kernel finds the same surroundings whatever the host's thread has set, and
// the host finds its own back.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "arithmetic.h"
#include "libraries.h"

namespace {

using aten_bridge::testing::Call;

// Fields of the kernel State.
enum Field { kGradMode, kInferenceMode, kRecordsGraph, kThreads, kFields };

std::vector<int64_t> state_inside() {
  const auto result = kernel("State").input<float>({1}, {1}).output<int64_t>({kFields}).run_here();
  EXPECT_EQ(result.error(), "");
  return result.output<int64_t>(0);
}

TEST(ScopeTest, KernelRunsBelowAutograd) {
  EXPECT_EQ(state_inside()[kRecordsGraph], 0);
  EXPECT_EQ(state_inside()[kInferenceMode], 0);
}

TEST(ScopeTest, GradModeIsTheCallers) {
  EXPECT_EQ(state_inside()[kGradMode], 1);
  const at::NoGradGuard guard;
  EXPECT_EQ(state_inside()[kGradMode], 0);
}

TEST(ScopeTest, InferenceModeOfTheCallerIsLeftAndEnteredAgain) {
  const c10::InferenceMode guard;
  EXPECT_EQ(state_inside()[kInferenceMode], 0);
  EXPECT_TRUE(c10::InferenceMode::is_enabled());

  Call call = kernel("Describe");
  const auto described = call.input<float>({1}, {1}).output<int64_t>({7}).run_here();
  EXPECT_EQ(described.output<int64_t>(0)[4], 0) << "is_inference";
}

TEST(ScopeTest, ParallelForOfAKernelsOwnSourceUsesAllThreads) {
  const auto result = kernel("ParallelChunks").output<int64_t>({2}).run_here();
  EXPECT_EQ(result.error(), "");
  const std::vector<int64_t> found = result.output<int64_t>(0);
  EXPECT_EQ(found[0], found[1]);
}

// A gradient kernel records its graph whatever the thread had set, and leaves that as it was.
void expect_gradient_and_the_same_state() {
  const bool grad_mode = at::GradMode::is_enabled();
  const bool inference = c10::InferenceMode::is_enabled();
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  for (const char* name : {"CubeGrad", "ThrowsGrad"}) {
    Call call = graded(name);
    call.input<float>({1}, {2}).input<float>({1}, {1}).output<float>({1});
    const auto result = call.run_here();
    if (result.ok()) {
      EXPECT_EQ(result.output<float>(0), std::vector<float>{12});
    }
    EXPECT_EQ(result.ok(), std::string(name) == "CubeGrad");
    EXPECT_EQ(at::GradMode::is_enabled(), grad_mode);
    EXPECT_EQ(c10::InferenceMode::is_enabled(), inference);
    EXPECT_EQ(c10::impl::tls_local_dispatch_key_set().included_, keys.included_);
    EXPECT_EQ(c10::impl::tls_local_dispatch_key_set().excluded_, keys.excluded_);
  }
}

TEST(ScopeTest, GradientKernelRecordsWhateverTheCallerHasSet) {
  expect_gradient_and_the_same_state();
  {
    const at::NoGradGuard guard;
    expect_gradient_and_the_same_state();
  }
  {
    const c10::InferenceMode guard;
    expect_gradient_and_the_same_state();
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  expect_gradient_and_the_same_state();
}

TEST(ScopeTest, AutocastOfTheCallerIsLeft) {
  c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::AutocastCPU, false);
  Call call = kernel("MatMul");
  const auto result = call.input<float>({1, 1}, {3}).output<float>({1, 1}).run_here();
  const bool excluded = c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastCPU);
  c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::AutocastCPU, true);  // as at first
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), std::vector<float>{9});
  EXPECT_FALSE(excluded);
}

// Autograd's, of this thread.
std::vector<bool> modes() {
  const c10::AutogradState& state = c10::AutogradState::get_tls_state();
  return {state.get_grad_mode(), state.get_inference_mode(), state.get_fw_grad_mode(),
          state.get_multithreading_enabled(), state.get_view_replay_enabled()};
}

class RestoringTest : public testing::TestWithParam<const char*> {};

TEST_P(RestoringTest, StateAfterTheCallIsThatBefore) {
  for (const bool inference : {false, true}) {
    const c10::InferenceMode guard(inference);
    const std::vector<bool> modes_before = modes();
    const int threads = at::get_num_threads();
    auto keys = c10::impl::tls_local_dispatch_key_set();  // raw_repr() was not const in PyTorch 2.1
    const ThreadArithmetic arithmetic;
    const std::string error =
        kernel(GetParam()).input<float>({1}, {1}).output<float>({1}).run_here().error();
    const std::string name = GetParam();
    EXPECT_EQ(error.empty(), name == "Copy" || name == "ChangeState") << error;
    EXPECT_TRUE(ThreadArithmetic() == arithmetic);
    EXPECT_EQ(modes(), modes_before);
    EXPECT_EQ(at::get_num_threads(), threads);
    EXPECT_EQ(c10::impl::tls_local_dispatch_key_set().included_.raw_repr(),
              keys.included_.raw_repr());
    EXPECT_EQ(c10::impl::tls_local_dispatch_key_set().excluded_.raw_repr(),
              keys.excluded_.raw_repr());
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, RestoringTest,
                         testing::Values("Copy", "ThrowAten", "ThrowInt", "ChangeState",
                                         "ChangeStateAndThrow"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ScopeTest, SettingsOfTheWholeProcessStayAsAKernelSetThem) {
  at::Context& process = at::globalContext();
  ASSERT_FALSE(process.deterministicAlgorithms());
  const auto result = kernel("ChangeProcess").input<float>({1}, {1}).output<float>({1}).run_here();
  const bool is_deterministic = process.deterministicAlgorithms();
  process.setDeterministicAlgorithms(false, /*warn_only=*/false);
  EXPECT_EQ(result.error(), "");
  EXPECT_TRUE(is_deterministic);
}

}  // namespace
