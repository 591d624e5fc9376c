// A device of somebody else's, PrivateUse1 named "npu": its memory is the CPU's, so that tests run
// anywhere. What a backend has to bring, and no more.
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstring>

namespace {

using at::Tensor;

struct NpuAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr memory = c10::GetCPUAllocator()->allocate(bytes);
    void* const data = last = memory.get();
    return {data, memory.release_context(), memory.get_deleter(),
            c10::Device(c10::DeviceType::PrivateUse1, 0)};
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    std::memcpy(to, from, count);
  }

  void* last = nullptr;
};
NpuAllocator allocator;

struct NpuGuard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = c10::DeviceType::PrivateUse1;  // NOLINT
  c10::DeviceType type() const override { return static_type; }
  c10::Device exchangeDevice(c10::Device device) const override { return device; }
  c10::Device getDevice() const override { return {static_type, 0}; }
  void setDevice(c10::Device /*device*/) const override {}
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

struct NpuHooks final : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
};

Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
             std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
             std::optional<bool> /*pinned*/, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &allocator,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   type.value_or(at::kFloat), format);
}

Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                     std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                     std::optional<at::Device> /*device*/, std::optional<bool> /*pinned*/) {
  return at::detail::empty_strided_generic(sizes, strides, &allocator,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           type.value_or(at::kFloat));
}

/// The tensor as one of the CPU's, over the same memory.
Tensor on_cpu(const Tensor& tensor) {
  const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes,
                       c10::DataPtr(tensor.storage().mutable_data(), at::kCPU));
  Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  return view;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool /*non_blocking*/) {
  on_cpu(to).copy_(on_cpu(from));
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

const Tensor& resize(const Tensor& tensor, at::SymIntArrayRef sizes,
                     std::optional<at::MemoryFormat> /*format*/) {
  const std::vector<int64_t> wanted = C10_AS_INTARRAYREF_SLOW(sizes).vec();
  at::native::resize_impl_cpu_(tensor.unsafeGetTensorImpl(), wanted, std::nullopt);
  return tensor;
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

}  // namespace

namespace at {
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator)
}  // namespace at
namespace c10::impl {
C10_REGISTER_GUARD_IMPL(PrivateUse1, NpuGuard)
}  // namespace c10::impl

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("resize_", &resize);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}

/// Whether the device's memory that was asked for last was this.
extern "C" __attribute__((visibility("default"))) int npu_allocated_last(const void* memory) {
  return allocator.last == memory ? 1 : 0;
}

/// Names the device, once in a process, before the first tensor of it.
extern "C" __attribute__((visibility("default"))) void register_npu() {
  static NpuHooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  c10::register_privateuse1_backend("npu");
}
