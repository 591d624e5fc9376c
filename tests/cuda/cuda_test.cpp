// Kernels for CUDA through the simulated host, on a GPU or on the fake runtime. The tests
// called CudaCall do copies only; those called CudaOperators have ATen's operators and kernels of
// their own.
#include <aten_bridge/testing_cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "jax_frame.h"

namespace {

using aten_bridge::testing::Call;
using aten_bridge::testing::Cuda;
using aten_bridge::testing::CudaGraph;
using aten_bridge::testing::HostFunction;
using aten_bridge::testing::Library;
using aten_bridge::testing::Result;
using Doubles = std::vector<double>;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Library& cuda_library() {
  static Library library(TEST_CUDA);
  return library;
}
Library& typed_library() {
  static Library library(TEST_CUDA_TYPED);
  return library;
}
Library& tutorial_library() {
  static Library library(TEST_CUDA_TUTORIAL);
  return library;
}
Library& cpu_library() {
  static Library library(TEST_KERNELS);
  return library;
}

bool state_is_default() {
  void* library = dlopen(TEST_CUDA, RTLD_LAZY | RTLD_LOCAL);
  return reinterpret_cast<bool (*)()>(dlsym(library, "state_is_default"))();
}

const void* temporary() {
  void* library = dlopen(TEST_CUDA, RTLD_LAZY | RTLD_LOCAL);
  return reinterpret_cast<const void* (*)()>(dlsym(library, "temporary"))();
}

/// Memory for 3 float32, on the current device.
class DeviceMemory {
 public:
  DeviceMemory() { ATEN_BRIDGE_TESTING_CUDA(cudaMalloc(&data_, 12)); }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  operator void*() const { return data_; }  // NOLINT(google-explicit-constructor)

 private:
  void* data_ = nullptr;
};

class CudaCall : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Cuda::device_count() == 0) {
      ASSERT_EQ(std::getenv("ATEN_BRIDGE_REQUIRE_GPU"), nullptr) << "no GPU";
      GTEST_SKIP() << "skipped: no GPU";
    }
    cuda = std::make_unique<Cuda>();
  }

  // A call with one float32 input of 3 elements and an output like it.
  Call call(const std::string& name) {
    Call call = cuda_library().call(name);
    call.on(*cuda).input<float>({3}, {1, -2, 3}).output<float>({3});
    return call;
  }

  std::unique_ptr<Cuda> cuda;
};

class CudaOperators : public CudaCall {
 protected:
  Call typed(const std::string& name) {
    Call call = typed_library().call(name);
    call.on(*cuda);
    return call;
  }
};

//===--- without a GPU ---===//

TEST(CudaWithoutGpu, SaysSo) {
  if (Cuda::device_count() > 0) {
    GTEST_SKIP() << "there is a GPU";
  }
  Call call = cuda_library().call("Copy");
  call.input<float>({2}, {1, 2}).output<float>({2});
  int count = 0;
  const cudaError_t reason = cudaGetDeviceCount(&count);
  cudaGetLastError();
  const std::string error =
      std::string("Copy: expected a CUDA device, got ") +
      (reason == cudaSuccess
           ? "none"
           : std::string(cudaGetErrorName(reason)) + " (" + cudaGetErrorString(reason) + ')') +
      "; this kernel was built for CUDA: run the program where there is a GPU, or build the kernel "
      "for the CPU";
  EXPECT_EQ(call.run().error(), error);
  EXPECT_EQ(call.run().error(), error);

  Call tutorial = tutorial_library().call("LeakyRelu");
  tutorial.input<float>({2}, {1, 2}).output<float>({2});
  EXPECT_EQ(tutorial.run().error(), "get_torch_tensors" + error.substr(4));
}

TEST(CudaTutorial, HasFunctionsForTheCpuToo) {
  Call transpose = tutorial_library().call("TransposeOnCpu");
  transpose.input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).output<float>({3, 2});
  const Result result = transpose.run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), (Floats{1, 4, 2, 5, 3, 6}));
}

//===--- streams and devices ---===//

TEST_F(CudaCall, RunsOnTheStreamOfTheHost) {
  for (const char* name : {"Copy", "CopyByFork"}) {  // the latter joins it again
    Call copy = call(name);
    copy.run();  // starts CUDA, and may wait
    const Result result = copy.run();
    EXPECT_EQ(result.error(), "");
    EXPECT_EQ(result.output<float>(0), Floats({1, -2, 3}));
    EXPECT_FALSE(result.waited());
  }
}

TEST_F(CudaCall, TheSimulatedHostSeesAMissingOrdering) {
  Call copy = call("CopyOnAnotherStream");
  copy.run();
  const Result result = copy.run();
  EXPECT_EQ(result.error(), "");
  EXPECT_TRUE(std::isnan(result.output<float>(0)[0]));
}

TEST_F(CudaCall, TheSimulatedHostSeesAForkThatDoesNotJoin) {
  Call copy = call("CopyByFork");
  copy.attribute("joins", false).run();
  const Result result = copy.run();
  EXPECT_EQ(result.error(), "");
  EXPECT_TRUE(std::isnan(result.output<float>(0)[0]));
}

TEST_F(CudaCall, TheSimulatedHostSeesAKernelThatWaits) {
  Call copy = call("CopyAndWait");
  copy.run();
  const Result result = copy.run();
  EXPECT_EQ(result.output<float>(0), Floats({1, -2, 3}));
  EXPECT_TRUE(result.waited());
}

TEST_F(CudaCall, TheSimulatedHostSeesAWriteBesideABuffer) {
  try {
    call("CopyTooMuch").run_here();
    FAIL() << "expected a std::logic_error";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(),
                 "the kernel wrote to memory that is not its own: output 0, behind its last byte");
  }
}

TEST_F(CudaCall, ViewsAndCurrentDeviceAreThoseOfThePointers) {
  for (int device = 0; device < std::min(Cuda::device_count(), 2); ++device) {
    Cuda host(device);
    Call describe = cuda_library().call("DescribeCall");
    describe.on(host).input<float>({1}, {0}).output<int64_t>({5});
    const Result result = describe.run();
    EXPECT_EQ(result.error(), "");
    EXPECT_EQ(result.output<int64_t>(0), Ints({device, device, device, device, 1}));
  }
}

TEST_F(CudaCall, TakesEveryKindOfStream) {
  for (cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) {
    Cuda host(/*device=*/0, stream);
    Call copy = cuda_library().call("Copy");
    copy.on(host).input<float>({3}, {1, -2, 3}).output<float>({3});
    copy.run_here();
    const Result result = copy.run_here();
    EXPECT_EQ(result.error(), "");
    EXPECT_EQ(result.output<float>(0), Floats({1, -2, 3}));
    EXPECT_FALSE(result.waited());

    Call describe = cuda_library().call("DescribeCall");
    describe.on(host).input<float>({1}, {0}).output<int64_t>({5});
    // PyTorch calls the legacy stream by its other name, null.
    EXPECT_EQ(describe.run_here().output<int64_t>(0)[4], stream == cudaStreamLegacy ? 0 : 1);
  }
}

TEST_F(CudaCall, RestoresDeviceAndStream) {
  Call change = call("ChangeState");
  EXPECT_EQ(change.run_here().error(), "");
  EXPECT_TRUE(state_is_default());
  EXPECT_EQ(change.attribute("throws", true).run_here().error(),
            "ChangeState: on purpose (input 0: float32 [3]; output 0: float32 [3])");
  EXPECT_TRUE(state_is_default());
}

// PyTorch leaves such a device alone when it restores it.
TEST_F(CudaCall, RestoresADeviceThatNobodyHasUsed) {
  if (Cuda::device_count() < 2) {
    GTEST_SKIP() << "there is one GPU";
  }
  const int last = Cuda::device_count() - 1;
  cudaSetDevice(last);
  EXPECT_EQ(call("Copy").run_here().error(), "");  // its operands are on cuda:0
  int current = -1;
  cudaGetDevice(&current);
  EXPECT_EQ(current, last);
  cudaSetDevice(0);
  EXPECT_TRUE(state_is_default());
}

TEST_F(CudaCall, EmptyTensorsAreOnTheCurrentDevice) {
  Call copy = cuda_library().call("Copy");
  copy.on(*cuda).input<float>({0}, {}).output<float>({0});
  EXPECT_EQ(copy.run().error(), "");
}

TEST_F(CudaCall, AutogradRefusesAStreamOfEachThread) {
  Cuda host(/*device=*/0, cudaStreamPerThread);
  Call copy = cuda_library().call("CopyRecording");
  copy.on(host).input<float>({3}, {1, 2, 3}).output<float>({3});
  EXPECT_EQ(copy.run_here().error(),
            "CopyRecording: expected a stream that is the same in all threads, got "
            "cudaStreamPerThread; PyTorch's autograd works in threads of its own");
  EXPECT_EQ(call("CopyRecording").run().output<float>(0), Floats({1, -2, 3}));
}

//===--- memory of another device ---===//

// One call over pointers of one's own: an input and an output of 3 float32, and perhaps a
// workspace.
std::string call_with(HostFunction function, void* input, void* output, cudaStream_t stream,
                      void* workspace = nullptr) {
  void* params[] = {input, output, workspace};
  int ndims[] = {1, 1};
  int64_t size = 3;
  int64_t* shapes[] = {&size, &size};
  const char* dtypes[] = {"float32", "float32"};
  aten_bridge::testing::detail::Extra extra;
  extra.workspaces.assign(workspace == nullptr ? 0 : 1, 12);
  try {
    function(workspace == nullptr ? 2 : 3, params, ndims, shapes, dtypes, stream, &extra);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST_F(CudaCall, RefusesMemoryOfTheCpu) {
  Call copy = cuda_library().call("Copy");
  copy.input<float>({3}, {1, 2, 3}).output<float>({3});
  const std::string fault =
      ": expected memory of a CUDA device, got memory of the CPU with float32 [3]; this kernel was "
      "built for CUDA: run the operator on the GPU, or build the kernel for the CPU";
  EXPECT_EQ(copy.run().error(), "Copy: input 0" + fault + "\nCopy: output 0" + fault);

  Call tutorial = tutorial_library().call("LeakyRelu");
  tutorial.input<float>({3}, {1, 2, 3}).output<float>({3});
  EXPECT_EQ(tutorial.run().error(),
            "get_torch_tensors: slot 0" + fault + "\nget_torch_tensors: slot 1" + fault);
}

TEST_F(CudaCall, TensorsOfTheCpuAreNotCopiedToADevice) {
  Call copy = tutorial_library().call("CopyFromCpu");
  copy.on(*cuda).input<float>({3}, {1, 2, 3}).output<float>({3});
  EXPECT_EQ(copy.run().error(),
            "output_memcpy: expected memory of the CPU, as the tensor's, got memory of a CUDA "
            "device; copy a tensor of that device");
}

TEST_F(CudaCall, KernelsForTheCpuRefuseMemoryOfADevice) {
  Call copy = cpu_library().call("Copy");
  copy.on(*cuda).input<float>({3}, {1, 2, 3}).output<float>({3});
  const std::string fault =
      ": expected memory of the CPU, got memory of cuda:0 with float32 [3]; this kernel was built "
      "for the CPU: run the operator on the CPU, or build the kernel for CUDA";
  EXPECT_EQ(copy.run().error(), "Copy: input 0" + fault + "\nCopy: output 0" + fault);
}

TEST_F(CudaCall, KernelsThatTakeTheCallAsItComesRefuseThemToo) {
  Call describe = cuda_library().call("DescribeCall");
  describe.input<float>({1}, {0}).output<int64_t>({5});
  const std::string of_the_cpu =
      "; this kernel was built for CUDA: run the operator on the GPU, or build the kernel for the "
      "CPU";
  EXPECT_EQ(describe.run().error(),
            "DescribeCall: slot 0: expected memory of a CUDA device, got memory of the CPU with "
            "float32 [1]" +
                of_the_cpu +
                "\nDescribeCall: slot 1: expected memory of a CUDA device, got memory of the CPU "
                "with int64 [5]" +
                of_the_cpu);

  Call sum = cpu_library().call("SumSlots");
  sum.on(*cuda).input<float>({1}, {0}).output<float>({1});
  const std::string fault =
      ": expected memory of the CPU, got memory of cuda:0 with float32 [1]; this kernel was built "
      "for the CPU: run the operator on the CPU, or build the kernel for CUDA";
  EXPECT_EQ(sum.run().error(), "SumSlots: slot 0" + fault + "\nSumSlots: slot 1" + fault);
}

TEST_F(CudaCall, RefusesMixedDevices) {
  if (Cuda::device_count() < 2) {
    GTEST_SKIP() << "there is one GPU";
  }
  const DeviceMemory first;
  cudaSetDevice(1);
  const DeviceMemory second;
  cudaSetDevice(0);
  EXPECT_EQ(call_with(call("Copy").function(), second, first, cuda->stream()),
            "Copy: output 0: expected memory of cuda:1 as input 0, got memory of cuda:0 with "
            "float32 [3]");
}

TEST_F(CudaCall, TakesManagedMemoryForThatOfAnyDevice) {
  void* managed = nullptr;
  const DeviceMemory device;
  ASSERT_EQ(cudaMallocManaged(&managed, 12), cudaSuccess);
  static_cast<float*>(managed)[2] = 5;
  EXPECT_EQ(call_with(call("Copy").function(), managed, device, cuda->stream()), "");
  EXPECT_EQ(call_with(call("Copy").function(), managed, managed, cuda->stream()), "");
  cudaStreamSynchronize(cuda->stream());
  EXPECT_EQ(call_with(cpu_library().call("Copy").function(), managed, managed, cuda->stream()), "");
  float values[3] = {};
  cudaMemcpyAsync(values, device, 12, cudaMemcpyDeviceToHost, cuda->stream());
  cudaStreamSynchronize(cuda->stream());
  EXPECT_EQ(values[2], 5);
  cudaFree(managed);
}

TEST_F(CudaCall, UsesWorkspacesOfTheHostOnItsDevice) {
  EXPECT_EQ(call("CopyTwice").attribute("aten_bridge_counted", true).run().output<float>(0),
            Floats({1, -2, 3}));

  const DeviceMemory memory[3];
  void* of_the_cpu = nullptr;
  cudaMallocHost(&of_the_cpu, 12);
  const HostFunction copy_twice = call("CopyTwice").function();
  EXPECT_EQ(call_with(copy_twice, memory[0], memory[1], cuda->stream(), memory[2]), "");
  EXPECT_EQ(temporary(), memory[2]);
  EXPECT_EQ(call_with(copy_twice, memory[0], memory[1], cuda->stream(), of_the_cpu), "");
  EXPECT_NE(temporary(), of_the_cpu);
  cudaStreamSynchronize(cuda->stream());
  cudaFreeHost(of_the_cpu);
}

//===--- errors ---===//

TEST_F(CudaCall, ReportsWhatTheBodyLeftBehind) {
  EXPECT_EQ(call("LeaveError").run_here().error(),
            "LeaveError: a launch, or another CUDA call, of this kernel failed: "
            "cudaErrorInvalidDevice (invalid device ordinal)");
  EXPECT_EQ(call("Copy").run_here().error(), "");  // it is reported once

  EXPECT_EQ(call("LeaveError").attribute("throws", true).run_here().error(),
            "LeaveError: on purpose (input 0: float32 [3]; output 0: float32 [3]); CUDA reports "
            "cudaErrorInvalidDevice (invalid device ordinal)");
  EXPECT_EQ(call("Copy").run_here().error(), "");
}

TEST_F(CudaCall, ReportsAnErrorFromBeforeTheCallAsSuch) {
  Call copy = call("Copy");
  copy.run_here();
  const DeviceMemory memory[2];
  cudaSetDevice(1000);
  EXPECT_EQ(call_with(copy.function(), memory[0], memory[1], cuda->stream()),
            "Copy: not run: CUDA reports an error of an earlier operator or launch, "
            "cudaErrorInvalidDevice (invalid device ordinal); CUDA_LAUNCH_BLOCKING=1 shows which");
  EXPECT_EQ(call_with(copy.function(), memory[0], memory[1], cuda->stream()), "");
  cudaStreamSynchronize(cuda->stream());
}

TEST_F(CudaCall, AStreamThatIsNotReadyIsNoError) {
  EXPECT_EQ(call("AskWhetherReady").run_here().error(), "");
  EXPECT_EQ(call("Copy").run_here().error(), "");
}

TEST_F(CudaCall, ReportsErrorsThatPyTorchAsksAbout) {
  const Result result = call("FailLoudly").run_here();
  EXPECT_EQ(result.error().substr(0, 45), "FailLoudly: CUDA error: invalid device ordina");
  EXPECT_EQ(call("Copy").run_here().error(), "");
}

//===--- numbers ---===//

TEST_F(CudaCall, ReadsNumbersFromTheDevice) {
  Call numbers = cuda_library().call("CopyNumbers");
  numbers.on(*cuda).input<double>({3}, {0, 0, 0});
  numbers.input<float>({1}, {0.5F}).input<std::uint8_t>({}, {200}).input<bool>({}, {false});
  numbers.output<double>({3});
  EXPECT_EQ(numbers.run().output<double>(0), Doubles({0.5, 200, 0}));

  numbers.set_input<std::uint8_t>(2, {7});
  EXPECT_EQ(numbers.run().output<double>(0), Doubles({0.5, 7, 0}));
}

TEST_F(CudaCall, ChecksNumbersFromTheDevice) {
  Call numbers = cuda_library().call("CopyNumbers");
  numbers.on(*cuda).input<double>({3}, {0, 0, 0});
  numbers.input<float>({2}, {0.5F, 1}).input<float>({}, {2.5F}).input_none();
  numbers.output<double>({3});
  EXPECT_EQ(numbers.run().error(),
            "CopyNumbers: input 1: expected a real number as one element, got float32 [2]\n"
            "CopyNumbers: input 2: expected an integer that an int64 can hold, got the float32 "
            "2.5");
}

//===--- graphs ---===//

TEST_F(CudaCall, IsCapturedAndReplayed) {
  Call copy = call("Copy");
  copy.run_here();
  CudaGraph graph(copy);
  EXPECT_EQ(graph.captured().error(), "");
  EXPECT_EQ(graph.replay().output<float>(0), Floats({1, -2, 3}));
  copy.set_input<float>(0, {4, 5, 6});
  const Result result = graph.replay();
  EXPECT_EQ(result.output<float>(0), Floats({4, 5, 6}));
  EXPECT_FALSE(result.waited());
}

TEST_F(CudaCall, RefusesToReadNumbersWhileTheStreamIsCaptured) {
  Call numbers = cuda_library().call("CopyNumbers");
  numbers.on(*cuda).input<double>({3}, {0, 0, 0});
  numbers.input<float>({}, {0.5F}).input<int64_t>({}, {7}).input_none().output<double>({3});
  numbers.run_here();
  CudaGraph graph(numbers);
  const std::string fault =
      ": expected a number that can be read while the CUDA stream is captured, got one in memory "
      "of the GPU, which may be written when the graph is replayed only; make it an attribute";
  EXPECT_EQ(graph.captured().error(),
            "CopyNumbers: input 1" + fault + "\nCopyNumbers: input 2" + fault);
  // The capture is not lost on the way: the next call is an ordinary one.
  EXPECT_EQ(numbers.run_here().error(), "");
}

TEST_F(CudaCall, SaysThatAKernelWaitedWhileTheStreamWasCaptured) {
  Call copy = call("CopyAndWait");
  copy.run_here();
  CudaGraph graph(copy);
  const std::string error = graph.captured().error();
  EXPECT_EQ(error.substr(0, 74),
            "CopyAndWait: CUDA error: operation not permitted when stream is capturing\n");
  const std::string end =
      "(input 0: float32 [3]; output 0: float32 [3]); while a CUDA stream is captured a kernel "
      "cannot wait for it: no .item(), no copy to the CPU, no result whose shape depends on values";
  EXPECT_EQ(error.substr(error.size() - end.size()), end);
  EXPECT_EQ(copy.run_here().error(), "");
}

TEST_F(CudaCall, TemporariesOfACapturedCallAreItsOwn) {
  for (const char* name :
       {"CopyByTemporary", "CopyByFork", "CopyByPinnedMemory", "CopyByAnother"}) {
    SCOPED_TRACE(name);
    Call copy = call(name);
    copy.run_here();
    const void* before = temporary();
    copy.run_here();
    EXPECT_EQ(temporary(), before);  // PyTorch gives it again
    CudaGraph graph(copy);
    EXPECT_EQ(graph.captured().error(), "");
    const void* captured = temporary();
    EXPECT_NE(captured, before);
    EXPECT_EQ(copy.run_here().error(), "");
    EXPECT_EQ(temporary(), before);
    EXPECT_EQ(graph.replay().output<float>(0), Floats({1, -2, 3}));
    CudaGraph another(copy);
    EXPECT_EQ(another.captured().error(), "");
    EXPECT_NE(temporary(), captured);
  }
}

// PyTorch's tables of pools take ids that look alike badly.
TEST_F(CudaCall, IsCapturedManyTimes) {
  Call copy = call("CopyByTemporary");
  copy.run_here();
  for (int i = 0; i < 40; ++i) {
    CudaGraph graph(copy);
    EXPECT_EQ(graph.captured().error(), "");
  }
}

TEST_F(CudaCall, SeveralCallsAreCapturedTogether) {
  const HostFunction copy = call("CopyByTemporary").function();
  cudaStream_t stream = cuda->stream();
  const DeviceMemory memory[3];
  EXPECT_EQ(call_with(copy, memory[0], memory[1], stream), "");
  const void* before = temporary();

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(call_with(copy, memory[0], memory[1], stream), "");
  EXPECT_NE(temporary(), before);
  EXPECT_EQ(call_with(copy, memory[1], memory[2], stream), "");
  EXPECT_NE(temporary(), before);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaSuccess);

  const Floats values = {1, -2, 3};
  Floats result(3);
  cudaMemcpyAsync(memory[0], values.data(), 12, cudaMemcpyHostToDevice, stream);
  cudaGraphLaunch(exec, stream);
  cudaMemcpyAsync(result.data(), memory[2], 12, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(result, values);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_F(CudaCall, OnlyStreamsOfOnesOwnAreCaptured) {
  for (cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy}) {
    Cuda host(/*device=*/0, stream);
    Call copy = cuda_library().call("Copy");
    copy.on(host).input<float>({3}, {1, 2, 3}).output<float>({3});
    try {
      CudaGraph graph(copy);
      FAIL() << "expected a std::logic_error";
    } catch (const std::logic_error& error) {
      EXPECT_STREQ(
          error.what(),
          "CUDA does not capture the default stream: make the call on a Cuda with another");
    }
  }
}

//===--- operators ---===//

TEST_F(CudaOperators, OwnKernelsRun) {
  Call add = call("AddOne");
  EXPECT_EQ(add.run().output<float>(0), Floats({2, -1, 4}));
  EXPECT_FALSE(add.run().waited());
}

TEST_F(CudaOperators, ReportsALaunchThatFails) {
  EXPECT_EQ(call("AddOne").attribute("threads", 2000).run_here().error(),
            "AddOne: a launch, or another CUDA call, of this kernel failed: "
            "cudaErrorInvalidValue (invalid argument)");
  EXPECT_EQ(call("AddOne").run_here().error(), "");
}

TEST_F(CudaOperators, TemporariesAreSafeOnTheStream) {
  Call chain = cuda_library().call("Chain");
  Floats x(100000);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 100);
  }
  chain.on(*cuda).input<float>({100000}, x).output<float>({100000});
  chain.attribute("steps", 8).run();
  Floats expected(x.size());
  for (int times = 0; times < 3; ++times) {
    // 2 (2 (... x - 1) - 1) - 1 = 256 x - 255
    for (std::size_t i = 0; i < x.size(); ++i) {
      expected[i] = 256 * x[i] - 255;
    }
    const Result result = chain.run();
    EXPECT_EQ(result.error(), "");
    EXPECT_EQ(result.output<float>(0), expected);
    EXPECT_FALSE(result.waited());
  }
}

TEST_F(CudaOperators, AreCapturedAndReplayedWithTemporaries) {
  Call chain = call("Chain");
  chain.attribute("steps", 4).run_here();
  CudaGraph graph(chain);
  EXPECT_EQ(graph.captured().error(), "");
  EXPECT_EQ(graph.replay().output<float>(0), Floats({1, -47, 33}));
  chain.set_input<float>(0, {0, 1, 10});
  EXPECT_EQ(graph.replay().output<float>(0), Floats({-15, 1, 145}));
}

TEST_F(CudaOperators, GradientsAreCapturedAndReplayed) {
  Call grad = typed("SiluGrad");
  grad.input<float>({2}, {0, 0}).input<float>({2}, {1, 2}).output<float>({2});
  grad.run_here();
  CudaGraph graph(grad);
  EXPECT_EQ(graph.captured().error(), "");
  EXPECT_EQ(graph.replay().output<float>(0), Floats({0.5F, 1}));
  grad.set_input<float>(1, {4, 6});
  EXPECT_EQ(graph.replay().output<float>(0), Floats({2, 3}));
}

TEST_F(CudaOperators, ReadingBackIsPossibleOutsideACapture) {
  Call scale = call("ScaleByFirst");
  const Result result = scale.run();
  EXPECT_EQ(result.output<float>(0), Floats({1, -2, 3}));
  EXPECT_TRUE(result.waited());

  CudaGraph graph(scale);
  const std::string error = graph.captured().error();
  const std::string end =
      "; while a CUDA stream is captured a kernel cannot wait for it: no .item(), no copy to the "
      "CPU, no result whose shape depends on values";
  ASSERT_GE(error.size(), end.size());
  EXPECT_EQ(error.substr(error.size() - end.size()), end);
  EXPECT_EQ(scale.run_here().error(), "");
}

TEST_F(CudaOperators, ResultsOfAnotherDeviceAreRefused) {
  EXPECT_EQ(call("ToTheCpu").run_here().error(),
            "ToTheCpu: output 0: expected a tensor on cuda:0, got one on cpu from the kernel");
}

TEST_F(CudaOperators, AttributesAndNumbers) {
  Call relu = typed("LeakyRelu");
  relu.input<float>({2, 2}, {0, -0.1F, -0.2F, 1}).output<float>({2, 2});
  relu.attribute("negative_slope", 0.5);
  EXPECT_EQ(relu.run().output<float>(0), Floats({0, -0.05F, -0.1F, 1}));

  Call by = typed("LeakyReluBy");
  by.input<float>({2, 2}, {0, -0.1F, -0.2F, 1}).input<double>({}, {0.5}).output<float>({2, 2});
  EXPECT_EQ(by.run().output<float>(0), Floats({0, -0.05F, -0.1F, 1}));
}

TEST_F(CudaOperators, ChecksAndInference) {
  Call relu = typed("LeakyRelu");
  relu.input<int64_t>({2}, {1, 2}).output<int64_t>({2});
  EXPECT_EQ(relu.run().error(),
            "LeakyRelu: input 0 'x': expected float16|bfloat16|float32|float64, got \"int64\" with "
            "shape [2]");
  Call silu = typed("Silu");
  silu.input<float>({2, 3}, Floats(6, 1)).known_sizes(0, {-1, 3});
  EXPECT_EQ(silu.infer().sizes(), std::vector<Ints>({{-1, 3}}));
}

TEST_F(CudaOperators, OptionalInputs) {
  for (const bool with_weight : {false, true}) {
    Call norm = typed("LayerNorm");
    norm.input<double>({1, 2}, {-1, 1});
    if (with_weight) {
      norm.input<double>({2}, {2, 3});
    } else {
      norm.input_none();
    }
    norm.output<double>({1, 2});
    const Doubles y = norm.run().output<double>(0);
    EXPECT_NEAR(y[0], with_weight ? -2 : -1, 1e-4);
    EXPECT_NEAR(y[1], with_weight ? 3 : 1, 1e-4);
  }
}

TEST_F(CudaOperators, AnyNumberOfInputsAndTheirGradients) {
  Call cat = typed("Cat");
  cat.input<float>({1}, {1}).input<float>({2}, {2, 3}).output<float>({3});
  EXPECT_EQ(cat.run().output<float>(0), Floats({1, 2, 3}));

  Call grad = typed("CatGrad");
  grad.input<float>({1}, {1}).input<float>({2}, {2, 3}).input<float>({3}, {4, 5, 6});
  grad.output<float>({1}).output<float>({2});
  const Result result = grad.run();
  EXPECT_EQ(result.error(), "");
  EXPECT_EQ(result.output<float>(0), Floats({4}));
  EXPECT_EQ(result.output<float>(1), Floats({5, 6}));
}

TEST_F(CudaOperators, SeveralOutputs) {
  Call topk = typed("TopK");
  topk.input<float>({4}, {3, 1, 4, 2}).attribute("k", 2).output<float>({2}).output<int64_t>({2});
  const Result result = topk.run();
  EXPECT_EQ(result.output<float>(0), Floats({4, 3}));
  EXPECT_EQ(result.output<int64_t>(1), Ints({2, 0}));
}

TEST_F(CudaOperators, StateOnTheDevice) {
  Call add = typed("AddTable");
  add.attribute("size", 3).input<float>({3}, {1, 1, 1}).output<float>({3});
  const Result first = add.run();
  EXPECT_EQ(first.output<float>(0), Floats({1, 2, 3}));
  EXPECT_TRUE(first.waited());  // for the state, which calls on other streams may use
  const Result second = add.run();
  EXPECT_EQ(second.output<float>(0), Floats({1, 2, 3}));
  EXPECT_FALSE(second.waited());
  CudaGraph graph(add);
  EXPECT_EQ(graph.replay().output<float>(0), Floats({1, 2, 3}));
}

TEST_F(CudaOperators, AStateIsNotMadeWhileTheStreamIsCaptured) {
  Call add = typed("AddTable");
  add.attribute("size", 3).input<float>({3}, {1, 1, 1}).output<float>({3});
  CudaGraph graph(add);
  EXPECT_EQ(graph.captured().error(),
            "AddTable: expected a first call of this operator while the CUDA stream is not "
            "captured, since its state is made in it; call it once before the capture");
  EXPECT_EQ(add.run_here().output<float>(0), Floats({1, 2, 3}));
}

TEST_F(CudaOperators, Gradients) {
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  const Doubles x = {-1.5, 0.25, 2};
  Call grad = typed("SiluGrad");
  grad.input<double>({3}, x).input<double>({3}, {1, 1, 2}).output<double>({3});
  grad.run();
  const Result result = grad.run();
  EXPECT_EQ(result.error(), "");
  EXPECT_FALSE(result.waited());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double h = 1e-5;
    const double difference = (silu(x[i] + h) - silu(x[i] - h)) / (2 * h) * (i == 2 ? 2 : 1);
    EXPECT_NEAR(result.output<double>(0)[i], difference, 1e-8);
  }

  // The gradient's own: with respect to x and to the incoming gradient.
  Call again = typed("SiluGradGrad");
  again.input<double>({3}, x).input<double>({3}, {1, 1, 1}).input<double>({3}, {1, 1, 1});
  again.output<double>({3}).output<double>({3});
  const Result second = again.run();
  EXPECT_EQ(second.error(), "");
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double h = 1e-4;
    EXPECT_NEAR(second.output<double>(0)[i],
                (silu(x[i] + h) - 2 * silu(x[i]) + silu(x[i] - h)) / (h * h), 1e-6);
  }
}

TEST_F(CudaOperators, GradientsOfConvolutionsAndIndices) {
  Call conv = typed("Conv2dGrad");
  conv.input<float>({1, 1, 3, 3}, Floats(9, 1)).input<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  conv.input_none().input<float>({1, 1, 2, 2}, Floats(4, 1));
  conv.output<float>({1, 1, 3, 3}).output<float>({1, 1, 2, 2}).output<float>({1});
  const Result result = conv.run();
  EXPECT_EQ(result.error(), "");
  const Floats expected = {1, 3, 2, 4, 10, 6, 3, 7, 4};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(result.output<float>(0)[i], expected[i], 1e-2);  // cuDNN may round to TF32
    EXPECT_NEAR(result.output<float>(1)[i % 4], 4, 1e-2);
  }

  Call embedding = typed("EmbeddingGrad");
  embedding.input<float>({3, 1}, {1, 2, 3}).input<int64_t>({2}, {2, 2});
  embedding.input<float>({2, 1}, {5, 6}).output<float>({3, 1}).output<int64_t>({2});
  const Result rows = embedding.run();
  EXPECT_EQ(rows.error(), "");
  EXPECT_EQ(rows.output<float>(0), Floats({0, 0, 11}));
  EXPECT_EQ(rows.output<int64_t>(1), Ints({0, 0}));
}

// Autograd has a thread for each device, and PyTorch's allocator has memory of each.
TEST_F(CudaOperators, GradientsAndCapturesOfEveryDevice) {
  for (int device = 0; device < std::min(Cuda::device_count(), 2); ++device) {
    Cuda host(device);
    Call grad = typed_library().call("SiluGrad");
    grad.on(host).input<float>({2}, {0, 0}).input<float>({2}, {1, 2}).output<float>({2});
    grad.run();
    const Result result = grad.run();
    EXPECT_EQ(result.error(), "");
    EXPECT_EQ(result.output<float>(0), Floats({0.5F, 1}));
    EXPECT_FALSE(result.waited());

    Call chain = cuda_library().call("Chain");
    chain.on(host).input<float>({3}, {1, -2, 3}).output<float>({3});
    chain.attribute("steps", 4).run_here();
    CudaGraph graph(chain);
    EXPECT_EQ(graph.captured().error(), "");
    EXPECT_EQ(graph.replay().output<float>(0), Floats({1, -47, 33}));
    EXPECT_TRUE(state_is_default());
  }
}

TEST_F(CudaOperators, ExamplesRun) {
  for (const char* path : {EXAMPLE_LEAKY_RELU, EXAMPLE_SQUARED_RELU}) {
    const bool squares = std::string(path) == EXAMPLE_SQUARED_RELU;
    Library library(path);
    Call relu = library.call(squares ? "SquaredRelu" : "LeakyRelu");
    relu.on(*cuda).input<float>({2, 2}, {0, -0.1F, -0.2F, 2}).output<float>({2, 2});
    relu.run();
    const Result result = relu.run();
    EXPECT_EQ(result.error(), "");
    EXPECT_FALSE(result.waited());
    EXPECT_EQ(result.output<float>(0),
              squares ? Floats({0, 0, 0, 4}) : Floats({0, -0.001F, -0.002F, 2}));
  }
}

TEST_F(CudaOperators, SourceOfTheTutorialRuns) {
  // It waits before its work and does it on the default stream; so the host has to be on it too.
  Cuda host(/*device=*/0, nullptr);
  Call relu = tutorial_library().call("LeakyRelu");
  relu.on(host).input<float>({2, 2}, {0, -0.1F, -0.2F, 1}).output<float>({2, 2});
  EXPECT_EQ(relu.run().output<float>(0), Floats({0, -0.001F, -0.002F, 1}));

  // This one waits for its own work as well, and is right on any stream.
  Call transpose = tutorial_library().call("Transpose");
  transpose.on(*cuda).input<float>({2, 2}, {1, 2, 3, 4}).output<float>({2, 2});
  EXPECT_EQ(transpose.run().output<float>(0), Floats({1, 3, 2, 4}));

  // Also where the default stream is busy for a while.
  const DeviceMemory memory[2];
  aten_bridge::testing::detail::Gate gate;
  gate.close(nullptr);
  EXPECT_EQ(call_with(transpose.function(), memory[0], memory[1], cuda->stream()), "");
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaSuccess);
  cudaStreamSynchronize(nullptr);
}

//===--- JAX as the host ---===//

TEST_F(CudaOperators, JaxCallsThemOnXlasStream) {
  void* const library = dlopen(TEST_CUDA_TYPED, RTLD_LAZY | RTLD_LOCAL);
  const cudaStream_t stream = cuda->stream();
  const DeviceMemory x;
  const DeviceMemory y;
  const auto run = [&](void* of_xla, void* input) {
    return jax_frame::Frame(library, "LeakyRelu")
        .on(of_xla)
        .input(input, {3})
        .output(y, {3})
        .scalar("negative_slope", jax_frame::xla::kFloat64, 0.5)
        .run();
  };
  const Floats values = {1, -2, 3};
  ATEN_BRIDGE_TESTING_CUDA(cudaMemcpyAsync(x, values.data(), 12, cudaMemcpyHostToDevice, stream));
  EXPECT_EQ(run(stream, x), "");  // starts CUDA, and may wait
  ATEN_BRIDGE_TESTING_CUDA(cudaMemsetAsync(y, 0, 12, stream));
  aten_bridge::testing::detail::Gate gate;
  gate.close(stream);
  EXPECT_EQ(run(stream, x), "");
  EXPECT_TRUE(gate.open());  // nobody waited
  Floats results(3);
  ATEN_BRIDGE_TESTING_CUDA(cudaMemcpyAsync(results.data(), y, 12, cudaMemcpyDeviceToHost, stream));
  ATEN_BRIDGE_TESTING_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(results, Floats({1, -1, 3}));

  EXPECT_EQ(run(stream, results.data()),
            "LeakyRelu: input 0 'x': expected memory of a CUDA device, got memory of the CPU with "
            "float32 [3]; this kernel was built for CUDA: run the operator on the GPU, or build "
            "the kernel for the CPU");
  jax_frame::destroyed = 0;
  EXPECT_EQ(run(nullptr, x),
            "LeakyRelu: expected XLA's stream of CUDA, got the error: no stream on this device");
  EXPECT_EQ(jax_frame::destroyed, 1);  // it was the bridge's
}

}  // namespace
