// Views: tensors over memory that they do not own, and tensors without data.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TENSORS_VIEWS_H_
#define ATEN_BRIDGE_TENSORS_VIEWS_H_

#include <aten_bridge/core/operand_desc.h>
#include <aten_bridge/tensors/torch.h>
#include <c10/core/Allocator.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

/// PyTorch's name of a dtype; Undefined for kNone and for what this libtorch does not have.
inline at::ScalarType scalar_type(DType dtype) noexcept {
  return detail::kScalarTypes[static_cast<std::size_t>(dtype)];
}

}  // namespace aten_bridge

namespace aten_bridge::detail {

/// The host's name of a dtype where it has one: "float32", not "Float".
[[gnu::cold]] inline std::string scalar_type_text(at::ScalarType type) {
  const DType dtype = dtype_of(type);
  return dtype == DType::kNone ? c10::toString(type) : std::string(dtype_name(dtype));
}

/// "float32 [2, 3]" or "an undefined tensor".
[[gnu::cold]] inline std::string tensor_text(const at::Tensor& tensor) {
  return !tensor.defined() ? "an undefined tensor"
                           : scalar_type_text(tensor.scalar_type()) + ' ' +
                                 shape_text(tensor.sizes().data(), static_cast<int>(tensor.dim()));
}

/// A row-major tensor over memory that it does not own. With an allocator, resizing it beyond
/// `bytes` gives it memory of its own. Not at::from_blob, whose storage cannot be resized.
inline at::Tensor make_tensor(void* data, c10::Device device, std::size_t bytes,
                              c10::Allocator* allocator, at::ScalarType type,
                              at::IntArrayRef sizes) {
  const auto key = device.is_cpu()    ? c10::DispatchKey::CPU
                   : device.is_cuda() ? c10::DispatchKey::CUDA
                                      : c10::DispatchKey::Meta;
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(data, device),
                       allocator, /*resizable=*/allocator != nullptr);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

/// The bytes from the operand's data to the end of its last element.
inline std::size_t desc_bytes(const OperandDesc& desc) {
  int64_t elements = desc.numel;
  if (desc.strides != nullptr && desc.numel > 0) {
    elements = desc.offset + 1;
    for (int i = 0; i < desc.ndim; ++i) {
      elements += (desc.sizes[i] - 1) * desc.strides[i];
    }
  }
  return static_cast<std::size_t>(elements) * dtype_itemsize(desc.dtype);
}

/// Whether ATen can use the operand's memory. Of a complex128 the compiler takes both halves at
/// once, at a multiple of 16 bytes; an array of NumPy's may begin at 8 behind one. All others it
/// takes as they lie.
inline bool is_aligned(const OperandDesc& desc) {
  return desc.dtype != DType::kComplex128 || desc.numel == 0 ||
         reinterpret_cast<std::uintptr_t>(desc.data) % alignof(c10::complex<double>) == 0;
}

[[gnu::cold]] inline void add_alignment_fault(const OperandName& name, const OperandDesc& desc,
                                              Report& report) {
  report.add(Status::kDtype, name,
             {desc.text(), " at a multiple of 16 bytes", kGot, "an address that is not"});
}

/// What is wrong with a dtype that this version of PyTorch lacks.
[[gnu::cold]] inline Fault missing_dtype(const Part& got) {
  return {"a dtype of this version of PyTorch", kGot, got};
}

/// A tensor over the operand's memory, undefined for None. Adds to `report` a dtype that this
/// libtorch does not have.
///
/// Without an allocator, ATen refuses to resize the tensor beyond the host's buffer. An output of
/// ATEN_BRIDGE_EXPORT has one and so moves to memory of its own: it is found out after the body, by
/// a check that can name the sizes.
template <bool kMayBeStrided>
[[gnu::noinline]] at::Tensor make_view(const OperandDesc& desc, const OperandName& name,
                                       c10::Device device, c10::Allocator* allocator,
                                       Report& report) {
  if (desc.is_none()) {
    return {};
  }
  const at::ScalarType type = scalar_type(desc.dtype);
  if (type == at::ScalarType::Undefined) {
    report.add(Status::kDtype, name, missing_dtype(desc.text()));
    return {};
  }
  const at::IntArrayRef sizes(desc.sizes, static_cast<std::size_t>(desc.ndim));
  at::Tensor view = make_tensor(desc.data, device, desc_bytes(desc), allocator, type, sizes);
  if constexpr (kMayBeStrided) {
    if (desc.strides != nullptr) {
      view.unsafeGetTensorImpl()->set_sizes_and_strides(
          sizes, at::IntArrayRef(desc.strides, sizes.size()), desc.offset);
    }
  }
  return view;
}

/// A tensor without data; to ask for its data is an error.
[[gnu::cold]] inline at::Tensor make_meta(at::IntArrayRef sizes, at::ScalarType type) {
  at::Tensor tensor = make_tensor(nullptr, at::kMeta, 0, c10::GetAllocator(at::kCPU), type, sizes);
  forbid_data(tensor.storage().unsafeGetStorageImpl(),
              "expected a tensor with data, got a meta tensor", 0);
  return tensor;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_TENSORS_VIEWS_H_
