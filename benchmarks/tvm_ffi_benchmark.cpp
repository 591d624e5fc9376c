// A peer: a typed function of tvm-ffi that takes so many TensorViews, and does nothing with them.
#include <benchmark/benchmark.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace {

using tvm::ffi::TensorView;

template <std::size_t>
using View = TensorView;

template <class>
struct Body;
template <std::size_t... I>
struct Body<std::index_sequence<I...>> {
  // Otherwise the compiler leaves them out.
  static void take(View<I>... tensors) { (benchmark::DoNotOptimize(tensors), ...); }
};

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(views1, Body<std::make_index_sequence<1>>::take)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(views2, Body<std::make_index_sequence<2>>::take)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(views8, Body<std::make_index_sequence<8>>::take)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(views32, Body<std::make_index_sequence<32>>::take)

namespace {

void call(benchmark::State& state, TVMFFISafeCallType function, std::size_t slots) {
  std::vector<float> memory(16 * slots);
  int64_t shape[] = {4, 4};
  int64_t strides[] = {4, 1};
  std::vector<DLTensor> tensors(slots);
  std::vector<TVMFFIAny> arguments(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    tensors[i] = {&memory[16 * i], {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
    arguments[i].type_index = kTVMFFIDLTensorPtr;
    arguments[i].v_ptr = &tensors[i];
  }
  benchmark::DoNotOptimize(function);  // or it is inlined
  for (auto _ : state) {
    TVMFFIAny result = {};
    if (function(nullptr, arguments.data(), static_cast<int32_t>(slots), &result) != 0) {
      state.SkipWithError("tvm-ffi refused the call");
      break;
    }
  }
}

BENCHMARK_CAPTURE(call, views, __tvm_ffi_views1, 1)->Name("tvm_ffi/1");
BENCHMARK_CAPTURE(call, views, __tvm_ffi_views2, 2)->Name("tvm_ffi/2");
BENCHMARK_CAPTURE(call, views, __tvm_ffi_views8, 8)->Name("tvm_ffi/8");
BENCHMARK_CAPTURE(call, views, __tvm_ffi_views32, 32)->Name("tvm_ffi/32");

}  // namespace
