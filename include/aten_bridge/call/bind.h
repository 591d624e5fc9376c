// Binding: the operands of a call are counted, checked, and get their views.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_BIND_H_
#define ATEN_BRIDGE_CALL_BIND_H_

#include <aten_bridge/call/host.h>
#include <aten_bridge/call/outputs.h>
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

/// The check of a parameter; null if there is none.
inline const OperandCheck* find_check(const KernelDescriptor& kernel, Role role, int parameter) {
  if (kernel.is_gradient && role == Role::kOutput) {
    return nullptr;  // the checks are those of the forward kernel
  }
  for (int i = 0; i < kernel.check_count; ++i) {
    if (kernel.checks[i].role() == role && parameter-- == 0) {
      return &kernel.checks[i];
    }
  }
  return nullptr;
}

inline OperandName operand_name(const OperandCheck* check, Role role, int index) {
  return {role, index, check == nullptr ? nullptr : check->name()};
}

[[gnu::cold]] inline void add_count_fault(bool has_list, int inputs, int outputs,
                                          const std::string& got, const char* what_to_compare,
                                          Report& report) {
  report.add(Status::kCount,
             {"expected ", has_list ? "at least " : "", count_text(inputs, "input"), " and ",
              count_text(outputs, "output"), ", got ", got, "; compare ", what_to_compare});
}

/// Takes `count` for the number of inputs and outputs, and divides them. False, with the report,
/// if the kernel does not have as many.
inline bool count_operands(const KernelDescriptor& kernel, int count, Arguments& arguments,
                           Report& report) {
  const bool has_list = kernel.list_begin >= 0;
  const int fixed = kernel.inputs + kernel.outputs - (has_list ? 1 : 0);
  const int each = kernel.lists_outputs ? 2 : 1;  // operands of a tensor of the list
  if (has_list ? count < fixed || (count - fixed) % each != 0 : count != fixed) {
    add_count_fault(has_list, fixed - kernel.outputs, kernel.outputs, count_text(count, "slot"),
                    kernel.messages->operands, report);
    return false;
  }
  arguments.list_begin = kernel.list_begin;
  arguments.list_size = has_list ? (count - fixed) / each : 0;
  arguments.outputs = kernel.outputs + (kernel.lists_outputs ? arguments.list_size : 0);
  arguments.inputs = count - arguments.outputs;
  return true;
}

/// The same where the host tells how many of them are inputs. A kernel without outputs writes its
/// inputs. There may be more outputs than it has: where an operator is made of others,
/// MindSpore 2.10 now and then gives one of them the outputs of all, its own first (3 in 100 calls
/// of mint.div with a rounding mode, whose part Trunc got 2).
inline bool count_told_operands(const KernelDescriptor& kernel, int inputs, int outputs,
                                Arguments& arguments, Report& report) {
  const bool has_list = kernel.list_begin >= 0;
  const int fixed = kernel.inputs - (has_list ? 1 : 0);
  if ((has_list ? inputs < fixed : inputs != fixed) || outputs < kernel.outputs) {
    add_count_fault(has_list, fixed, kernel.outputs, join({inputs, " and ", outputs}),
                    kernel.messages->operands, report);
    return false;
  }
  arguments.list_begin = kernel.list_begin;
  arguments.list_size = has_list ? inputs - fixed : 0;
  arguments.outputs = kernel.outputs;
  arguments.inputs = inputs;
  return true;
}

/// The same where the host tells how many of all are inputs, and the others are its outputs.
inline bool count_exact_operands(const KernelDescriptor& kernel, int inputs, int count,
                                 Arguments& arguments, Report& report) {
  const bool has_list = kernel.list_begin >= 0;
  const int fixed = kernel.inputs - (has_list ? 1 : 0);
  const int listed = kernel.lists_outputs ? inputs - fixed : 0;
  if ((has_list ? inputs < fixed : inputs != fixed) || count - inputs != kernel.outputs + listed) {
    add_count_fault(has_list, fixed, kernel.outputs, join({inputs, " and ", count - inputs}),
                    kernel.messages->operands, report);
    return false;
  }
  arguments.list_begin = kernel.list_begin;
  arguments.list_size = has_list ? inputs - fixed : 0;
  arguments.inputs = inputs;
  arguments.outputs = count - inputs;
  return true;
}

/// How many operands there are where so many are inputs.
inline int operand_count(const KernelDescriptor& kernel, int inputs) {
  const int listed = kernel.lists_outputs ? std::max(0, inputs - kernel.inputs + 1) : 0;
  return inputs + kernel.outputs + listed;
}

/// Adds what is wrong with an input or output for its parameter.
[[gnu::noinline]] inline void check_operand(const ParameterInfo& binding, const OperandCheck* check,
                                            CheckRun& checks, const Operand& operand,
                                            Report& report) {
  const OperandDesc& desc = operand.desc;
  if (desc.is_none()) {
    if (!binding.optional) {
      report.add(Status::kDtype,
                 {operand.name.text(), ": expected a ",
                  binding.kind == ParameterKind::kNumber ? "number" : "tensor", ", got None"});
    }
    return;
  }
  if (binding.kind == ParameterKind::kNumber && !is_number(binding.number, desc)) {
    report.add(desc.numel == 1 ? Status::kDtype : Status::kShape,
               {operand.name.text(), number_fault(binding.number, desc)});
  }
  if (check != nullptr) {
    checks(*check, operand.name, desc);
  }
}

/// Whether a view of an earlier call can be pointed at other memory: nobody else has it, or a
/// tensor over the same storage, and no kernel made something else of it than of another shape.
/// (One that has got names has another key.)
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
  if (tensor.dim() != desc.ndim || tensor.storage_offset() != desc.offset) {
    return false;
  }
  int64_t stride = 1;
  for (int64_t i = desc.ndim; i-- > 0;) {
    if (sizes[i] != desc.sizes[i] ||
        strides[i] != (wanted_strides == nullptr ? stride : wanted_strides[i])) {
      return false;
    }
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return true;
}

/// After the body: whether the view is as it was made, and nobody else has it. Then nobody can
/// touch it before the next call, whose operand has only to be compared with it.
[[gnu::always_inline]] inline bool mark_reusable(Operand& operand) {
  operand.is_reusable = operand.has_reusable_layout && can_repoint(operand) &&
                        operand.impl->dtype() == operand.type &&
                        operand.storage->nbytes() == operand.bytes &&
                        has_layout(*operand.impl, operand.desc, /*wanted_strides=*/nullptr);
  return operand.is_reusable;
}

/// Whether the operand at `index` is that of the last call again, perhaps elsewhere in memory: then
/// its view has only to be pointed there.
template <class HostCall>
[[gnu::always_inline]] inline bool matches_cached(const HostCall& host, int index,
                                                  const Operand& operand) {
  return operand.is_reusable &&
         host.matches_cached(index, operand.dtype, operand.impl->sizes().data(),
                             operand.desc.ndim) &&
         (host.data(index) != nullptr || operand.desc.numel == 0);
}

/// The operand of an operand that matches_cached(): what it was like, at this call's memory.
template <class HostCall>
void refresh(const HostCall& host, int index, Operand& operand) {
  operand.desc.data = host.data(index);
  operand.desc.sizes = host.sizes(index);
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

/// Whether the operand's view may be settled: row-major from its data on, and not of complex128, of
/// which each call's memory has to be looked at.
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
  operand.has_reusable_layout = has_reusable_layout(desc);
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
[[gnu::cold, gnu::noinline]] inline void align(Arguments& arguments, Operand& operand) {
  auto aligned = std::make_unique<AlignedCopy>();
  aligned->host_data = operand.desc.data;
  aligned->bytes = desc_bytes(operand.desc);
  aligned->copy = c10::GetCPUAllocator()->allocate(2 * aligned->bytes);
  auto* const copy = static_cast<char*>(aligned->copy.get());
  std::memcpy(copy, aligned->host_data, aligned->bytes);
  std::memcpy(copy + aligned->bytes, aligned->host_data, aligned->bytes);
  aligned->next = std::move(arguments.copies);
  arguments.copies = std::move(aligned);
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
[[gnu::cold, gnu::noinline]] inline void prepare(const KernelDescriptor& kernel,
                                                 const Arguments& arguments, OperandCache& kept) {
  kept.kernel = &kernel;
  kept.count = arguments.size();
  kept.operands.resize(static_cast<std::size_t>(arguments.size()));
  for (int i = 0; i < arguments.size(); ++i) {
    const bool is_input = i < arguments.inputs;
    const Role role = is_input ? Role::kInput : Role::kOutput;
    const int parameter = is_input ? input_parameter(arguments, i) : i - arguments.inputs;
    Operand& operand = kept.operands[static_cast<std::size_t>(i)];
    operand.check = kernel.check_count == 0 ? nullptr : find_check(kernel, role, parameter);
    operand.name = operand_name(operand.check, role, is_input ? i : parameter);
    operand.is_reusable = false;
  }
}

/// Fills the operands of a call that has another than the last one, or a number; adds to the report
/// all that are wrong.
template <class HostCall, class Device>
[[gnu::noinline]] void bind_slow(const KernelDescriptor& kernel, const HostCall& host,
                                 Device& device, Arguments& arguments, Report& report) {
  CheckRun checks(report);
  constexpr ParameterInfo kOutputBinding;
  const int size = arguments.size();
  const auto binding_of = [&](int i) -> const ParameterInfo& {
    return i < arguments.inputs ? kernel.bindings[input_parameter(arguments, i)] : kOutputBinding;
  };
  for (int i = 0; i < size; ++i) {
    Operand& operand = arguments.operands[i];
    const ParameterInfo& binding = binding_of(i);
    const bool is_number = binding.kind == ParameterKind::kNumber;
    if (!operand.matches_cached && !host.read(i, operand.name, operand.desc, report)) {
      continue;
    }
    if (!(is_number ? device.fetch(operand.desc, operand.number, operand.name, report)
                    : device.locate(operand.desc, operand.name, report))) {
      continue;
    }
    if (is_number) {
      host.refine(i, binding, operand);
    } else if (!is_aligned(operand.desc)) {
      if constexpr (Device::kType == at::kCPU) {
        align(arguments, operand);
      } else {
        add_alignment_fault(operand.name, operand.desc, report);
      }
    }
    if (operand.desc.is_none() || is_number || operand.check != nullptr) {
      check_operand(binding, operand.check, checks, operand, report);
    }
  }
  report.raise_if_failed();
  device.enter();
  for (int i = 0; i < size; ++i) {
    Operand& operand = arguments.operands[i];
    if (binding_of(i).kind == ParameterKind::kNumber) {
      operand.view.reset();
    } else if (operand.matches_cached && operand.impl->device() == device.device()) {
      repoint(operand, device.device());
    } else {
      set_view<HostCall::kStridesInputs>(operand, device.device(), Device::allocator(), report);
    }
  }
  report.raise_if_failed();
}

/// Fills the operands from the call; adds to the report all that are wrong.
template <class HostCall, class Device>
[[gnu::always_inline]] inline void bind_operands(const KernelDescriptor& kernel,
                                                 const HostCall& host, Device& device,
                                                 Arguments& arguments, Report& report) {
  Operand* const begin = arguments.operands;
  Operand* const end = begin + arguments.size();
  bool are_again = true;
  int i = 0;
  for (Operand* operand = begin; operand != end; ++operand, ++i) {
    operand->matches_cached = matches_cached(host, i, *operand);
    operand->is_reusable = false;
    are_again = are_again && operand->matches_cached;
    if (operand->matches_cached) {
      refresh(host, i, *operand);
    }
  }
  if (are_again && report.ok() && !device.is_one_of_several()) {  // nothing to locate or enter
    for (Operand* operand = begin; operand != end; ++operand) {
      repoint(*operand, device.device());
    }
  } else {
    bind_slow(kernel, host, device, arguments, report);
  }
  fill_list(arguments);
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_BIND_H_
