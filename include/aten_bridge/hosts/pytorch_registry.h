// Registration: the kernels of a library become operators of PyTorch's.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_REGISTRY_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_REGISTRY_H_

#include <ATen/core/enum_tag.h>
#include <aten_bridge/hosts/pytorch_autocast.h>
#include <aten_bridge/hosts/pytorch_autograd.h>
#include <aten_bridge/hosts/pytorch_operator.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What an operator has of a library that another one has replaced, which has nothing for it.
class PyTorchReplaced final : public c10::OperatorKernel {
 public:
  explicit PyTorchReplaced(const PyTorchOperator& of) : operator_(of) {}

  // NOLINTNEXTLINE(readability-named-parameter)
  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, c10::Stack*) {
    TORCH_CHECK(false, operator_.info().operator_name,
                ": expected a call for which the kernel has an operator, got one of ",
                c10::toString(handle.operator_name()),
                " that only a library had which this kernel's has replaced");
  }

 private:
  const PyTorchOperator& operator_;
};

/// The operators of this library. It is never destroyed: PyTorch may call to the end.
class PyTorchRegistry {
 public:
  static PyTorchRegistry& get() {
    static auto* const registry = new PyTorchRegistry;  // NOLINT: see above
    return *registry;
  }

  /// Throws what is wrong.
  [[gnu::cold]] void add(const KernelOfPyTorch& kernel, bool replaces) {
    auto made = std::make_unique<PyTorchOperator>(kernel);
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : made->names()) {
      c10::FunctionSchema schema = made->schema(name);
      if (const auto other = dispatcher.findSchema(name)) {
        if (is_taken(*other, schema, kernel) && !replaces) {
          add_refused(kernel, made->qualified_name, {});
          return;
        }
      } else {
        handles_.push_back(dispatcher.registerDef(std::move(schema), "aten_bridge", tags()));
      }
    }
    PyTorchOperator& op = *made.release();  // the dispatcher refers to it for good
    op.handle.emplace(find_schema(op.names().front()));
    implement_all(op, replaces);
    const std::lock_guard<std::mutex> lock(mutex_);
    operators_.push_back(&op);
  }

  /// A kernel that is no operator, since its name is `taken` or for what `fault` says.
  [[gnu::cold]] void add_refused(const KernelOfPyTorch& kernel, const std::string& taken,
                                 const std::string& fault) {
    const std::lock_guard<std::mutex> lock(mutex_);
    refused_.push_back(kernel);
    std::string& text = fault.empty() ? taken_ : faults_;
    text.append(text.empty()    ? ""
                : fault.empty() ? ", "
                                : "\n")
        .append(fault.empty() ? taken : fault);
    // aten_bridge.torch raises it.
    if (std::getenv("ATEN_BRIDGE_REPORTS") == nullptr) {
      std::fprintf(stderr, "aten_bridge: %s\n",
                   fault.empty() ? taken_fault(taken).c_str() : fault.c_str());
    }
  }

  /// All faults, a line each; "" if there is none.
  [[gnu::cold]] std::string faults() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return taken_.empty()    ? faults_
           : faults_.empty() ? taken_fault(taken_)
                             : join({taken_fault(taken_), "\n", faults_});
  }

  /// Registers what was refused in the place of what there is, and what is registered once more:
  /// another library may have replaced it.
  [[gnu::cold]] void replace() {
    std::vector<KernelOfPyTorch> refused;
    std::vector<PyTorchOperator*> registered;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      registered = operators_;
      refused.swap(refused_);
      faults_.clear();
      taken_.clear();
    }
    for (PyTorchOperator* op : registered) {
      const std::lock_guard<std::mutex> lock(registering_);
      implement_all(*op, /*replaces=*/true);
    }
    for (const KernelOfPyTorch& kernel : refused) {
      register_kernel(kernel, /*replaces=*/true);
    }
  }

  [[gnu::cold]] void register_kernel(const KernelOfPyTorch& kernel, bool replaces) noexcept {
    const char* const name = kernel.kernel->info.operator_name;
    try {
      const std::lock_guard<std::mutex> lock(registering_);
      try {
        check_pytorch(name);
        add(kernel, replaces);
      } catch (const Error& error) {
        add_refused(kernel, {}, error.what());
      } catch (const std::exception& error) {
        add_refused(kernel, {}, join({name, ": ", exception_text(error)}));
      }
    } catch (...) {  // no memory for a text
    }
  }

  PyTorchOperator* find(const std::string& kernel_name, at::DeviceType device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (PyTorchOperator* op : operators_) {
      if (kernel_name == op->info().operator_name && op->kernel.device == device) {
        return op;
      }
    }
    return nullptr;
  }

  /// "my_ops::leaky_relu LeakyRelu default out", a line for each, with its overloads.
  [[gnu::cold]] std::string names() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string text;
    for (const PyTorchOperator* op : operators_) {
      text += join({text.empty() ? "" : "\n", op->qualified_name, " ", op->info().operator_name});
      for (const c10::OperatorName& name : op->names()) {
        text += PyTorchOperator::is_out(name) ? " out" : " default";
      }
    }
    return text;
  }

 private:
  PyTorchRegistry() = default;

  static std::vector<at::Tag> tags() {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 2
    return {at::Tag::pt2_compliant_tag};
#else
    return {};
#endif
  }

  static c10::OperatorHandle find_schema(const c10::OperatorName& name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name.name.c_str(),
                                                          name.overload_name.c_str());
  }

  static c10::DispatchKey key_of(at::DeviceType device) {
    return device == at::kCUDA ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  }

  [[gnu::cold]] static std::string taken_fault(const std::string& names) {
    return join({"expected operators that no other library has, got ", names,
                 ", which another one registered before and which stay as they are; ",
                 "load(path, replace=True) of aten_bridge.torch takes these, another NAMESPACE ",
                 "keeps both"});
  }

  /// Whether another library has this operator for this device. Throws `Error` if it has another
  /// under the name.
  [[gnu::cold]] static bool is_taken(const c10::OperatorHandle& other,
                                     const c10::FunctionSchema& schema,
                                     const KernelOfPyTorch& kernel) {
    const std::string of_other = c10::toString(other.schema());
    const std::string own = c10::toString(schema);
    if (of_other != own) {
      throw Error(Status::kAttribute,
                  join({kernel.kernel->info.operator_name, ": expected the schema of the operator ",
                        "that the process has already, ", of_other, ", got ", own,
                        "; start a new process for it, or build one of the libraries with another ",
                        "NAMESPACE"}));
    }
    return other.hasKernelForDispatchKey(key_of(kernel.device)) ||
           other.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  }

  [[gnu::cold]] void implement_all(PyTorchOperator& op, bool replaces) {
    const std::vector<c10::OperatorName> names = op.names();
    for (const c10::OperatorName& name : names) {
      implement(op, name, replaces);
    }
    if (replaces) {
      for (const char* const overload : {"", "out"}) {
        replace_rest(op, {op.qualified_name, overload}, names);
      }
    }
  }

  /// What there is of a library that was replaced, and which the kernel does not implement.
  [[gnu::cold]] void replace_rest(PyTorchOperator& op, const c10::OperatorName& name,
                                  const std::vector<c10::OperatorName>& own) {
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    const bool is_own = std::find(own.begin(), own.end(), name) != own.end();
    const OperatorOptions& options = op.info().options;
    const auto replace = [&](c10::DispatchKey key, bool is_implemented) {
      if (!is_implemented && handle.has_value() && handle->hasKernelForDispatchKey(key)) {
        implement_key<PyTorchReplaced>(name, key, op);
      }
    };
    const bool is_composite = is_own && options.is_composite;
    replace(c10::DispatchKey::CompositeImplicitAutograd, is_composite);
    replace(key_of(op.kernel.device), is_own);
    replace(c10::DispatchKey::PrivateUse1, is_composite || (is_own && options.is_private_use));
    if (is_own) {  // what has no meta function, or is for another device, had none before
      replace(c10::DispatchKey::Meta, is_composite || op.info().has_meta || op.may_be_gradient);
    }
  }

  template <class Function, class... Argument>
  [[gnu::cold]] void implement_key(const c10::OperatorName& name, c10::DispatchKey key,
                                   PyTorchOperator& op, Argument... arguments) {
    handles_.push_back(c10::Dispatcher::singleton().registerImpl(
        name, key,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Function>(op, arguments...)), {},
        nullptr, "aten_bridge"));
  }

  [[gnu::cold]] void implement(PyTorchOperator& op, const c10::OperatorName& name, bool replaces) {
    const KernelInfo& info = op.info();
    const OperatorOptions& options = info.options;
    const bool is_out = PyTorchOperator::is_out(name);
    const auto handle = find_schema(name);
    // What is the same for all devices may be there.
    const auto is_there = [&](c10::DispatchKey key) {
      return !replaces && handle.hasKernelForDispatchKey(key);
    };
    const auto call = [&](c10::DispatchKey key, Purpose purpose) {
      implement_key<PyTorchFunction>(name, key, op, purpose, is_out);
    };
    if (options.is_composite) {
      call(c10::DispatchKey::CompositeImplicitAutograd, Purpose::kTrace);
      for (const auto key : {key_of(op.kernel.device), c10::DispatchKey::Meta,
                             c10::DispatchKey::Autograd, c10::DispatchKey::PrivateUse1}) {
        if (handle.hasKernelForDispatchKey(key)) {  // of a library that is replaced
          call(key, Purpose::kTrace);
        }
      }
    } else {
      call(key_of(op.kernel.device), Purpose::kRun);
      if (options.is_private_use) {
        call(c10::DispatchKey::PrivateUse1, Purpose::kRun);
      }
      if ((info.has_meta || op.may_be_gradient) && !is_there(c10::DispatchKey::Meta)) {
        call(c10::DispatchKey::Meta, Purpose::kInfer);
      }
      if (!is_there(c10::DispatchKey::Autograd)) {
        implement_key<PyTorchAutograd>(name, c10::DispatchKey::Autograd, op, is_out);
      }
    }
    const auto autocast = op.kernel.device == at::kCUDA ? c10::DispatchKey::AutocastCUDA
                                                        : c10::DispatchKey::AutocastCPU;
    const auto pass = [&](c10::DispatchKey key) {
      handles_.push_back(c10::Dispatcher::singleton().registerImpl(
          name, key, c10::KernelFunction::makeFallthrough(), {}, nullptr, "aten_bridge"));
    };
    // Of a library that is replaced.
    if (!options.is_cast && replaces && handle.hasKernelForDispatchKey(autocast)) {
      pass(autocast);
    }
    // PyTorch's own way with these reads a result that there is not; the call resolves them.
    if (is_out && !is_there(c10::DispatchKey::Conjugate)) {
      pass(c10::DispatchKey::Conjugate);
      pass(c10::DispatchKey::Negative);
    }
    if (options.is_cast && !is_out) {
      implement_key<PyTorchAutocast>(name, autocast, op);
    }
  }

  std::mutex registering_;
  std::mutex mutex_;  // of what follows
  std::vector<PyTorchOperator*> operators_;
  std::vector<c10::RegistrationHandleRAII> handles_;
  std::vector<KernelOfPyTorch> refused_;
  std::string taken_;   // names
  std::string faults_;  // lines
};

inline PyTorchOperator* PyTorchOperator::gradient() const {
  PyTorchOperator* found = gradient_.load(std::memory_order_acquire);
  if (found == nullptr) {
    found =
        PyTorchRegistry::get().find(join({info().operator_name, kGradientSuffix}), kernel.device);
    gradient_.store(found, std::memory_order_release);
  }
  return found;
}

inline bool PyTorchOperator::is_of_a_kernel() const {
  if (is_gradient_.load(std::memory_order_relaxed)) {
    return true;
  }
  std::string name = info().operator_name;
  name.resize(name.size() - kGradientSuffix.size());
  const bool is_found = PyTorchRegistry::get().find(name, kernel.device) != nullptr;
  is_gradient_.store(is_found, std::memory_order_relaxed);
  return is_found;
}

ATEN_BRIDGE_INLINE void register_with_pytorch(const KernelOfPyTorch& kernel) noexcept {
  if (!kernel.kernel->info.takes_call) {
    PyTorchRegistry::get().register_kernel(kernel, /*replaces=*/false);
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// What of the library's kernels did not become an operator of PyTorch's, a line each; "" if all
/// did. With `replace`, those whose names are taken are registered now in the place of others.
/// Valid until the thread's next call.
extern "C" ATEN_BRIDGE_PUBLIC inline const char* aten_bridge_pytorch_faults(int replace) {
  auto& registry = aten_bridge::detail::PyTorchRegistry::get();
  if (replace != 0) {
    registry.replace();
  }
  thread_local std::string text;
  text = registry.faults();
  return text.c_str();
}

/// The library's operators: "my_ops::leaky_relu LeakyRelu default out", a line each, with their
/// overloads. Valid until the thread's next call.
extern "C" ATEN_BRIDGE_PUBLIC inline const char* aten_bridge_pytorch_operators() {
  thread_local std::string text;
  text = aten_bridge::detail::PyTorchRegistry::get().names();
  return text.c_str();
}

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_REGISTRY_H_
