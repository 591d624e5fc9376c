// A peer: a handler of XLA FFI that takes so many float32 buffers, the last one a result, and does
// nothing with them.
#include <benchmark/benchmark.h>
#include <xla/ffi/api/ffi.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace {

namespace ffi = xla::ffi;

template <std::size_t>
using Argument = ffi::Buffer<ffi::F32>;

template <class>
struct Body;
template <std::size_t... I>
struct Body<std::index_sequence<I...>> {
  static ffi::Error take(Argument<I>... inputs, ffi::ResultBuffer<ffi::F32> output) {
    (benchmark::DoNotOptimize(inputs), ...);  // or the compiler leaves them out
    benchmark::DoNotOptimize(output);
    return ffi::Error::Success();
  }
};

template <std::size_t kSlots>
void call(benchmark::State& state) {
  XLA_FFI_DEFINE_HANDLER(kHandler, Body<std::make_index_sequence<kSlots - 1>>::take);
  std::vector<float> memory(16 * kSlots);
  int64_t dims[] = {4, 4};
  std::vector<XLA_FFI_Buffer> buffers(kSlots);
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < kSlots; ++i) {
    buffers[i] = {
        XLA_FFI_Buffer_STRUCT_SIZE, nullptr, XLA_FFI_DataType_F32, &memory[16 * i], 2, dims};
    pointers.push_back(&buffers[i]);
  }
  std::vector<XLA_FFI_ArgType> argument_types(kSlots - 1, XLA_FFI_ArgType_BUFFER);
  XLA_FFI_RetType result_types[] = {XLA_FFI_RetType_BUFFER};

  XLA_FFI_Api api = {};  // the host's functions; a call that succeeds needs none
  api.struct_size = XLA_FFI_Api_STRUCT_SIZE;
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame.api = &api;
  frame.stage = XLA_FFI_ExecutionStage_EXECUTE;
  frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, kSlots - 1, argument_types.data(),
                pointers.data()};
  frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, 1, result_types, &pointers.back()};
  frame.attrs.struct_size = XLA_FFI_Attrs_STRUCT_SIZE;

  XLA_FFI_Handler* handler = kHandler;
  benchmark::DoNotOptimize(handler);  // or it is inlined
  for (auto _ : state) {
    if (handler(&frame) != nullptr) {
      state.SkipWithError("XLA FFI refused the call");
      break;
    }
  }
}

BENCHMARK_TEMPLATE(call, 1)->Name("xla_ffi/1");
BENCHMARK_TEMPLATE(call, 2)->Name("xla_ffi/2");
BENCHMARK_TEMPLATE(call, 8)->Name("xla_ffi/8");
BENCHMARK_TEMPLATE(call, 32)->Name("xla_ffi/32");

}  // namespace
