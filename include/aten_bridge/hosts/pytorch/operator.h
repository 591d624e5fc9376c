// Operators: what PyTorch's dispatcher calls for each of its keys.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_OPERATOR_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_OPERATOR_H_

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <aten_bridge/call/steps.h>
#include <aten_bridge/hosts/pytorch/call.h>
#include <aten_bridge/hosts/pytorch/instances.h>
#include <aten_bridge/hosts/pytorch/schema.h>
#include <aten_bridge/hosts/pytorch/told.h>
#include <aten_bridge/tensors/exceptions.h>
#include <aten_bridge/tensors/scope.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The operator's name with its namespace; throws `Error` where Python could not say it.
[[gnu::cold]] inline std::string qualified_name_of(const PyTorchKernel& kernel) {
  const std::string name = operator_name_of(kernel.kernel->info);
  if (!is_argument_name(name, {})) {
    raise(Status::kAttribute,
          {kernel.kernel->info.operator_name, ": expected a name of letters, digits and ",
           "underscores, got \"", name, "\""});
  }
  return join({kernel.name_space, "::", name});
}

/// What the name of a gradient kernel has more than its kernel's.
inline constexpr std::string_view kGradientSuffix = "Grad";

[[gnu::cold]] inline bool has_gradient_name(const KernelDescriptor& kernel) {
  const std::string_view name = kernel.operator_name;
  return name.size() > kGradientSuffix.size() &&
         name.substr(name.size() - kGradientSuffix.size()) == kGradientSuffix;
}

/// A kernel as an operator. It stays where it is made, for as long as the process lives.
class PyTorchOperator {
 public:
  explicit PyTorchOperator(const PyTorchKernel& kernel_of_library)
      : kernel(kernel_of_library),
        qualified_name(qualified_name_of(kernel)),
        attributes(SchemaAttributes(*kernel.kernel).attributes),
        may_be_gradient(has_gradient_name(info())) {}
  PyTorchOperator(const PyTorchOperator&) = delete;
  PyTorchOperator& operator=(const PyTorchOperator&) = delete;

  const KernelDescriptor& info() const { return kernel.kernel->info; }
  std::size_t inputs() const { return static_cast<std::size_t>(info().inputs); }
  std::size_t outputs() const { return static_cast<std::size_t>(info().outputs); }

  /// The operator of the kernel's gradient, once there is one.
  PyTorchOperator* gradient() const { return gradient_.load(std::memory_order_acquire); }

  /// Takes `other` for the gradient, of the same library, if its name and device say so.
  [[gnu::cold]] void find_gradient(PyTorchOperator& other) {
    if (other.kernel.device == kernel.device &&
        other.info().operator_name == join({info().operator_name, kGradientSuffix})) {
      gradient_.store(&other, std::memory_order_release);
      other.is_of_a_kernel_.store(true, std::memory_order_relaxed);
    }
  }

  /// Whether each output is like a tensor among the inputs.
  bool is_gradient() const {
    return info().is_gradient ||
           (may_be_gradient && !info().has_meta && is_of_a_kernel_.load(std::memory_order_relaxed));
  }

  /// The overloads. Results are returned where their sizes are told, by the kernel, its meta
  /// function, or its inputs, and written to tensors that are given where it writes its outputs.
  [[gnu::cold]] std::vector<c10::OperatorName> names() const {
    std::vector<c10::OperatorName> names;
    if (info().returns_results || info().has_meta || may_be_gradient) {
      names.emplace_back(qualified_name, "");
    }
    if (!info().returns_results) {
      names.emplace_back(qualified_name, "out");
    }
    return names;
  }

  static bool is_out(const c10::OperatorName& name) { return !name.overload_name.empty(); }

  [[gnu::cold]] c10::FunctionSchema schema(const c10::OperatorName& name) const {
    return make_schema(info(), qualified_name, attributes, is_out(name));
  }

  /// Replaces the arguments on the stack by the results.
  [[gnu::hot]] void call(c10::Stack& stack, CallMode mode, bool is_out) {
    const std::size_t count = arguments_ + (is_out ? outputs() : 0);
    const c10::IValue* const begin = stack.data() + (stack.size() - count);
    if (mode != CallMode::kExecute) {
      make_numbers(stack.data() + (stack.size() - count), stack.data() + stack.size());
    }
    std::shared_ptr<const PyTorchCacheEntry> owner;
    PyTorchCall call(kernel, mode, is_gradient(), begin, is_out ? begin + arguments_ : nullptr);
    try {
      Instance* const instance = instances_.of(*kernel.kernel, attributes, begin + inputs(), owner);
      call.set_instance(instance);
      run(call, mode);
      if (are_told_ && mode == CallMode::kExecute && !is_out) {
        told_.compare(begin, arguments_, instance, /*is_kept=*/owner == nullptr, call.results(),
                      is_gradient());
      }
      put_results(stack, count, call.results());
    } catch (...) {
      fail(mode, call);
    }
  }

  PyTorchKernel kernel;
  std::string qualified_name;
  std::vector<SchemaAttribute> attributes;
  bool may_be_gradient;  // by its name
  std::optional<c10::OperatorHandle> handle;
  std::vector<c10::RegistrationHandleRAII> implementations;  // for the dispatcher's keys

 private:
  /// The steps of a call, with the thread's state set aside.
  [[gnu::always_inline]] void run(PyTorchCall& call, CallMode mode) const {
    if (mode == CallMode::kTrace) {
      take_steps(call);
      return;
    }
    const KernelScope scope(info().records && mode == CallMode::kExecute);
    take_steps(call);
    if (mode == CallMode::kExecute && scope.was_in_inference_mode()) {
      make_inference_tensors(call.results());
      bump_versions(call.given_outs());  // PyTorchAutograd is not called in this mode
    }
  }

  /// Replaces the arguments on the stack.
  [[gnu::always_inline]] void put_results(c10::Stack& stack, std::size_t count,
                                          Tensors& results) const {
    if (results.size() == 1 && count > 0 && !info().lists_outputs) {  // as a rule
      stack[stack.size() - count] = std::move(results[0]);
      for (std::size_t i = 1; i < count; ++i) {
        stack.pop_back();
      }
      return;
    }
    torch::jit::drop(stack, count);
    if (info().lists_outputs) {
      stack.emplace_back(at::TensorList(results));
    } else {
      for (at::Tensor& result : results) {
        stack.emplace_back(std::move(result));
      }
    }
  }

  /// Passes the exception of a call on.
  [[noreturn, gnu::cold, gnu::noinline]] static void fail(CallMode mode, PyTorchCall& call) {
    const Arguments& arguments = call.describe_operands();
    try {
      throw;
    } catch (const Error&) {
      raise_in_pytorch(arguments);
    } catch (const std::exception& error) {
      // PyTorch has exceptions of its own while it traces, which must reach it as they are.
      const std::string text = exception_text(error);
      if (mode != CallMode::kExecute && as_utf8(text) == text) {
        throw;
      }
      raise_in_pytorch(arguments);
    } catch (...) {
      raise_in_pytorch(arguments);
    }
  }

  std::size_t arguments_ = inputs() + attributes.size();
  bool are_told_ = ToldResults::is_for(info(), may_be_gradient);
  ToldResults told_{kernel};
  PyTorchInstances instances_;
  std::atomic<PyTorchOperator*> gradient_{nullptr};
  std::atomic<bool> is_of_a_kernel_{false};  // in the library, by their names
};

/// A key's function, of which the dispatcher is the owner.
class PyTorchFunction final : public c10::OperatorKernel {
 public:
  PyTorchFunction(PyTorchOperator& called, CallMode mode, bool is_out)
      : operator_(called), mode_(mode), is_out_(is_out) {}

  // NOLINTNEXTLINE(readability-named-parameter)
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, c10::Stack* stack) {
    operator_.call(*stack, mode_, is_out_);
  }

 private:
  PyTorchOperator& operator_;
  CallMode mode_;
  bool is_out_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_OPERATOR_H_
