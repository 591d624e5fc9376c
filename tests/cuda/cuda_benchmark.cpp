// What the bridge costs on a GPU, in one run: a call of an exported kernel against the same
// operator called directly, on the same stream. Prints medians and ratios. Needs a GPU, and no
// Google Benchmark, which the machines that have one may lack.
//
//   cuda_benchmark [<largest side of the matrices>]
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/leaky_relu.h>
#include <aten_bridge/testing_cuda.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// One call of the host over two tensors.
struct HostCall {
  HostCall(const aten_bridge::testing::Call& call, const at::Tensor& x, const at::Tensor& y,
           cudaStream_t host_stream)
      : function(call.function()), stream(host_stream), sizes(x.sizes().vec()) {
    params[0] = x.data_ptr();
    params[1] = y.data_ptr();
    ndims[0] = ndims[1] = static_cast<int>(sizes.size());
    shapes[0] = shapes[1] = sizes.data();
    call.init()(ndims, shapes, dtypes, &extra);
  }
  void operator()() { function(2, params, ndims, shapes, dtypes, stream, &extra); }

  aten_bridge::testing::HostFunction function;
  cudaStream_t stream;
  std::vector<int64_t> sizes;
  void* params[2];
  int ndims[2];
  int64_t* shapes[2];
  const char* dtypes[2] = {"float32", "float32"};
  aten_bridge::testing::detail::Extra extra;
};

// Microseconds of `work`, each a median of interleaved repetitions.
std::vector<double> measure(const std::vector<std::function<void()>>& work,
                            const std::function<void()>& in_front) {
  constexpr int kRepetitions = 31;
  std::vector<std::vector<double>> times(work.size());
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    for (std::size_t i = 0; i < work.size(); ++i) {
      in_front();
      const auto begin = Clock::now();
      work[i]();
      times[i].push_back(microseconds(Clock::now() - begin));
    }
  }
  std::vector<double> medians;
  for (const auto& of_one : times) {
    medians.push_back(median(of_one));
  }
  return medians;
}

void run(const aten_bridge::testing::Call& leaky_relu, int64_t largest) {
  constexpr int kChain = 100;
  aten_bridge::testing::Cuda cuda;
  const cudaStream_t stream = cuda.stream();
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream, 0));
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto wait = [&] { cudaStreamSynchronize(stream); };

  std::printf("%-44s %12s %12s %8s\n", "", "bridge (us)", "direct (us)", "ratio");
  for (const int64_t size : {int64_t{4}, int64_t{1024}, int64_t{4096}}) {
    if (size > largest) {
      break;
    }
    const auto options = at::TensorOptions(at::kCUDA).dtype(at::kFloat);
    const at::Tensor x = at::empty({size, size}, options).fill_(-1);
    at::Tensor y = at::empty({size, size}, options);
    HostCall host_call(leaky_relu, x, y, stream);
    const auto call = [&] { host_call(); };
    const auto direct = [&] { at::leaky_relu_out(y, x, 0.01); };
    call();
    direct();

    // Host: until the launches are queued. Chain: until the last is done.
    const auto many = [&](const auto& one, bool waits) -> std::function<void()> {
      return [&, waits] {
        for (int i = 0; i < kChain; ++i) {
          one();
        }
        if (waits) {
          wait();
        }
      };
    };
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ATEN_BRIDGE_TESTING_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    many(call, false)();
    ATEN_BRIDGE_TESTING_CUDA(cudaStreamEndCapture(stream, &graph));
    ATEN_BRIDGE_TESTING_CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    const auto replay = [&] {
      ATEN_BRIDGE_TESTING_CUDA(cudaGraphLaunch(exec, stream));
      wait();
    };
    replay();
    const auto t = measure(
        {many(call, false), many(direct, false), many(call, true), many(direct, true), replay},
        wait);
    const auto row = [&](const char* name, double bridge, double plain) {
      char title[96];
      std::snprintf(title, sizeof(title), "%lldx%lld float32: %s", static_cast<long long>(size),
                    static_cast<long long>(size), name);
      std::printf("%-44s %12.2f %12.2f %8.2f\n", title, bridge, plain, bridge / plain);
    };
    row("host cost of a call", t[0] / kChain, t[1] / kChain);
    row("a chain of 100 calls", t[2], t[3]);
    row("the captured chain, replayed", t[4], t[3]);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (aten_bridge::testing::Cuda::device_count() == 0) {
    std::puts("skipped: no GPU");
    return 0;
  }
  const aten_bridge::testing::Library library(EXAMPLE_LEAKY_RELU);
  run(library.call("LeakyRelu"), count > 1 ? std::atoll(arguments[1]) : 4096);
}
