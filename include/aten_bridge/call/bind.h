// Binding: the operands of a call are counted, checked, and get their views.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_BIND_H_
#define ATEN_BRIDGE_CALL_BIND_H_

#include <aten_bridge/call/host.h>
#include <aten_bridge/call/results.h>
#include <aten_bridge/interface/call_sites.h>
#include <aten_bridge/interface/numbers.h>
#include <aten_bridge/tensors/views.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// `inputs` is -1 where the host does not tell how many of `size` operands they are.
[[gnu::cold, gnu::noinline]] inline void add_count_fault(const Arguments& arguments, int inputs,
                                                         int size, Report& report) {
  const KernelDescriptor& kernel = *arguments.kernel;
  const bool has_list = kernel.list_begin >= 0;
  const std::string got =
      inputs >= 0 ? join({inputs, " and ", size - inputs}) : count_text(size, "slot");
  report.add_count({has_list ? "at least " : "",
                    count_text(kernel.inputs - (has_list ? 1 : 0), "input"), " and ",
                    count_text(kernel.outputs, "output"), kGot, got, kDo, "compare ",
                    arguments.messages->operands});
}

/// Sets how many operands a call has whose at::TensorList, if there is one, has so many tensors.
[[gnu::always_inline]] inline void set_counts(const KernelDescriptor& kernel, int listed,
                                              Arguments& arguments) {
  const bool has_list = kernel.list_begin >= 0;
  arguments.list_begin = kernel.list_begin;
  arguments.list_size = listed;
  arguments.inputs = kernel.inputs + (has_list ? listed - 1 : 0);
  arguments.outputs = kernel.outputs + (kernel.lists_outputs ? listed : 0);
}

/// Divides a call's operands into inputs and outputs, and finds the length of the at::TensorList.
/// `inputs` is -1 where the host does not tell how many of `size` they are. False, with the report,
/// if the kernel does not have as many.
///
/// `may_have_more` outputs than the kernel's may come: where an operator is made of others,
/// MindSpore 2.10 now and then gives one of them the outputs of all, its own first (3 in 100 calls
/// of mint.div with a rounding mode, whose part Trunc got 2).
inline bool count_operands(int inputs, int size, bool may_have_more, Arguments& arguments,
                           Report& report) {
  const KernelDescriptor& kernel = *arguments.kernel;
  const bool is_told = inputs >= 0;
  int listed = 0;
  if (kernel.list_begin >= 0) {
    const int fixed = kernel.inputs - 1;
    const int each = kernel.lists_outputs ? 2 : 1;  // operands of a tensor of the list
    listed = is_told ? inputs - fixed : (size - fixed - kernel.outputs) / each;
  }
  set_counts(kernel, listed, arguments);
  const int outputs = size - arguments.inputs;
  if (listed >= 0 && (!is_told || inputs == arguments.inputs) &&
      (outputs == arguments.outputs || (may_have_more && is_told && outputs > arguments.outputs))) {
    return true;
  }
  add_count_fault(arguments, inputs, size, report);
  return false;
}

/// Adds what is wrong with an input or output for its parameter.
[[gnu::noinline]] inline void check_operand(const ParameterInfo& binding, const OperandCheck* check,
                                            CheckRun& checks, const Operand& operand,
                                            Report& report) {
  const OperandDesc& desc = operand.desc;
  if (desc.is_none()) {
    if (!binding.optional) {
      report.add(Status::kDtype, operand.name,
                 {binding.kind == ParameterKind::kNumber ? "a number" : "a tensor", kGot, "None"});
    }
    return;
  }
  if (binding.kind == ParameterKind::kNumber && !is_number(binding.number, desc)) {
    report.add(desc.numel == 1 ? Status::kDtype : Status::kShape, operand.name,
               number_fault(binding.number, desc));
  }
  if (check != nullptr) {
    checks(*check, operand.name, desc);
  }
}

/// Whether a view of an earlier call can be pointed at other memory: it and its storage are
/// uniquely owned, and no kernel changed more of it than its shape. (Names would change its keys.)
inline bool can_repoint(const Operand& operand) {
  const c10::TensorImpl* impl = operand.view.unsafeGetTensorImpl();
  if (impl != operand.impl || operand.view.use_count() != 1 || operand.view.weak_use_count() != 1) {
    return false;
  }
  const c10::Storage& storage = impl->unsafe_storage();
  return storage.unsafeGetStorageImpl() == operand.storage && storage.use_count() == 1 &&
         storage.data() == operand.data && impl->key_set() == operand.keys &&
         impl->autograd_meta() == nullptr && !impl->is_wrapped_number();
}

/// Whether the tensor has the operand's sizes and offset, and these strides; null: it is row-major.
[[gnu::always_inline]] inline bool has_layout(const c10::TensorImpl& tensor,
                                              const OperandDesc& desc,
                                              const int64_t* wanted_strides) {
  const int64_t* const sizes = tensor.sizes().data();
  const int64_t* const strides = tensor.strides().data();
  const bool is_row_major = wanted_strides == nullptr;
  if (tensor.dim() != desc.ndim || tensor.storage_offset() != desc.offset) {
    return false;
  }
  int64_t stride = 1;
  for (int64_t i = desc.ndim; i-- > 0;) {
    const int64_t size = sizes[i];
    if (size != desc.sizes[i] || strides[i] != (is_row_major ? stride : wanted_strides[i])) {
      return false;
    }
    stride = size == 0 ? stride : stride * size;
  }
  return true;
}

/// After the body: true if the view is unmodified and uniquely owned, so that the next call only
/// has to re-point it.
[[gnu::always_inline]] inline bool mark_reusable(Operand& operand) {
  const bool is_reusable = operand.state >= ViewState::kMatched && can_repoint(operand) &&
                           operand.impl->dtype() == operand.type &&
                           operand.storage->nbytes() == operand.bytes &&
                           has_layout(*operand.impl, operand.desc, /*wanted_strides=*/nullptr);
  operand.state = is_reusable ? ViewState::kReusable : ViewState::kUnknown;
  return is_reusable;
}

/// Whether the operand is described as in the last call, perhaps elsewhere in memory: then its view
/// has only to be pointed there, and it has as many elements as then.
template <bool kMayBeStrided>
[[gnu::always_inline]] inline bool matches_cached(const Operand& operand) {
  const OperandDesc& desc = operand.desc;
  if (operand.state != ViewState::kReusable || desc.dtype != operand.dtype ||
      (kMayBeStrided && (desc.strides != nullptr || desc.offset != 0))) {
    return false;
  }
  const at::IntArrayRef sizes = operand.impl->sizes();
  if (static_cast<std::size_t>(desc.ndim) != sizes.size() ||
      (desc.ndim > 0 && desc.sizes == nullptr) || (desc.data == nullptr && desc.numel != 0)) {
    return false;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (desc.sizes[i] != sizes[i]) {
      return false;
    }
  }
  return true;
}

/// Points the storage of the operand's view at its memory.
inline void repoint(Operand& operand, c10::Device device) {
  if (operand.data != operand.desc.data) {
    operand.data = operand.desc.data;
    operand.view.unsafeGetTensorImpl()
        ->unsafe_storage()
        .unsafeGetStorageImpl()
        ->set_data_ptr_noswap(c10::DataPtr(operand.desc.data, device));
  }
}

/// Whether a later call may find the operand's view as it needs it: row-major from its data on, and
/// not of complex128, of which each call's memory has to be looked at.
inline bool has_reusable_layout(const OperandDesc& desc) {
  return !desc.is_none() && desc.dtype != DType::kComplex128 && desc.strides == nullptr &&
         desc.offset == 0;
}

/// Points the operand's view at its memory, or makes a new one.
template <bool kMayBeStrided>
[[gnu::noinline]] void set_view(Operand& operand, c10::Device device, c10::Allocator* allocator,
                                Report& report) {
  const OperandDesc& desc = operand.desc;
  const at::ScalarType type = scalar_type(desc.dtype);
  operand.state = has_reusable_layout(desc) ? ViewState::kBound : ViewState::kUnknown;
  if (type == at::ScalarType::Undefined || !operand.view.defined() || !can_repoint(operand) ||
      operand.impl->device() != device) {
    operand.view = make_view<kMayBeStrided>(desc, operand.name, device, allocator, report);
    operand.impl = operand.view.unsafeGetTensorImpl();
    if (operand.view.defined()) {
      operand.storage = operand.impl->unsafe_storage().unsafeGetStorageImpl();
      operand.bytes = operand.storage->nbytes();
      operand.keys = operand.impl->key_set();
      operand.type = operand.impl->dtype();
    }
    operand.data = desc.data;
    operand.dtype = operand.view.defined() ? desc.dtype : DType::kNone;
    return;
  }
  operand.dtype = desc.dtype;
  c10::TensorImpl* impl = operand.view.unsafeGetTensorImpl();
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  repoint(operand, device);
  operand.bytes = desc_bytes(desc);
  storage->set_nbytes(operand.bytes);
  operand.type = c10::scalarTypeToTypeMeta(type);
  if (impl->dtype() != operand.type) {
    impl->set_storage_and_dtype(c10::Storage(impl->unsafe_storage()), operand.type);
  }
  if (!has_layout(*impl, desc, desc.strides)) {
    const at::IntArrayRef sizes(desc.sizes, static_cast<std::size_t>(desc.ndim));
    impl->set_storage_offset(desc.offset);
    if (!kMayBeStrided || desc.strides == nullptr) {
      impl->set_sizes_contiguous(sizes);
    } else {
      impl->set_sizes_and_strides(sizes, at::IntArrayRef(desc.strides, sizes.size()));
    }
  }
}

/// Gives the kernel a copy of the memory of an operand that is not is_aligned().
[[gnu::cold, gnu::noinline]] inline void align(const Arguments& arguments, Operand& operand) {
  auto aligned = std::make_unique<AlignedCopy>();
  aligned->host_data = operand.desc.data;
  aligned->bytes = desc_bytes(operand.desc);
  aligned->copy = c10::GetAllocator(at::kCPU)->allocate(2 * aligned->bytes);
  auto* const copy = static_cast<char*>(aligned->copy.get());
  std::memcpy(copy, aligned->host_data, aligned->bytes);
  std::memcpy(copy + aligned->bytes, aligned->host_data, aligned->bytes);
  aligned->next = std::move(*arguments.copies);
  *arguments.copies = std::move(aligned);
  operand.desc.data = copy;
}

/// After the body: the elements that it wrote to copies go to the host's memory. Others do not:
/// they may be nobody's to write, or have been written through another operand.
[[gnu::cold, gnu::noinline]] inline void flush_aligned_copies(const AlignedCopy* copies) {
  constexpr std::size_t kElement = sizeof(c10::complex<double>);
  for (; copies != nullptr; copies = copies->next.get()) {
    const auto* const now = static_cast<const char*>(copies->copy.get());
    const char* const before = now + copies->bytes;
    for (std::size_t i = 0; i < copies->bytes; i += kElement) {
      if (std::memcmp(now + i, before + i, kElement) != 0) {
        std::memcpy(static_cast<char*>(copies->host_data) + i, now + i, kElement);
      }
    }
  }
}

/// Makes room for the operands of a kernel, and names them.
[[gnu::cold, gnu::noinline]] inline void prepare(const Arguments& arguments, OperandCache& cache) {
  cache.kernel = arguments.kernel;
  cache.operands.resize(static_cast<std::size_t>(arguments.size()));
  for (int i = 0; i < arguments.size(); ++i) {
    Operand& operand = cache.operands[static_cast<std::size_t>(i)];
    operand.check = find_check(arguments, i);
    operand.name = operand_name(arguments, i);
    operand.state = ViewState::kUnknown;
  }
}

/// Binds the operands of a call that has others than the last one, or a number; adds to the report
/// all that are wrong.
template <class HostCall, class Device>
[[gnu::noinline]] void bind_slow(const HostCall& host, Device& device,
                                 const OperandDescs::Refusals& refusals, Arguments& arguments,
                                 Report& report) {
  CheckRun checks(report);
  constexpr ParameterInfo kOutputParameter;
  const int size = arguments.size();
  const auto parameter_of = [&](int i) -> const ParameterInfo& {
    return i < arguments.inputs ? arguments.kernel->bindings[input_parameter(arguments, i)]
                                : kOutputParameter;
  };
  for (int i = 0; i < size; ++i) {
    Operand& operand = arguments.operands[i];
    const ParameterInfo& parameter = parameter_of(i);
    const bool is_number = parameter.kind == ParameterKind::kNumber;
    const OperandDescs::Refusal* refusal = refusals.get();
    while (refusal != nullptr && refusal->operand != i) {
      refusal = refusal->next.get();
    }
    if (refusal != nullptr) {
      report.add(refusal->report);
      continue;
    }
    if (operand.state != ViewState::kMatched && !complete(operand.desc, operand.name, report)) {
      continue;
    }
    if (!(is_number ? device.fetch(operand.desc, operand.number, operand.name, report)
                    : device.locate(operand.desc, operand.name, report))) {
      continue;
    }
    if (is_number) {
      host.refine(i, parameter, operand);
    } else if (!is_aligned(operand.desc)) {
      if constexpr (Device::kType == at::kCPU) {
        align(arguments, operand);
      } else {
        add_alignment_fault(operand.name, operand.desc, report);
      }
    }
    if (operand.desc.is_none() || is_number || operand.check != nullptr) {
      check_operand(parameter, operand.check, checks, operand, report);
    }
  }
  report.raise_if_failed();
  device.enter();
  for (int i = 0; i < size; ++i) {
    Operand& operand = arguments.operands[i];
    if (parameter_of(i).kind == ParameterKind::kNumber) {
      operand.view.reset();
    } else if (operand.state == ViewState::kMatched && operand.impl->device() == device.device()) {
      repoint(operand, device.device());
    } else {
      set_view<HostCall::kStridesInputs>(operand, device.device(), Device::allocator(), report);
    }
  }
  report.raise_if_failed();
}

/// Turns descriptions into tensors: points the views of the last call at this one's memory where
/// that is all that differs.
template <class HostCall, class Device>
[[gnu::always_inline]] inline void bind_operands(const HostCall& host, Device& device,
                                                 const OperandDescs::Refusals& refusals,
                                                 Arguments& arguments, Report& report) {
  Operand* const begin = arguments.operands;
  Operand* const end = begin + arguments.size();
  bool is_bound = report.ok() && !device.is_one_of_several();  // nothing to locate or enter
  for (Operand* operand = begin; operand != end; ++operand) {
    if (!matches_cached<HostCall::kStridesInputs>(*operand)) {
      operand->state = ViewState::kUnknown;
      is_bound = false;
    } else {
      operand->state = ViewState::kMatched;
      if (is_bound) {
        repoint(*operand, device.device());
      }
    }
  }
  if (!is_bound) {
    bind_slow(host, device, refusals, arguments, report);
  }
  fill_list(arguments);
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_BIND_H_
