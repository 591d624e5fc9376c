// A call of an operator of PyTorch's: from the dispatcher's stack to a kernel's arguments, and from
// its results to the stack.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_CALL_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_CALL_H_

#include <ATen/core/ivalue.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <aten_bridge/call/bind.h>
#include <aten_bridge/call/infer.h>
#include <aten_bridge/call/outputs.h>
#include <aten_bridge/call/workspaces.h>
#include <aten_bridge/hosts/pytorch/errors.h>
#include <aten_bridge/hosts/pytorch/operands.h>
#include <aten_bridge/hosts/pytorch/pytorch.h>
#include <aten_bridge/hosts/pytorch/results.h>
#include <aten_bridge/hosts/pytorch/schema.h>
#include <c10/core/Allocator.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The arguments of one call.
class PyTorchCall {
 public:
  /// `is_gradient`: each output is like a tensor among the inputs.
  PyTorchCall(const PyTorchKernel& kernel, CallMode purpose, bool is_gradient)
      : of_(kernel),
        info_(kernel.kernel->info),
        purpose_(purpose),
        is_gradient_(is_gradient),
        report_(info_.operator_name) {
    arguments.kernel = &info_;
    arguments.messages = &kPyTorchMessages;
    arguments.around_state = kernel.around_state;
  }
  ~PyTorchCall() {
    for (Operand& operand : operands_) {
      give_back(operand);
    }
  }
  PyTorchCall(const PyTorchCall&) = delete;
  PyTorchCall& operator=(const PyTorchCall&) = delete;

  /// Takes the inputs, the operator's first arguments, and checks them; throws `Error`.
  void take_inputs(const c10::IValue* inputs) {
    const bool has_list = info_.list_begin >= 0;
    const auto size_of_list = [&] { return inputs[info_.list_begin].toListRef().size(); };
    arguments.list_begin = info_.list_begin;
    arguments.list_size = has_list ? static_cast<int>(size_of_list()) : 0;
    arguments.inputs = info_.inputs + (has_list ? arguments.list_size - 1 : 0);
    arguments.outputs = operand_count(info_, arguments.inputs) - arguments.inputs;
    // What is returned has no operands.
    operands_.resize_for_overwrite(static_cast<std::size_t>(
        info_.returns_results && !info_.is_data_dependent ? arguments.inputs : arguments.size()));
    arguments.operands = operands_.data();
    CheckRun checks(report_);
    int next = 0;
    for (int i = 0; i < info_.inputs; ++i) {
      const ParameterInfo& binding = info_.bindings[i];
      const OperandCheck* check =
          info_.check_count == 0 ? nullptr : find_check(info_, Role::kInput, i);
      if (binding.kind == ParameterKind::kTensorList) {
        for (const c10::IValue& element : inputs[i].toListRef()) {
          take_input(next++, element, binding, check, checks);
        }
      } else {
        take_input(next++, inputs[i], binding, check, checks);
      }
    }
    report_.raise_if_failed();
    if (has_list) {
      fill_list(arguments);
    }
  }

  /// Runs the kernel, or infers, and fills in the results.
  void run(Tensors& results) {
    if (info_.returns_results) {
      if (purpose_ == CallMode::kMeta) {
        results = returns_row_major(info_) ? expected_outputs() : infer();
      } else {
        arguments.results = &results;
        invoke();
      }
      check_defined(results);
    } else {
      write(results);
    }
    check_results(results);
    separate(arguments, purpose_, results);
  }

  /// Runs the kernel, or infers, with outputs that it is given.
  void write_to(const c10::IValue* outputs) {
    Tensors buffers;
    for (int i = 0; i < arguments.outputs; ++i) {
      buffers.push_back(outputs[i].toTensor());
    }
    const Tensors given = buffers;
    check_devices(given);
    if (info_.is_own_meta) {
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (given[i].is_conj() || given[i].is_neg() || is_shared(arguments, given, i)) {
          buffers[i] = make_empty(given[i].sizes(), given[i].options());
        }
      }
      run_to_resize(buffers);
      check_results(buffers);
    } else {
      prepare(buffers);
      check_results(buffers);
      if (purpose_ == CallMode::kExecute) {
        run_in(buffers);
      }
    }
    for (std::size_t i = 0; i < given.size() && purpose_ == CallMode::kExecute; ++i) {
      if (!given[i].is_same(buffers[i])) {
        at::native::resize_output(given[i], buffers[i].sizes());
        given[i].copy_(buffers[i]);
      }
    }
  }

  Arguments arguments;

  /// Where the tensors are; none where there is none.
  const std::optional<c10::Device>& device() const { return device_; }

  const Operand* operands() const { return operands_.data(); }
  int described() const { return described_; }

 private:
  //===--- inputs ---===//

  void take_input(int index, const c10::IValue& value, const ParameterInfo& binding,
                  const OperandCheck* check, CheckRun& checks) {
    Operand& operand = operands_[static_cast<std::size_t>(index)];
    operand.check = check;
    operand.name = operand_name(check, Role::kInput, index);
    if (binding.kind == ParameterKind::kNumber) {
      take_number(operand, value);
    } else if (!value.isNone()) {
      const at::Tensor& tensor = value.toTensor();
      if (tensor.defined() && !take_tensor(operand, tensor)) {
        return;
      }
    }
    described_ = index + 1;
    const bool is_known = !operand.desc.is_none();  // what is traced is not looked at
    if (is_known ? check != nullptr || binding.kind == ParameterKind::kNumber
                 : !operand.view.defined() && !may_be_none(binding)) {
      check_operand(binding, check, checks, operand, report_);
    }
  }

  [[gnu::noinline]] bool take_tensor(Operand& operand, const at::Tensor& tensor) {
    // The caller's stack has it; to count owners takes as long as all the rest here.
    borrow(operand, tensor);
    if (purpose_ == CallMode::kTrace) {
      if (operand.check != nullptr) {
        describe(operand);
      }
      return true;
    }
    if (!is_here(tensor)) {
      add_device_fault(operand.name, tensor);
      return false;
    }
    // Kernels loop over data; PyTorch gives transposed and repeated tensors, also as gradients.
    if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
      // How it lies in memory may depend on values.
      own(operand, at::empty_symint(tensor.sym_sizes(), tensor.options()));
    } else if (!is_row_major_dense(tensor)) {
      own(operand, to_row_major_dense(tensor));
    }
    if (info_.records && purpose_ == CallMode::kExecute) {
      // With a version of its own.
      own(operand, (tensor.is_inference() ? operand.view.clone() : operand.view).variable_data());
    }
    describe(operand);
    if (operand.desc.is_none()) {
      report_.add(Status::kDtype, {operand.name.text(), ": expected ", dtype_names(), ", got ",
                                   scalar_type_text(tensor.scalar_type())});
    }
    return !operand.desc.is_none();
  }

  [[gnu::always_inline]] bool is_here(const at::Tensor& tensor) {
    if (purpose_ == CallMode::kMeta) {
      return tensor.is_meta();
    }
    const c10::Device device = tensor.device();
    if (!device_.has_value()) {
      device_ = device;
    }
    return device == *device_ && (device.type() == of_.device || device.is_privateuseone());
  }

  void add_device_fault(const OperandName& name, const at::Tensor& tensor) {
    const bool is_known = device_.has_value() && device_->type() == of_.device;
    const c10::Device expected(purpose_ == CallMode::kExecute ? of_.device : at::kMeta);
    detail::add_device_fault(name, tensor, is_known ? *device_ : expected, report_);
  }

  void check_devices(const Tensors& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const int index = static_cast<int>(i);
      if (!is_here(outputs[i])) {
        const OperandCheck* check = find_check(info_, Role::kOutput, index);
        add_device_fault(operand_name(check, Role::kOutput, index), outputs[i]);
      }
    }
    report_.raise_if_failed();
  }

  [[gnu::always_inline]] void describe(Operand& operand) {
    detail::describe(operand, /*has_data=*/purpose_ == CallMode::kExecute, sizes_);
  }

  //===--- outputs ---===//

  at::TensorOptions options_of_first() const {
    for (int i = 0; i < arguments.inputs; ++i) {
      const at::Tensor& view = operands_[static_cast<std::size_t>(i)].view;
      if (view.defined()) {
        return view.options();
      }
    }
    return at::TensorOptions(purpose_ == CallMode::kMeta ? at::kMeta : of_.device);  // NOLINT
  }

  void set_outputs(const Tensors& outputs) const {
    for (int i = 0; i < arguments.outputs; ++i) {
      set_output(arguments, i, outputs[static_cast<std::size_t>(i)]);
    }
  }

  /// The results of a kernel that writes its outputs.
  void write(Tensors& outputs) {
    if (info_.is_own_meta) {
      // Where the result has these sizes too, who knows who made it so?
      if (purpose_ == CallMode::kExecute) {
        write_from(kShortUnwritten, outputs);
        if (std::none_of(outputs.begin(), outputs.end(), [&](const at::Tensor& output) {
              return output.sizes() == at::IntArrayRef(kShortUnwritten);
            })) {
          return;
        }
      }
      write_from(kUnwritten, outputs);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!outputs[i].unsafeGetTensorImpl()->has_symbolic_sizes_strides() &&
            outputs[i].sizes() == at::IntArrayRef(kUnwritten)) {
          report_.add(Status::kShape, {"output ", i, ": ", kNotResized});
        }
      }
      report_.raise_if_failed();
      return;
    }
    outputs = expected_outputs();
    if (purpose_ == CallMode::kExecute) {
      run_in(outputs);
    }
  }

  /// What an _out function makes of outputs of these sizes.
  void write_from(at::IntArrayRef sizes, Tensors& outputs) {
    const at::TensorOptions options = options_of_first();
    outputs.clear();
    for (int i = 0; i < arguments.outputs; ++i) {
      outputs.push_back(make_empty(sizes, options));
    }
    run_to_resize(outputs);
  }

  /// New, row-major tensors like what the kernel will write.
  [[gnu::noinline]] Tensors expected_outputs() {
    Tensors like;
    if (info_.has_meta && !info_.is_gradient) {
      like = infer();
      check_defined(like);
    } else if (is_gradient_) {  // of the first inputs that are tensors
      for (int i = 0;
           i < arguments.inputs && like.size() < static_cast<std::size_t>(arguments.outputs); ++i) {
        const Operand& operand = operands_[static_cast<std::size_t>(i)];
        if (info_.bindings[input_parameter(arguments, i)].kind != ParameterKind::kNumber) {
          like.push_back(operand.view.defined() ? operand.view
                                                : at::empty({0}, options_of_first()));
        }
      }
    }
    if (like.size() < static_cast<std::size_t>(arguments.outputs)) {
      raise(Status::kShape,
            {info_.operator_name, ": expected a meta function, which tells the sizes of ",
             "the results, or out, or the gradient of a kernel of this library with ",
             "an output for each tensor among its inputs, got none of these; give the ",
             "kernel a meta function: aten_bridge::meta(function)"});
    }
    const c10::Device device = options_of_first().device();
    for (std::size_t i = 0; i < like.size(); ++i) {
      // A meta function may say at::kMeta, or nothing, where it makes a tensor.
      if (purpose_ != CallMode::kExecute || !like[i].is_contiguous() ||
          is_shared(arguments, like, i) || like[i].device() != device) {
        like[i] = at::empty_symint(like[i].sym_sizes(), like[i].options().device(device));
      }
    }
    return like;
  }

  /// Gives the tensor another's sizes; PyTorch warns where it had elements. Measured: on the CPU,
  /// resize_output_symint of PyTorch 2.1.2 lets a tensor that grows keep its smaller memory.
  static void resize(const at::Tensor& tensor, const at::Tensor& like) {
    if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() ||
        like.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
      at::native::resize_output_symint(tensor, like.sym_sizes());
    } else {
      at::native::resize_output(tensor, like.sizes());
    }
  }

  /// Gives tensors that a caller wants to have written the sizes that they will have.
  void fit(Tensors& given, const Tensors& expected) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].scalar_type() != expected[i].scalar_type()) {
        const OperandCheck* check = find_check(info_, Role::kOutput, static_cast<int>(i));
        report_.add(Status::kDtype,
                    {operand_name(check, Role::kOutput, static_cast<int>(i)).text(), ": expected ",
                     scalar_type_text(expected[i].scalar_type()), ", got ", tensor_text(given[i])});
      }
    }
    report_.raise_if_failed();
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].sym_sizes() != expected[i].sym_sizes()) {
        resize(given[i], expected[i]);
      }
    }
  }

  /// Gives the outputs of a call their sizes, and those that cannot be written where they are
  /// another place.
  void prepare(Tensors& outputs) {
    if (info_.has_meta || is_gradient_) {
      fit(outputs, expected_outputs());
    }
    const Tensors given = outputs;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!is_row_major_dense(given[i]) || is_shared(arguments, given, i)) {
        outputs[i] = at::empty(given[i].sizes(), given[i].options());
      }
    }
  }

  /// The body, with outputs that it resizes.
  void run_to_resize(Tensors& outputs) {
    set_outputs(outputs);
    detail::run_to_resize(arguments, [&] {
      if (purpose_ == CallMode::kMeta) {
        infer();
      } else {
        invoke();
      }
    });
  }

  /// The body, with outputs that stay where they are.
  void run_in(const Tensors& outputs) {
    set_outputs(outputs);
    for (int i = 0; i < arguments.outputs; ++i) {
      describe(arguments.output(i));
    }
    keep_sizes(arguments, sizes_before_);
    described_ = arguments.size();
    invoke();
    check_written(arguments);
  }

  /// What the meta function tells. To one that asks for sizes as numbers symbols are made numbers,
  /// by PyTorch's guards: it compiles anew for other sizes, or says that they cannot be known.
  Tensors infer() {
    try {
      return of_.kernel->infer(arguments);
    } catch (const c10::Error& error) {
      if (purpose_ != CallMode::kMeta || !asks_for_numbers(error.what_without_backtrace()) ||
          !make_sizes_numbers(arguments, sizes_)) {
        throw;
      }
    }
    return of_.kernel->infer(arguments);
  }

  void invoke() {
    Memories workspaces;
    if (info_.workspaces > 0) {
      for (const std::size_t size : measure_workspaces(*of_.kernel, arguments)) {
        const at::DeviceType device = device_.has_value() ? device_->type() : of_.device;
        workspaces.push_back({nullptr, size, c10::GetAllocator(device)->allocate(size)});
        workspaces.back().data = workspaces.back().owner.get();
      }
      arguments.workspaces = workspaces.data();
    }
    of_.kernel->invoke(arguments);
  }

  //===--- results ---===//

  void check_defined(const Tensors& results) {
    add_undefined(results, purpose_ == CallMode::kMeta ? "meta function" : "kernel", report_);
    report_.raise_if_failed();
  }

  void check_results(const Tensors& results) {
    if (info_.check_count > 0 && purpose_ != CallMode::kTrace) {
      detail::check_results(info_, results);
    }
  }

  const PyTorchKernel& of_;
  const KernelDescriptor& info_;
  CallMode purpose_;
  bool is_gradient_;
  Report report_;
  c10::SmallVector<Operand, 4> operands_;
  KeptSizes sizes_;
  c10::SmallVector<int64_t, 8> sizes_before_;  // of the outputs, before the body
  std::optional<c10::Device> device_;
  int described_ = 0;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_CALL_H_
