// Operators: what PyTorch's dispatcher calls for each of its keys.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_OPERATOR_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_OPERATOR_H_

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <aten_bridge/hosts/pytorch/call.h>
#include <aten_bridge/hosts/pytorch/instances.h>
#include <aten_bridge/hosts/pytorch/quick.h>
#include <aten_bridge/hosts/pytorch/schema.h>
#include <aten_bridge/hosts/pytorch/told.h>
#include <aten_bridge/tensors/exceptions.h>
#include <aten_bridge/tensors/scope.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

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
  explicit PyTorchOperator(const PyTorchKernel& of)
      : kernel(of),
        qualified_name(qualified_name_of(of)),
        attributes(SchemaAttributes(*of.kernel).attributes),
        may_be_gradient(has_gradient_name(info())) {}
  PyTorchOperator(const PyTorchOperator&) = delete;
  PyTorchOperator& operator=(const PyTorchOperator&) = delete;

  const KernelDescriptor& info() const { return kernel.kernel->info; }
  std::size_t inputs() const { return static_cast<std::size_t>(info().inputs); }
  std::size_t outputs() const { return static_cast<std::size_t>(info().outputs); }

  /// The operator of the kernel's gradient, once there is one.
  PyTorchOperator* gradient() const;

  /// Whether each output is like a tensor among the inputs.
  bool is_gradient() const {
    return info().is_gradient || (may_be_gradient && !info().has_meta && is_of_a_kernel());
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
  void call(c10::Stack& stack, CallMode purpose, bool is_out) {
    const std::size_t count = arguments_ + (is_out ? outputs() : 0);
    const c10::IValue* const begin = stack.data() + (stack.size() - count);
    Tensors results;
    if (is_quick_ && !is_out && purpose != CallMode::kMeta &&
        call_quickly(begin, purpose, results)) {
      put_results(stack, count, purpose, results);
      return;
    }
    std::shared_ptr<const PyTorchCacheEntry> owner;
    PyTorchCall call(kernel, purpose, is_gradient());
    try {
      call.arguments.instance = instances_.of(*kernel.kernel, attributes, begin + inputs(), owner);
      run(call, purpose, begin, is_out, results);
      if (are_told_ && purpose == CallMode::kExecute && !is_out) {
        compare(begin, call.arguments.instance, results);
      }
    } catch (...) {
      fail(purpose, call.operands(), call.described());
    }
    put_results(stack, count, purpose, results);
  }

  PyTorchKernel kernel;
  std::string qualified_name;
  std::vector<SchemaAttribute> attributes;
  bool may_be_gradient;  // by its name
  std::optional<c10::OperatorHandle> handle;
  std::vector<c10::RegistrationHandleRAII> implementations;  // for the dispatcher's keys

 private:
  /// The same for most calls; false for others, for which there is more to do.
  [[gnu::always_inline]] bool call_quickly(const c10::IValue* begin, CallMode purpose,
                                           Tensors& results) {
    Instance* const instance = instances_.find_kept(begin + inputs());
    if (info().has_instance && instance == nullptr) {
      return false;
    }
    FastPathCall call(info(), instance);
    if (!call.take_inputs(begin, purpose)) {
      return false;
    }
    try {
      if (purpose == CallMode::kTrace) {
        return call.run(*kernel.kernel, purpose, results);
      }
      const KernelScope scope;
      const bool is_done = call.run(*kernel.kernel, purpose, results);
      if (is_done && are_told_) {
        told_.compare(begin, instance, results, is_gradient());
      }
      return is_done;
    } catch (...) {
      fail(purpose, call.describe_operands(purpose), call.described());
    }
  }

  /// Compares the results of a call with what its meta function tells.
  [[gnu::noinline]] void compare(const c10::IValue* begin, Instance* instance,
                                 const Tensors& results) {
    Instance* const kept = instances_.find_kept(begin + inputs());
    if (info().has_instance && kept == nullptr) {
      told_.compare_anew(begin, instance, results, is_gradient());
    } else {
      told_.compare(begin, kept, results, is_gradient());
    }
  }

  /// Replaces the arguments on the stack.
  [[gnu::always_inline]] void put_results(c10::Stack& stack, std::size_t count, CallMode purpose,
                                          Tensors& results) const {
    if (purpose == CallMode::kExecute && c10::InferenceMode::is_enabled()) {
      make_inference_tensors(results);
    }
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

  [[gnu::always_inline]] void run(PyTorchCall& call, CallMode purpose, const c10::IValue* begin,
                                  bool is_out, Tensors& results) const {
    if (purpose == CallMode::kTrace) {
      call.take_inputs(begin);
      call.run(results);
      return;
    }
    const KernelScope scope(info().records && purpose == CallMode::kExecute);
    call.take_inputs(begin);
    c10::OptionalDeviceGuard on_device;
    if (call.device().has_value() && !call.device()->is_cpu()) {
      on_device.reset_device(*call.device());
    }
    if (is_out) {
      call.write_to(begin + arguments_);
    } else {
      call.run(results);
    }
  }

  /// Whether the library has the kernel that this one is the gradient of, by its name.
  bool is_of_a_kernel() const;

  /// Passes the exception of a call on.
  [[noreturn, gnu::cold, gnu::noinline]] void fail(CallMode purpose, const Operand* operands,
                                                   int described) const {
    try {
      throw;
    } catch (const Error&) {
      raise_in_pytorch(info(), operands, described);
    } catch (const std::exception& error) {
      // PyTorch has exceptions of its own while it traces, which must reach it as they are.
      const std::string text = exception_text(error);
      if (purpose != CallMode::kExecute && as_utf8(text) == text) {
        throw;
      }
      raise_in_pytorch(info(), operands, described);
    } catch (...) {
      raise_in_pytorch(info(), operands, described);
    }
  }

  std::size_t arguments_ = inputs() + attributes.size();
  bool is_quick_ = FastPathCall::is_for(kernel);
  bool are_told_ = ToldResults::is_for(info(), may_be_gradient);
  ToldResults told_{kernel};
  PyTorchInstances instances_;
  mutable std::atomic<PyTorchOperator*> gradient_{nullptr};
  mutable std::atomic<bool> is_gradient_{false};
};

/// A key's function, of which the dispatcher is the owner.
class PyTorchFunction final : public c10::OperatorKernel {
 public:
  PyTorchFunction(PyTorchOperator& of, CallMode purpose, bool is_out)
      : operator_(of), purpose_(purpose), is_out_(is_out) {}

  // NOLINTNEXTLINE(readability-named-parameter)
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, c10::Stack* stack) {
    operator_.call(*stack, purpose_, is_out_);
  }

 private:
  PyTorchOperator& operator_;
  CallMode purpose_;
  bool is_out_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_OPERATOR_H_
