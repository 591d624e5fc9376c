// Kernels of an operator of PyTorch's.
//
// SPDX-License-Identifier: Apache-2.0

#include "operator_kernels.h"

#include "operator_shapes.h"

#include <ATen/ops/zeros_like.h>
#include <aten_bridge/call/lent_memory.h>
#include <aten_bridge/call/result_form.h>
#include <aten_bridge/tensors/exceptions.h>

#include <cstdlib>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;
using detail::Operand;
using detail::ParameterKind;
using detail::ResultForm;
using detail::ScalarInputType;

/// Whether an operator did not compute a result of which its meta function told a shape: it is
/// undefined or, as the statistics of aten::native_batch_norm outside of training, of no elements
/// (PyTorch 2.11).
bool is_left_out(const at::Tensor& result, const at::Tensor& output, const std::string& name) {
  return !result.defined() ||
         (name == "aten::native_batch_norm" && result.numel() == 0 && output.numel() > 0);
}

/// Drops the views that an operator in Python has seen, also where it fails: each has a Python
/// object, and would want the interpreter when a thread of the host's ends, which may be after it.
/// Python may still have one until it collects its garbage: only a reader of that meets an error.
class DropsSeenByPython {
 public:
  explicit DropsSeenByPython(const Arguments& arguments) : arguments_(arguments) {}
  ~DropsSeenByPython() {
    if (arguments_.list != nullptr) {
      arguments_.list->clear();  // which has the views too
    }
    for (int i = 0; i < arguments_.inputs; ++i) {
      at::Tensor& view = arguments_.operands[i].view;
      if (view.defined() &&
          detail::has_python_object(view.unsafeGetTensorImpl()->pyobj_slot(), 0)) {
        detail::drop_views(&arguments_.operands[i], 1);
      }
    }
  }
  DropsSeenByPython(const DropsSeenByPython&) = delete;
  DropsSeenByPython& operator=(const DropsSeenByPython&) = delete;

 private:
  const Arguments& arguments_;
};

detail::KernelDescriptor make_info(const Operator& op) {
  detail::KernelDescriptor info{};
  info.operator_name = op.schema().name.c_str();
  info.error_mode = ErrorMode::kThrow;
  info.bindings = op.bindings().data();
  info.checks = op.checks().data();
  info.check_count = static_cast<int>(op.checks().size());
  info.inputs = static_cast<int>(op.bindings().size());
  info.outputs = op.schema().results;
  info.list_begin = op.list_begin();
  info.has_instance = true;
  info.has_meta = true;
  info.returns_results = true;
  return info;
}

/// What the kernels of an operator have in common: its attributes. `Base` is KernelBase, or what is
/// made of it.
template <class Base>
class OperatorKernelBase : public Base {
 public:
  template <class... Argument>
  explicit OperatorKernelBase(const Operator& op, const Argument&... arguments)
      : Base(arguments...), operator_(op) {}

  std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                          Report& report) const final {
    return operator_.make_instance(attributes, report);
  }
  void measure_workspaces(const Arguments& /*arguments*/, int64_t* /*elements*/,
                          detail::ElementLayout* /*layouts*/) const final {}
  void visit_attributes(detail::AttributeVisitor& visitor) const final {
    operator_.visit_attributes(visitor);
  }

 protected:
  ~OperatorKernelBase() = default;

  const Operator& operator_;
};

/// Stops recording the input that PyTorch refuses to record, according to an error, or the last one
/// if the error is about an operator inside. False if the error is about something else.
bool stop_recording(const Arguments& arguments, const std::string& error) {
  const std::string_view argument = detail::refused_argument(error);
  const Operand* refused = nullptr;
  for (int i = 0; !argument.empty() && i < arguments.inputs; ++i) {
    const Operand& operand = arguments.operands[i];
    if (operand.view.defined() && operand.view.requires_grad()) {
      refused = &operand;
      const std::string name = join({operand.name.label, "'"});
      if (argument.substr(0, name.size()) == name) {
        break;
      }
    }
  }
  if (refused != nullptr) {
    refused->view.set_requires_grad(false);
  }
  return refused != nullptr;
}

/// The operator itself.
class CallKernel final : public OperatorKernelBase<KernelBase> {
 public:
  explicit CallKernel(const Operator& op) : OperatorKernelBase(op, make_info(op)) {}

  void invoke(const Arguments& arguments) const override {
    const DropsSeenByPython drops(arguments);
    const bool has_memory = arguments.results->has_memory;
    if (has_memory && operator_.call_out(arguments)) {
      return;
    }
    Tensors results = operator_.call(arguments);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!has_memory) {
        results[i] = defined(results[i]);
        continue;
      }
      const at::Tensor& output = arguments.output(static_cast<int>(i)).view;
      if (is_left_out(results[i], output, operator_.schema().name)) {
        results[i] = at::zeros_like(output);
      }
    }
    arguments.results->take(arguments, results.data(), static_cast<int>(results.size()));
  }

  /// The results as tensors that can be differentiated. PyTorch refuses to record some inputs, such
  /// as the random samples of fractional_max_pool2d: their gradients are zeros.
  std::vector<at::Tensor> results(const Arguments& arguments) const {
    for (;;) {
      try {
        const Tensors results = operator_.call(arguments);
        return {results.begin(), results.end()};
      } catch (const c10::Error& error) {
        if (!stop_recording(arguments, error.what_without_backtrace())) {
          throw;
        }
      }
    }
  }

  Tensors infer(const Arguments& arguments) const override {
    return infer_results(operator_, arguments);
  }
};

/// The gradient of one of these two.
template <class Forward>
class GradientKernel final : public OperatorKernelBase<detail::GradientBase> {
 public:
  GradientKernel(const Operator& op, const Forward& forward)
      : OperatorKernelBase(op, forward.info, forward.info.inputs,
                           /*of_function=*/false),  // PyTorch knows what has none
        forward_(forward),
        bindings_(forward.info.bindings, forward.info.bindings + forward.info.inputs) {
    bindings_.insert(bindings_.end(), static_cast<std::size_t>(forward.info.outputs),
                     {ParameterKind::kTensor, ScalarInputType::kNone, /*optional=*/true});
    info.bindings = bindings_.data();
    info.inputs = static_cast<int>(bindings_.size());
    info.outputs = forward.info.inputs;
    info.is_gradient = true;
    info.records = true;
  }

 private:
  std::vector<at::Tensor> forward(const Arguments& arguments) const override {
    return forward_.results(arguments);
  }

  const Forward& forward_;
  std::vector<ParameterInfo> bindings_;
};

class OverloadKernels final : public OperatorKernels {
 public:
  OverloadKernels(const c10::OperatorHandle& handle, const TextAttributes& attributes, int inputs)
      : operator_(handle, attributes, inputs), call_(operator_), gradient_(operator_, call_) {}
  OverloadKernels(const OverloadKernels&) = delete;
  OverloadKernels& operator=(const OverloadKernels&) = delete;

  const KernelBase* find(const std::string& task) override {
    const ResultForm form = detail::result_form(task);
    if (form != ResultForm::kValues) {
      const KernelBase*& kernel = form == ResultForm::kSizes ? sizes_ : padded_;
      kernel = kernel == nullptr ? &detail::make_form(call_, form) : kernel;
      return kernel;
    }
    constexpr int64_t kMostOrders = 16;
    char* end = nullptr;
    const int64_t order = std::strtoll(task.c_str(), &end, 10);
    if (end == task.c_str() || *end != '\0' || order < 0 || order > kMostOrders) {
      return nullptr;
    }
    while (static_cast<int64_t>(higher_.size()) < order - 1) {
      const detail::GradientBase& last =
          higher_.empty() ? static_cast<const detail::GradientBase&>(gradient_) : *higher_.back();
      higher_.push_back(new GradientKernel<detail::GradientBase>(operator_, last));
    }
    if (order < 2) {
      return order == 0 ? static_cast<const KernelBase*>(&call_) : &gradient_;
    }
    return higher_[static_cast<std::size_t>(order - 2)];
  }

 private:
  const Operator operator_;
  const CallKernel call_;
  const GradientKernel<CallKernel> gradient_;
  const KernelBase* sizes_ = nullptr;
  const KernelBase* padded_ = nullptr;
  std::vector<const GradientKernel<detail::GradientBase>*> higher_;
};

}  // namespace

std::unique_ptr<OperatorKernels> make_kernels(const c10::OperatorHandle& handle,
                                              const TextAttributes& attributes, int inputs) {
  return std::make_unique<OverloadKernels>(handle, attributes, inputs);
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
