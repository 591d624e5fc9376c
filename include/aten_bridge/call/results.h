// Results: what becomes of what a kernel returns, and what it may do to its outputs.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_RESULTS_H_
#define ATEN_BRIDGE_CALL_RESULTS_H_

#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/interface/operands.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// " as out_shape and out_dtype or the meta function say"; a data-dependent kernel has no
/// meta function, and a run for the sizes.
[[gnu::cold]] inline std::string as_allocated(const Arguments& arguments) {
  const char* other =
      arguments.kernel->is_data_dependent ? "the run for the sizes" : "the meta function";
  return join({" as ", arguments.messages->results, " or ", other, " say"});
}

/// Where the tensor's first element is; null if it has no storage.
inline const void* first_element(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  return !storage ? nullptr
                  : static_cast<const char*>(storage.data()) +
                        tensor.storage_offset() * static_cast<int64_t>(tensor.itemsize());
}

/// Whether a value is in memory that PyTorch does not own, such as an input's or a workspace's: it
/// may be gone after the call.
[[gnu::always_inline]] inline bool is_lent(const at::Tensor& value) {
  const c10::Storage& storage = value.unsafeGetTensorImpl()->unsafe_storage();
  return storage && storage.nbytes() > 0 && storage.data_ptr().get_context() == nullptr;
}

/// Whether the kernel has kept a result or its memory, in its state or in a constant.
[[gnu::always_inline]] inline bool is_held(const at::Tensor& result) {
  const c10::Storage& storage = result.unsafeGetTensorImpl()->unsafe_storage();
  return result.use_count() > 1 || (storage && storage.use_count() > 1);
}

/// Whether the result is what the output has already, in the same place.
[[gnu::cold, gnu::noinline]] inline bool is_in_place(const at::Tensor& output,
                                                     const at::Tensor& result) {
  return result.has_storage() && first_element(result) == first_element(output) &&
         result.sizes() == output.sizes() && result.scalar_type() == output.scalar_type() &&
         result.is_contiguous() && output.is_contiguous() && !result.is_conj() && !result.is_neg();
}

/// The results, of which those that copying another one could overwrite are clones.
[[gnu::cold, gnu::noinline]] inline Tensors separated(const Arguments& arguments,
                                                      const at::Tensor* results, int count) {
  Tensors separate;
  for (int i = 0; i < count; ++i) {
    const bool stays = !overlaps_outputs(arguments, results[i]) ||
                       is_in_place(arguments.output(i).view, results[i]);
    separate.push_back(stays ? results[i] : results[i].clone(at::MemoryFormat::Contiguous));
  }
  return separate;
}

/// Writes what a kernel returns into the memory that a host has allocated for its outputs, or into
/// the start of it, and tells the sizes.
class WriteResults final : public ResultPolicy {
 public:
  /// `sizes`, if not null, get those of each result, for which there is memory for the largest.
  explicit WriteResults(std::vector<std::vector<int64_t>>* sizes)
      : ResultPolicy(/*host_has_memory=*/true), sizes_(sizes) {}

  void take(const Arguments& arguments, at::Tensor* results, int count) const override {
    bool overlaps = false;
    for (int i = 0; i < count; ++i) {
      const Operand& output = arguments.output(i);
      if (!has_form(*arguments.kernel, output, results[i]) || !is_there(output, results[i])) {
        refuse(arguments, results, count);
      }
      overlaps = overlaps || overlaps_outputs(arguments, results[i]);
    }
    if (overlaps || sizes_ != nullptr) {
      write_with_care(arguments, results, count);
      return;
    }
    for (int i = 0; i < count; ++i) {
      write(arguments.output(i).view, results[i]);
    }
  }

 private:
  bool has_form(const KernelDescriptor& kernel, const Operand& output,
                const at::Tensor& result) const {
    if (!result.defined()) {
      return kernel.is_gradient;
    }
    return result.scalar_type() == output.view.scalar_type() &&
           (sizes_ != nullptr ? result.numel() <= output.desc.numel
                              : result.sizes() == output.view.sizes());
  }
  static bool is_there(const Operand& output, const at::Tensor& result) {
    return !result.defined() || result.device() == output.view.device();
  }

  [[noreturn, gnu::cold, gnu::noinline]] void refuse(const Arguments& arguments,
                                                     const at::Tensor* results, int count) const {
    const KernelDescriptor& kernel = *arguments.kernel;
    Report report(kernel.operator_name);
    for (int i = 0; i < count; ++i) {
      const Operand& output = arguments.output(i);
      if (!has_form(kernel, output, results[i])) {
        report.add(
            Status::kOutput, output.name,
            {output.desc.text(), sizes_ != nullptr ? " or less of it" : as_allocated(arguments),
             kGot, tensor_text(results[i]), " from the kernel"});
      } else if (!is_there(output, results[i])) {
        report.add(Status::kDevice, output.name,
                   {"a tensor on ", output.view.device().str(), kGot, "one on ",
                    results[i].device().str(), " from the kernel"});
      }
    }
    report.raise();
  }

  static void write(const at::Tensor& output, const at::Tensor& result) {
    if (result.defined()) {
      output.copy_(result);
    } else {
      output.zero_();  // a gradient
    }
  }

  /// Where results are in the host's memory, or only the start of that is written.
  [[gnu::cold, gnu::noinline]] void write_with_care(const Arguments& arguments,
                                                    const at::Tensor* results, int count) const {
    const Tensors separate = separated(arguments, results, count);
    for (int i = 0; i < count; ++i) {
      const at::Tensor& result = separate[static_cast<std::size_t>(i)];
      const at::Tensor& output = arguments.output(i).view;
      if (sizes_ == nullptr) {
        if (!result.defined() || !is_in_place(output, result)) {
          write(output, result);
        }
        continue;
      }
      output.flatten().slice(0, 0, result.numel()).copy_(result.flatten());
      sizes_->push_back(result.sizes().vec());
    }
  }

  std::vector<std::vector<int64_t>>* sizes_;
};

/// Hands on what a kernel returns, to a host that takes new tensors.
class ReturnResults final : public ResultPolicy {
 public:
  explicit ReturnResults(Tensors& to) : ResultPolicy(/*host_has_memory=*/false), to_(to) {}

  void take(const Arguments& /*arguments*/, at::Tensor* results, int count) const override {
    for (int i = 0; i < count; ++i) {
      to_.push_back(std::move(results[i]));
    }
  }

 private:
  Tensors& to_;
};

/// Sizes of tensors with symbolic sizes, -1 for a symbol.
using KeptSizes = std::vector<std::unique_ptr<std::vector<int64_t>>>;

[[gnu::noinline]] inline void describe_symbols(OperandDesc& desc, const at::Tensor& tensor,
                                               KeptSizes& kept) {
  kept.push_back(std::make_unique<std::vector<int64_t>>());
  for (const c10::SymInt& size : tensor.sym_sizes()) {
    kept.back()->push_back(size.maybe_as_int().value_or(-1));
  }
  desc.ndim = static_cast<int>(tensor.dim());
  desc.sizes = kept.back()->data();
  desc.numel = 1;
}

/// What checks know of a tensor that is defined. A size that is a symbol is not known.
[[gnu::always_inline]] inline void describe(OperandDesc& desc, const at::Tensor& tensor,
                                            KeptSizes& kept) {
  const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  desc.dtype = dtype_of(tensor.scalar_type());
  if (impl->has_symbolic_sizes_strides()) {
    describe_symbols(desc, tensor, kept);
  } else {
    const at::IntArrayRef sizes = impl->sizes();
    desc.ndim = static_cast<int>(sizes.size());
    desc.sizes = sizes.data();
    desc.numel = impl->numel();
  }
}

inline OperandName output_name(const KernelDescriptor& kernel, std::size_t index) {
  const int i = static_cast<int>(index);
  return operand_name(find_check(kernel, Role::kOutput, i), Role::kOutput, i);
}

/// Runs the check of an output, if it has one.
inline void check_output(const KernelDescriptor& kernel, std::size_t index, const OperandDesc& desc,
                         CheckRun& checks) {
  const OperandCheck* const check = find_check(kernel, Role::kOutput, static_cast<int>(index));
  if (check != nullptr) {
    checks(*check, output_name(kernel, index), desc);
  }
}

/// Throws if the results fail the checks of a kernel's outputs. The inputs have passed theirs, and
/// tell what the names of sizes stand for.
[[gnu::noinline]] inline void check_results(const Arguments& arguments, at::TensorList results) {
  const KernelDescriptor& kernel = *arguments.kernel;
  if (find_check(kernel, Role::kOutput, 0) == nullptr) {
    return;
  }
  Report report(kernel.operator_name);
  CheckRun checks(report);
  for (int i = 0; i < arguments.inputs; ++i) {
    const Operand& input = arguments.operands[i];
    if (input.check != nullptr && !input.desc.is_none()) {
      checks(*input.check, input.name, input.desc);
    }
  }
  KeptSizes sizes;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].defined()) {
      OperandDesc desc;
      describe(desc, results[i], sizes);
      check_output(kernel, i, desc, checks);
    }
  }
  report.raise_if_failed();
}

/// Whether a kernel kept the contract: the result is in the host's memory, with the sizes and the
/// dtype that the host allocated it for, row-major. An alias of the view will do.
[[gnu::noinline, gnu::flatten]] inline bool output_is_intact(const Operand& output) {
  const at::Tensor& view = output.view;
  const OperandDesc& desc = output.desc;
  return view.defined() && view.layout() == at::kStrided &&
         view.sizes() == at::IntArrayRef(desc.sizes, static_cast<std::size_t>(desc.ndim)) &&
         view.scalar_type() == scalar_type(desc.dtype) && view.is_contiguous() &&
         (desc.numel == 0 || first_element(view) == desc.data) && !view.is_conj() && !view.is_neg();
}

/// What the kernel did to an output that is not intact.
[[gnu::cold, gnu::noinline]] inline Fault output_fault(const Arguments& arguments,
                                                       const Operand& output) {
  const at::Tensor& view = output.view;
  const OperandDesc& desc = output.desc;
  const char* in_memory = "the result in the host's memory";
  const char* cure = "write with an _out function or with copy_()";
  if (view.unsafeGetTensorImpl() != output.impl) {
    return {in_memory, kGot, "another tensor assigned to the parameter", kDo, cure};
  }
  const std::string as_given = desc.text() + as_allocated(arguments);
  if (view.sizes() != at::IntArrayRef(desc.sizes, static_cast<std::size_t>(desc.ndim))) {
    return {as_given,
            kGot,
            tensor_text(view),
            " because the kernel resized it",
            kDo,
            arguments.messages->resized};
  }
  if (view.scalar_type() != scalar_type(desc.dtype)) {
    return {as_given,
            kGot,
            tensor_text(view),
            " because the kernel changed its dtype",
            kDo,
            arguments.messages->changed_dtype};
  }
  if (desc.numel > 0 && first_element(view) != desc.data) {
    return {in_memory, kGot, "other memory because the kernel replaced the tensor's storage", kDo,
            cure};
  }
  return {"row-major values",
          kGot,
          "strides ",
          shape_text(view.strides().data(), static_cast<int>(view.dim())),
          view.is_conj() || view.is_neg() ? " and a pending conjugation or negation" : "",
          " because the kernel changed the tensor's layout",
          kDo,
          cure};
}

/// Throws an error that says what the kernel did to those of its outputs that are not intact.
[[gnu::noinline]] inline void check_outputs(const Arguments& arguments,
                                            bool (*is_intact)(const Operand&)) {
  Report report(arguments.kernel->operator_name);
  for (int i = 0; i < arguments.outputs; ++i) {
    const Operand& output = arguments.output(i);
    if (!is_intact(output)) {
      report.add(Status::kOutput, output.name, output_fault(arguments, output));
    }
  }
  report.raise_if_failed();
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_RESULTS_H_
