// A call by PyTorch's dispatcher: from its stack to a kernel's arguments, and to the results.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_CALL_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_CALL_H_

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <aten_bridge/call/bind.h>
#include <aten_bridge/call/infer.h>
#include <aten_bridge/call/workspaces.h>
#include <aten_bridge/hosts/pytorch/errors.h>
#include <aten_bridge/hosts/pytorch/operands.h>
#include <aten_bridge/hosts/pytorch/pytorch.h>
#include <aten_bridge/hosts/pytorch/results.h>
#include <aten_bridge/hosts/pytorch/schema.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// One call, for take_steps(). Each step first asks whether there is anything to do. For row-major
/// tensors and a kernel without checks, state and numbers among its inputs the answer is no, and
/// little more than the body runs: this is the fast path.
class PyTorchCall {
 public:
  /// `inputs` are the operator's first arguments; `is_gradient`: each output is like a tensor among
  /// them. `outs` are tensors that a caller wants to have written; null: results are returned.
  [[gnu::always_inline]] PyTorchCall(const PyTorchKernel& kernel, CallMode mode, bool is_gradient,
                                     const c10::IValue* inputs, const c10::IValue* outs)
      : kernel_(kernel),
        info_(kernel.kernel->info),
        mode_(mode),
        is_gradient_(is_gradient),
        inputs_(inputs),
        outs_(outs) {
    arguments_.kernel = &info_;
    arguments_.messages = &kPyTorchMessages;
    arguments_.around_state = kernel.around_state;
  }
  [[gnu::noinline, gnu::flatten]] ~PyTorchCall() { give_back(operands_.begin(), operands_.end()); }
  PyTorchCall(const PyTorchCall&) = delete;
  PyTorchCall& operator=(const PyTorchCall&) = delete;

  /// Makes operands of the inputs.
  [[gnu::always_inline]] void describe() {
    count();
    int next = 0;
    for (int i = 0; i < info_.inputs; ++i) {
      const ParameterInfo& parameter = info_.bindings[i];
      const OperandCheck* check =
          info_.check_count == 0 ? nullptr : find_check(info_, Role::kInput, i);
      if (parameter.kind == ParameterKind::kTensorList) {
        for (const c10::IValue& element : inputs_[i].toListRef()) {
          describe_input(next++, element, parameter, check);
        }
      } else {
        describe_input(next++, inputs_[i], parameter, check);
      }
    }
  }

  /// Checks the inputs, and converts those that the body cannot take as they are; throws `Error`.
  [[gnu::always_inline]] void bind() {
    bool is_ready = info_.check_count == 0 && !info_.has_state && !info_.records;
    for (int i = 0; i < arguments_.inputs && is_ready; ++i) {
      is_ready = is_taken_as_it_is(arguments_.operands[i].view);
    }
    if (!is_ready) {
      bind_slow();
    }
    arguments_.bound = arguments_.inputs;
    fill_list(arguments_);
    if (outs_ != nullptr) {
      check_outs();
    }
    if (device_.has_value() && !device_->is_cpu()) {
      on_device_.emplace(*device_);
    }
  }

  /// Runs the kernel, or infers.
  [[gnu::always_inline]] void invoke() {
    if (!info_.returns_results) {
      results_ = info_.is_own_meta ? resize_outputs() : write_outputs();
    } else if (mode_ == CallMode::kMeta) {
      results_ = infer_returned();
    } else {
      arguments_.results = &returned_;
      run();
    }
  }

  /// Copies the results to the tensors that the caller gave, or keeps them from sharing memory.
  [[gnu::always_inline]] void commit() {
    check_made(info_, mode_, results_);
    if (info_.check_count > 0 && mode_ != CallMode::kTrace) {
      check_results(arguments_, results_);
    }
    if (outs_ != nullptr) {
      move_to_outs();
    } else if (mode_ != CallMode::kTrace &&  // then PyTorch sees to it itself
               (info_.returns_results || info_.is_own_meta || info_.records)) {
      separate(arguments_, mode_, results_);  // others are written where the call has made them
    }
  }

  void set_instance(Instance* instance) { arguments_.instance = instance; }
  Tensors& results() { return results_; }
  /// The tensors that the caller wants to have written.
  Tensors given_outs() const {
    Tensors given;
    for (int i = 0; outs_ != nullptr && i < arguments_.outputs; ++i) {
      given.push_back(outs_[i].toTensor());
    }
    return given;
  }

  /// The arguments with the operands that an error's text tells.
  [[gnu::cold]] const Arguments& describe_operands() {
    const int count = std::min(arguments_.bound, arguments_.inputs);
    for (int i = 0; i < count && mode_ != CallMode::kTrace; ++i) {
      Operand& operand = arguments_.operands[i];
      if (operand.view.defined() && operand.desc.is_none()) {
        describe_tensor(operand);
      }
    }
    return arguments_;
  }

 private:
  //===--- describe ---===//

  [[gnu::always_inline]] void count() {
    arguments_.list = &list_;
    const int begin = info_.list_begin;
    set_counts(info_, begin < 0 ? 0 : static_cast<int>(inputs_[begin].toListRef().size()),
               arguments_);
    // What is returned has no operands.
    operands_.resize_for_overwrite(static_cast<std::size_t>(
        info_.returns_results && !info_.is_data_dependent ? arguments_.inputs : arguments_.size()));
    arguments_.operands = operands_.data();
  }

  [[gnu::always_inline]] void describe_input(int index, const c10::IValue& value,
                                             const ParameterInfo& parameter,
                                             const OperandCheck* check) const {
    Operand& operand = arguments_.operands[index];
    operand.check = check;
    operand.name = operand_name(check, Role::kInput, index);
    if (parameter.kind == ParameterKind::kNumber) {
      take_number(operand, value);
    } else if (!value.isNone()) {
      borrow(operand, value.toTensor());
    }
  }

  c10::Device device_of_new() const {
    return mode_ == CallMode::kMeta ? c10::Device(at::kMeta) : device_.value_or(kernel_.device);
  }

  /// Fills in what checks and error texts know of a tensor.
  [[gnu::always_inline]] void describe_tensor(Operand& operand) {
    detail::describe(operand, /*has_data=*/mode_ == CallMode::kExecute, sizes_);
  }

  //===--- bind ---===//

  /// Whether the body takes a tensor as it is, and there is nothing to check.
  [[gnu::always_inline]] bool is_taken_as_it_is(const at::Tensor& tensor) {
    if (mode_ != CallMode::kExecute || !tensor.defined()) {
      return mode_ == CallMode::kTrace && tensor.defined();
    }
    const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    return is_here(tensor) && impl->layout() == at::kStrided &&
           !impl->has_symbolic_sizes_strides() && is_row_major_dense(tensor) &&
           dtype_of(c10::typeMetaToScalarType(impl->dtype())) != DType::kNone;
  }

  [[gnu::always_inline]] bool is_here(const at::Tensor& tensor) {
    if (mode_ == CallMode::kMeta) {
      return tensor.is_meta();
    }
    const c10::Device device = tensor.device();
    if (!device_.has_value()) {
      device_ = device;
    }
    return device == *device_ && (device.type() == kernel_.device || device.is_privateuseone());
  }

  [[gnu::noinline]] void bind_slow() {
    Report report(info_.operator_name);
    CheckRun checks(report);
    for (int i = 0; i < arguments_.inputs; ++i) {
      Operand& operand = arguments_.operands[i];
      if (operand.view.defined() && !bind_tensor(operand, report)) {
        continue;
      }
      arguments_.bound = i + 1;
      const ParameterInfo& parameter = info_.bindings[input_parameter(arguments_, i)];
      const bool is_known = !operand.desc.is_none();  // what is traced is not looked at
      if (is_known ? operand.check != nullptr || parameter.kind == ParameterKind::kNumber
                   : !operand.view.defined() && !parameter.optional) {
        check_operand(parameter, operand.check, checks, operand, report);
      }
    }
    report.raise_if_failed();
  }

  bool bind_tensor(Operand& operand, Report& report) {
    if (mode_ == CallMode::kTrace) {
      if (operand.check != nullptr) {
        describe_tensor(operand);
      }
      return true;
    }
    const at::ScalarType type = operand.view.scalar_type();
    if (!is_here(operand.view)) {
      add_device_fault(operand.name, operand.view, report);
      return false;
    }
    // Kernels loop over data; PyTorch gives transposed and repeated tensors, also as gradients.
    if (operand.view.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
      // How it lies in memory may depend on values.
      own(operand, at::empty_symint(operand.view.sym_sizes(), operand.view.options()));
    } else if (!is_row_major_dense(operand.view)) {
      own(operand, to_input(info_, mode_, operand.view));
    }
    if (info_.records && mode_ == CallMode::kExecute) {
      // With a version of its own.
      own(operand,
          (operand.view.is_inference() ? operand.view.clone() : operand.view).variable_data());
    }
    describe_tensor(operand);
    if (operand.desc.is_none()) {
      report.add(Status::kDtype, operand.name, {dtype_names(), kGot, scalar_type_text(type)});
    }
    return !operand.desc.is_none();
  }

  [[gnu::cold]] void add_device_fault(const OperandName& name, const at::Tensor& tensor,
                                      Report& report) const {
    const bool is_known = device_.has_value() && device_->type() == kernel_.device;
    const c10::Device expected(mode_ == CallMode::kExecute ? kernel_.device : at::kMeta);
    report.add(Status::kDevice, name,
               {"a tensor on ", (is_known ? *device_ : expected).str(), kGot, tensor_text(tensor),
                " on ", tensor.device().str()});
  }

  [[gnu::noinline]] void check_outs() {
    Report report(info_.operator_name);
    for (int i = 0; i < arguments_.outputs; ++i) {
      if (!is_here(outs_[i].toTensor())) {
        add_device_fault(output_name(info_, static_cast<std::size_t>(i)), outs_[i].toTensor(),
                         report);
      }
    }
    report.raise_if_failed();
  }

  //===--- invoke ---===//

  [[gnu::always_inline]] void run() {
    if (info_.workspaces > 0) {
      allocate_workspaces();
    }
    if (info_.changes_state) {  // which may keep the results, until the call has its own
      state_ = std::unique_lock<std::recursive_mutex>(arguments_.instance->mutex);
    }
    kernel_.kernel->invoke(arguments_);
  }

  [[gnu::noinline]] void allocate_workspaces() {
    workspaces_ =
        take_workspaces(*kernel_.kernel, arguments_, c10::GetAllocator(device_of_new().type()),
                        [](int /*index*/) { return HostMemory(); });
    arguments_.workspaces = workspaces_.data();
  }

  [[gnu::noinline]] Tensors infer_returned() {
    return info_.returns_row_major ? make_expected() : infer();
  }

  /// What the meta function tells. To one that asks for sizes as numbers symbols are made numbers,
  /// by PyTorch's guards: it compiles again for other sizes, or says that they cannot be known.
  Tensors infer() {
    try {
      return kernel_.kernel->infer(arguments_);
    } catch (const c10::Error& error) {
      if (mode_ != CallMode::kMeta || !asks_for_numbers(error.what_without_backtrace()) ||
          !make_sizes_numbers(arguments_, sizes_)) {
        throw;
      }
    }
    return kernel_.kernel->infer(arguments_);
  }

  /// The results of a body that resizes its outputs.
  [[gnu::noinline]] Tensors resize_outputs() {
    Tensors results;
    if (outs_ != nullptr) {
      results = given_outs();
      replace_unwritable(arguments_, results,
                         [](const at::Tensor& out) { return !out.is_conj() && !out.is_neg(); });
      run_to_resize(results);
      return results;
    }
    const c10::Device device = device_of_new();
    if (mode_ == CallMode::kExecute) {
      for (int i = 0; i < arguments_.outputs; ++i) {
        results.push_back(make_short_unwritten(arguments_, device));
      }
      run_to_resize(results);
      if (std::none_of(results.begin(), results.end(), is_short_unwritten)) {
        return results;
      }
    }
    // If a result has these sizes now, we cannot tell whether the kernel resized it.
    results.clear();
    for (int i = 0; i < arguments_.outputs; ++i) {
      results.push_back(at::empty(kUnwritten, options_of_first(arguments_, device)));
    }
    run_to_resize(results);
    check_resized(info_, results);
    if (mode_ == CallMode::kMeta && info_.returns_row_major) {  // as separate() has them in a run
      for (at::Tensor& result : results) {
        result = at::empty_symint(result.sym_sizes(), result.options());
      }
    }
    return results;
  }

  void run_to_resize(Tensors& outputs) {
    set_outputs(arguments_, outputs);
    try {
      if (mode_ == CallMode::kMeta) {
        infer();
      } else {
        run();
      }
    } catch (const c10::Error& error) {
      raise_if_not_resized(info_, error);
      throw;
    }
    check_outputs(arguments_, is_same_tensor);
    take_outputs(arguments_, outputs);
  }

  /// The results of a body that writes outputs of the right sizes.
  [[gnu::noinline]] Tensors write_outputs() {
    Tensors results = outs_ != nullptr ? outs_to_write() : make_expected();
    if (mode_ == CallMode::kExecute) {
      run_to_write(results);
    }
    return results;
  }

  void run_to_write(Tensors& outputs) {
    set_outputs(arguments_, outputs);
    for (int i = 0; i < arguments_.outputs; ++i) {
      describe_tensor(arguments_.output(i));
    }
    keep_sizes(arguments_, sizes_before_);
    arguments_.bound = arguments_.size();
    run();
    check_outputs(arguments_, output_is_intact);
    take_outputs(arguments_, outputs);
    for (at::Tensor& output : outputs) {
      if (outs_ == nullptr && is_held(output)) {
        output = copy_result(info_, mode_, output);
      }
    }
  }

  /// New, row-major tensors like what the kernel will write.
  Tensors make_expected() {
    const c10::Device device = device_of_new();
    Tensors like = info_.has_meta && !info_.is_gradient ? infer()
                   : is_gradient_                       ? first_inputs(arguments_, device)
                                                        : Tensors();
    check_defined(info_, mode_, like);
    if (like.size() < static_cast<std::size_t>(arguments_.outputs)) {
      raise_without_meta(info_);
    }
    for (std::size_t i = 0; i < like.size(); ++i) {
      // A meta function may say at::kMeta, or nothing, where it makes a tensor.
      if (mode_ != CallMode::kExecute || !like[i].is_contiguous() || like[i].device() != device ||
          is_shared(arguments_, like, i) || is_held(like[i]) || is_lent(like[i])) {
        like[i] = at::empty_symint(like[i].sym_sizes(), like[i].options().device(device));
      }
    }
    return like;
  }

  //===--- tensors that the caller wants to have written ---===//

  /// What the body writes, with the sizes that results have, where these are told.
  [[gnu::noinline]] Tensors outs_to_write() {
    Tensors outs = given_outs();
    const Tensors given = outs;
    replace_unwritable(arguments_, outs,
                       [](const at::Tensor& out) { return is_row_major_dense(out); });
    if (info_.has_meta || is_gradient_) {
      fit(info_, given, make_expected(), outs);
    }
    check_results(arguments_, outs);
    return outs;
  }

  [[gnu::noinline]] void move_to_outs() {
    if (mode_ != CallMode::kTrace) {
      resize_given(given_outs(), results_);
    }
    results_.clear();
  }

  const PyTorchKernel& kernel_;
  const KernelDescriptor& info_;
  const CallMode mode_;
  const bool is_gradient_;
  const c10::IValue* const inputs_;
  const c10::IValue* const outs_;
  Arguments arguments_;
  Tensors results_;
  const ReturnResults returned_{results_};
  Tensors list_;
  c10::SmallVector<Operand, 5> operands_;
  std::optional<c10::Device> device_;          // the first tensor's with data
  KeptSizes sizes_;                            // for operands whose sizes are symbols
  Memories workspaces_;                        // to the end of the call: a result may be in one
  c10::SmallVector<int64_t, 8> sizes_before_;  // the outputs', before the body
  std::optional<c10::DeviceGuard> on_device_;
  std::unique_lock<std::recursive_mutex> state_;  // the instance's
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_CALL_H_
