// Results in PyTorch: what a body did to its outputs, and memory that is the caller's alone.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_RESULTS_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_RESULTS_H_

#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>
#include <aten_bridge/call/bind.h>
#include <aten_bridge/call/infer.h>
#include <aten_bridge/call/results.h>
#include <aten_bridge/hosts/pytorch/operands.h>
#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/tensors/exceptions.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void raise_undefined(const KernelDescriptor& kernel,
                                                                   CallMode mode,
                                                                   const Tensors& results) {
  Report report(kernel.operator_name);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) {
      report.add(Status::kOutput, output_name(kernel, i),
                 {"a tensor", kGot, "an undefined tensor from the ",
                  mode == CallMode::kMeta ? "meta function" : "kernel"});
    }
  }
  report.raise();
}

/// Throws where results are undefined.
[[gnu::always_inline]] inline void check_defined(const KernelDescriptor& kernel, CallMode mode,
                                                 const Tensors& results) {
  for (const at::Tensor& result : results) {
    if (!result.defined()) {
      raise_undefined(kernel, mode, results);
    }
  }
}

[[noreturn, gnu::cold, gnu::noinline]] inline void raise_without_data(
    const KernelDescriptor& kernel, const Tensors& results) {
  Report report(kernel.operator_name);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].is_meta()) {
      report.add(Status::kOutput, output_name(kernel, i),
                 {"a tensor with data", kGot, tensor_text(results[i]), " on meta from the kernel"});
    }
  }
  report.raise();
}

/// Throws where results are undefined, or where those of a run have no data, which a compiled
/// program would read.
[[gnu::always_inline]] inline void check_made(const KernelDescriptor& kernel, CallMode mode,
                                              const Tensors& results) {
  check_defined(kernel, mode, results);
  for (const at::Tensor& result : results) {
    if (mode == CallMode::kExecute && result.is_meta()) {
      raise_without_data(kernel, results);
    }
  }
}

[[noreturn, gnu::cold, gnu::noinline]] inline void raise_without_meta(
    const KernelDescriptor& kernel) {
  raise(Status::kShape,
        {kernel.operator_name, ": expected a meta function, which tells the sizes of ",
         "the results, or out, or the gradient of a kernel of this library with ",
         "an output for each tensor among its inputs, got none of these; give the ",
         "kernel a meta function: aten_bridge::meta(function)"});
}

//===--- outputs that a body resizes ---===//

/// kUnwritten in as many dimensions as a tensor has without memory of its own, which is quicker. A
/// result may have such sizes more often.
inline constexpr std::array<int64_t, 5> kShortUnwritten = {};

/// Parts of a tensor that PyTorch lets only its own kinds of tensors change.
struct PartsOfTensor : c10::TensorImpl {
  static c10::DispatchKeySet& keys(c10::TensorImpl& tensor) {
    return tensor.*(&PartsOfTensor::key_set_);
  }
  static auto& sizes(c10::TensorImpl& tensor) {
    return tensor.*(&PartsOfTensor::sizes_and_strides_);
  }
};

/// A tensor of the sizes kShortUnwritten like the first input. On the CPU it is one of the sizes
/// [0] with dimensions added, in a third of the time of at::empty().
[[gnu::noinline, gnu::flatten]] inline at::Tensor make_short_unwritten(const Arguments& arguments,
                                                                       c10::Device device) {
  const at::Tensor* const first = first_tensor(arguments);
  if (first == nullptr || !device.is_cpu()) {
    return at::empty(kShortUnwritten, options_of_first(arguments, device));
  }
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, device),
                   c10::GetAllocator(at::kCPU), /*resizable=*/true),
      c10::DispatchKeySet(c10::DispatchKey::CPU), first->dtype());
  PartsOfTensor::sizes(*tensor.unsafeGetTensorImpl()).resize(kShortUnwritten.size());
  return tensor;
}

/// Whether a body may have left such a tensor as it was.
inline bool is_short_unwritten(const at::Tensor& tensor) {
  return tensor.sizes() == at::IntArrayRef(kShortUnwritten);
}

/// Throws an error of PyTorch's as what it means: that the body does not resize.
[[gnu::cold, gnu::noinline]] inline void raise_if_not_resized(const KernelDescriptor& kernel,
                                                              const c10::Error& error) {
  if (is_not_resized(exception_text(error))) {
    raise(Status::kShape, {kernel.operator_name, ": ", not_resized().text()});
  }
}

/// Whether an output is the tensor that the body was given; it may have assigned another one.
inline bool is_same_tensor(const Operand& output) {
  return output.view.unsafeGetTensorImpl() == output.impl;
}

//===--- outputs that a body writes where they are ---===//

/// Makes tensors the outputs, whose operands are there. They are moved, so that a result has no
/// second owner once take_outputs() has moved it back.
[[gnu::always_inline]] inline void set_outputs(const Arguments& arguments, Tensors& outputs) {
  for (int i = 0; i < arguments.outputs; ++i) {
    Operand& operand = arguments.output(i);
    operand.check = find_check(*arguments.kernel, Role::kOutput, i);
    operand.name = operand_name(operand.check, Role::kOutput, i);
    operand.view = std::move(outputs[static_cast<std::size_t>(i)]);
    operand.impl = operand.view.unsafeGetTensorImpl();
  }
}

[[gnu::always_inline]] inline void take_outputs(const Arguments& arguments, Tensors& outputs) {
  for (int i = 0; i < arguments.outputs; ++i) {
    outputs[static_cast<std::size_t>(i)] = std::move(arguments.output(i).view);
  }
}

/// Gives a tensor whose sizes are symbols those of a row-major one, which are numbers. Measured:
/// PyTorch 2.11's resize_output_symint refuses to ("tried to directly modify sizes").
[[gnu::cold]] inline void resize_symbols(const at::Tensor& tensor, const at::Tensor& like) {
  if (tensor.sym_sizes() == like.sym_sizes()) {
    return;
  }
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  impl.set_sizes_and_strides(like.sym_sizes(), like.sym_strides());
  const c10::SymInt bytes =
      (like.sym_numel() + impl.sym_storage_offset()) * static_cast<int64_t>(tensor.itemsize());
  c10::StorageImpl& storage = *impl.unsafe_storage().unsafeGetStorageImpl();
  if (storage.sym_nbytes() < bytes) {
    at::native::resize_bytes_meta(&storage, bytes);
  }
}

/// Gives a tensor another's sizes; PyTorch warns where it had elements. Measured: on the CPU,
/// resize_output_symint of PyTorch 2.1.2 lets a tensor that grows keep its smaller memory.
inline void resize_like(const at::Tensor& tensor, const at::Tensor& like) {
  const bool is_symbolic = like.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() && !is_symbolic) {
    resize_symbols(tensor, like);
  } else if (is_symbolic) {
    at::native::resize_output_symint(tensor, like.sym_sizes());
  } else {
    at::native::resize_output(tensor, like.sizes());
  }
}

/// Gives the tensors that a body writes, which a caller has given or which stand for those, the
/// sizes that the results will have.
inline void fit(const KernelDescriptor& kernel, const Tensors& given, const Tensors& expected,
                Tensors& outs) {
  Report report(kernel.operator_name);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].scalar_type() != expected[i].scalar_type()) {
      report.add(Status::kDtype, output_name(kernel, i),
                 {scalar_type_text(expected[i].scalar_type()), kGot, tensor_text(given[i])});
    }
  }
  report.raise_if_failed();
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (outs[i].sym_sizes() == expected[i].sym_sizes()) {
      continue;
    }
    if (outs[i].is_same(given[i])) {
      resize_like(outs[i], expected[i]);
    } else {
      outs[i] = expected[i];
    }
  }
}

/// Gives tensors that a caller wants to have written the sizes and elements of the results.
inline void resize_given(const Tensors& given, const Tensors& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!given[i].is_same(results[i])) {
      resize_like(given[i], results[i]);
      given[i].copy_(results[i]);
    }
  }
}

//===--- results as the caller gets them ---===//

/// Whether a result has the memory of an input, or of a result before it.
[[gnu::always_inline]] inline bool is_shared(const Arguments& arguments, const Tensors& results,
                                             std::size_t index) {
  const at::Tensor& result = results[index];
  for (const Operand* input = arguments.operands; input != arguments.operands + arguments.inputs;
       ++input) {
    if (input->view.defined() && shares_memory(result, input->view)) {
      return true;
    }
  }
  for (std::size_t i = 0; i < index; ++i) {
    if (shares_memory(result, results[i])) {
      return true;
    }
  }
  return false;
}

/// Replaces tensors that a caller wants to have written and the body cannot write where they are.
template <class IsWritable>
void replace_unwritable(const Arguments& arguments, Tensors& outs, const IsWritable& is_writable) {
  const Tensors given = outs;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!is_writable(given[i]) || is_shared(arguments, given, i)) {
      outs[i] = at::empty_symint(given[i].sym_sizes(), given[i].options());
    }
  }
}

/// Whether a result of the kernel lies in its memory as PyTorch takes it to.
[[gnu::always_inline]] inline bool lies_as_told(const KernelDescriptor& kernel,
                                                const at::Tensor& result) {
  return result.layout() != at::kStrided ||
         (kernel.returns_row_major ? is_row_major_dense(result) : !is_pending(result));
}

[[gnu::noinline]] inline at::Tensor copy_result(const KernelDescriptor& kernel, CallMode mode,
                                                const at::Tensor& result) {
  return mode == CallMode::kMeta        ? at::empty_like(result)
         : lies_as_told(kernel, result) ? result.clone()
         : kernel.returns_row_major     ? to_row_major_dense(result)
                                        : result.resolve_conj().resolve_neg();
}

/// Copies results in memory of others, to which autograd and the caller write, or which ends with
/// the call, and those that do not lie as they should.
[[gnu::always_inline]] inline void separate(const Arguments& arguments, CallMode mode,
                                            Tensors& results) {
  const KernelDescriptor& kernel = *arguments.kernel;
  for (std::size_t i = 0; i < results.size(); ++i) {
    at::Tensor& result = results[i];
    if (kernel.records && result.requires_grad()) {
      result = result.detach();
    }
    if (is_shared(arguments, results, i) ||
        (mode == CallMode::kExecute
             ? !lies_as_told(kernel, result) || is_lent(result) || is_held(result)
             : is_pending(result))) {
      result = copy_result(kernel, mode, result);
    }
  }
}

/// Tells autograd that a body has written tensors that a caller gave.
inline void bump_versions(const Tensors& outs) {
  for (const at::Tensor& out : outs) {
    if (!out.is_inference()) {
      out.unsafeGetTensorImpl()->bump_version();
    }
  }
}

/// Makes results what PyTorch's own operators return in inference mode, in which no body runs:
/// tensors without what autograd needs. One that has another owner too stays as it is, and a new
/// one over the same memory is returned.
inline void make_inference_tensors(Tensors& results) {
  for (at::Tensor& result : results) {
    if (result.is_inference()) {
      continue;
    }
    if (result.use_count() > 1 || result.weak_use_count() > 1 ||
        result.unsafeGetTensorImpl()->autograd_meta() != nullptr) {
      result = at::Tensor(result.unsafeGetTensorImpl()->shallow_copy_and_detach(
          c10::VariableVersion(), /*allow_tensor_metadata_change=*/true));
    }
    c10::TensorImpl& tensor = *result.unsafeGetTensorImpl();
    c10::DispatchKeySet& keys = PartsOfTensor::keys(tensor);
    keys = keys - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
    tensor.set_version_counter(c10::VariableVersion());
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_RESULTS_H_
