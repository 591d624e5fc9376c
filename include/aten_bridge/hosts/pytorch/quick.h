// The quick way of a call: for kernels from tensors to tensors, and inputs as they are most often.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_QUICK_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_QUICK_H_

#include <ATen/core/ivalue.h>
#include <aten_bridge/hosts/pytorch/operands.h>
#include <aten_bridge/hosts/pytorch/pytorch.h>
#include <aten_bridge/hosts/pytorch/results.h>
#include <aten_bridge/interface/kernel_base.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// A call in which there is nothing to check, to copy or to convert. It does what PyTorchCall does,
/// which is for all calls and takes twice as long (130 and 250 ns besides the body of LeakyRelu).
class FastPathCall {
 public:
  /// Whether calls of a kernel can be such.
  [[gnu::cold]] static bool is_for(const PyTorchKernel& of) {
    const KernelDescriptor& kernel = of.kernel->info;
    return (of.device == at::kCPU || kernel.options.is_composite) &&
           (kernel.returns_results || (kernel.has_meta && !kernel.is_gradient)) &&
           kernel.inputs > 0 && kernel.outputs > 0 &&
           kernel.inputs + kernel.outputs <= kMostOperands && kernel.workspaces == 0 &&
           !kernel.lists_outputs && !kernel.records && !kernel.has_state &&
           !kernel.is_data_dependent &&
           std::all_of(kernel.bindings, kernel.bindings + kernel.inputs,
                       [](const ParameterInfo& input) {
                         return input.kind == ParameterKind::kTensor ||
                                input.kind == ParameterKind::kOptionalTensor;
                       });
  }

  [[gnu::always_inline]] FastPathCall(const KernelDescriptor& kernel, Instance* instance) {
    arguments_.kernel = &kernel;
    arguments_.messages = &kPyTorchMessages;
    arguments_.instance = instance;
    arguments_.operands = reinterpret_cast<Operand*>(memory_);
    arguments_.inputs = kernel.inputs;
    arguments_.outputs = kernel.outputs;
  }

  ~FastPathCall() {
    for (int i = 0; i < outputs_; ++i) {
      arguments_.output(i).~Operand();
    }
  }
  FastPathCall(const FastPathCall&) = delete;
  FastPathCall& operator=(const FastPathCall&) = delete;

  /// Takes the inputs if each is a tensor that the body gets as it is.
  [[gnu::always_inline]] bool take_inputs(const c10::IValue* inputs, CallMode purpose) {
    for (int i = 0; i < arguments_.inputs; ++i) {
      if (!inputs[i].isTensor()) {
        return false;
      }
      const at::Tensor& tensor = inputs[i].toTensor();
      if (!tensor.defined() || (purpose == CallMode::kExecute && !is_taken_as_it_is(tensor))) {
        return false;
      }
      auto* const operand = new (arguments_.operands + i) Operand;
      operand->name = {Role::kInput, i};
      // The caller's stack has it: to count one owner more takes as long as all else here.
      c10::MaybeOwnedTraits<at::Tensor>::assignBorrow(operand->view, tensor);
    }
    return arguments_.kernel->check_count == 0 || are_accepted(purpose);
  }

  /// Calls the kernel's function. False, without results, where it takes more than that.
  [[gnu::always_inline]] bool run(const KernelBase& kernel, CallMode purpose, Tensors& results) {
    if (!kernel.info.returns_results) {
      const bool is_done =
          kernel.info.is_own_meta ? resize(kernel, results) : write(kernel, results);
      if (!is_done) {
        results.clear();
        return false;
      }
    } else {
      arguments_.results = &results;
      kernel.invoke(arguments_);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].defined() ||
          (purpose == CallMode::kExecute &&
           (is_shared(arguments_, results, i) || !lies_as_told(kernel.info, results[i]) ||
            (kernel.info.returns_results && is_held(results[i]))))) {
        finish_results(arguments_, purpose, results);
        break;
      }
    }
    if (kernel.info.check_count > 0 && purpose == CallMode::kExecute) {
      check_results(kernel.info, results);
    }
    return true;
  }

  /// The operands, for an error's text.
  [[gnu::cold]] const Operand* describe_operands(CallMode purpose) const {
    KeptSizes none;
    for (int i = 0; i < arguments_.inputs && purpose == CallMode::kExecute; ++i) {
      describe(arguments_.operands[i], /*has_data=*/true, none);
    }
    return arguments_.operands;
  }
  int described() const { return arguments_.inputs + (has_described_outputs_ ? outputs_ : 0); }

 private:
  static constexpr int kMostOperands = 5;
  static constexpr std::size_t kMostSizes = 16;  // of all outputs

  /// What the checks say of the inputs. Who is told that they are not, will say why.
  [[gnu::noinline]] bool are_accepted(CallMode purpose) const {
    Report report(arguments_.kernel->operator_name);
    CheckRun checks(report);
    KeptSizes none;
    for (int i = 0; i < arguments_.inputs; ++i) {
      Operand& operand = arguments_.operands[i];
      operand.check = find_check(*arguments_.kernel, Role::kInput, i);
      operand.name = operand_name(operand.check, Role::kInput, i);
      if (operand.check != nullptr) {
        if (operand.view.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
          return false;
        }
        describe(operand, /*has_data=*/purpose == CallMode::kExecute, none);
        checks(*operand.check, operand.name, operand.desc);
      }
    }
    return report.ok();
  }

  /// The results of a body that resizes its outputs. One that may have left them as they were is
  /// asked again, with others.
  [[gnu::noinline]] bool resize(const KernelBase& kernel, Tensors& results) {
    const at::ScalarType type = arguments_.operands[0].view.scalar_type();
    for (int i = 0; i < arguments_.outputs; ++i) {
      results.push_back(at::detail::empty_cpu(kShortUnwritten, type));
      add_output(results.back());
    }
    run_to_resize(arguments_, [&] { kernel.invoke(arguments_); });
    for (const at::Tensor& result : results) {  // NOLINT
      if (result.sizes() == at::IntArrayRef(kShortUnwritten)) {
        return false;
      }
    }
    return true;
  }

  /// The results of a body that writes what its meta function has made.
  [[gnu::noinline]] bool write(const KernelBase& kernel, Tensors& results) {
    Tensors made = kernel.infer(arguments_);
    std::size_t sizes = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      const at::Tensor& result = results.emplace_back(std::move(made[i]));
      if (!result.defined() || !result.is_cpu() || !result.is_contiguous() ||
          is_shared(arguments_, results, i) || (sizes += result.sizes().size()) > kMostSizes) {
        return false;
      }
    }
    KeptSizes none;
    for (const at::Tensor& result : results) {
      Operand& output = add_output(result);
      describe(output, /*has_data=*/true, none);
      int64_t* const kept = sizes_.data() + kept_sizes_;
      std::copy_n(output.desc.sizes, output.desc.ndim, kept);
      output.desc.sizes = kept;
      kept_sizes_ += output.desc.ndim;
    }
    has_described_outputs_ = true;
    kernel.invoke(arguments_);
    check_written(arguments_);
    return true;
  }

  Operand& add_output(const at::Tensor& output) {
    new (&arguments_.output(outputs_)) Operand;
    return set_output(arguments_, outputs_++, output);
  }

  /// Whether it is on the CPU, row-major, of sizes that are numbers, and of a dtype with a name.
  [[gnu::always_inline]] static bool is_taken_as_it_is(const at::Tensor& tensor) {
    const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    return impl->is_cpu() && impl->layout() == at::kStrided &&
           !impl->has_symbolic_sizes_strides() && is_row_major_dense(tensor) &&
           dtype_of(c10::typeMetaToScalarType(impl->dtype())) != DType::kNone;
  }

  Arguments arguments_;
  int outputs_ = 0;  // that are there
  bool has_described_outputs_ = false;
  int kept_sizes_ = 0;
  std::array<int64_t, kMostSizes> sizes_;  // of the outputs, before the body
  // Without a destructor for inputs, whose views are borrowed.
  alignas(Operand) unsigned char memory_[kMostOperands * sizeof(Operand)];
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_QUICK_H_
