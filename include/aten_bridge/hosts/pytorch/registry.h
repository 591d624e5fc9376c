// Registration: the kernels of a library become operators of PyTorch's.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_REGISTRY_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_REGISTRY_H_

#include <ATen/core/enum_tag.h>
#include <aten_bridge/hosts/introspection/answers.h>
#include <aten_bridge/hosts/pytorch/autocast.h>
#include <aten_bridge/hosts/pytorch/autograd.h>
#include <aten_bridge/hosts/pytorch/operator.h>

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
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

/// The operators of this library. It is never destroyed: PyTorch may call to the end.
class PyTorchRegistry {
 public:
  static PyTorchRegistry& get() {
    static auto* const registry = new PyTorchRegistry;  // NOLINT: see above
    return *registry;
  }

  /// Registers a kernel; throws an error that says what is wrong with it.
  [[gnu::cold]] void add(const PyTorchKernel& kernel, bool replaces) {
    auto made = std::make_unique<PyTorchOperator>(kernel);
    check_names(*made);
    auto& dispatcher = c10::Dispatcher::singleton();
    std::vector<c10::FunctionSchema> missing;  // defined once no name is known to be taken
    for (const c10::OperatorName& name : made->names()) {
      c10::FunctionSchema schema = made->schema(name);
      const auto other = dispatcher.findSchema(name);
      if (!other.has_value()) {
        missing.push_back(std::move(schema));
      } else if (is_taken(*other, schema, kernel) && !replaces) {
        add_refused(kernel, made->qualified_name, {});
        return;
      }
    }
    for (c10::FunctionSchema& schema : missing) {
      schemas_.push_back(
          dispatcher.registerDef(std::move(schema), "aten_bridge", tags(made->info())));
    }
    PyTorchOperator& op = *made.release();  // the dispatcher refers to it for good
    op.handle.emplace(find_schema(op.names().front()));
    implement_all(op, replaces);
    const std::lock_guard<std::mutex> lock(mutex_);
    for (PyTorchOperator* other : operators_) {
      op.find_gradient(*other);
      other->find_gradient(op);
    }
    operators_.push_back(&op);
  }

  /// A kernel that is no operator, since its name is `taken` or for what `fault` says.
  [[gnu::cold]] void add_refused(const PyTorchKernel& kernel, const std::string& taken,
                                 const std::string& fault) {
    const std::lock_guard<std::mutex> lock(mutex_);
    refused_.push_back(kernel);
    std::string& text = fault.empty() ? taken_ : faults_;
    text.append(text.empty()    ? ""
                : fault.empty() ? ", "
                                : "\n")
        .append(fault.empty() ? taken : fault);
  }

  /// All faults, a line each; "" if there is none.
  [[gnu::cold]] std::string faults() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return taken_.empty()    ? faults_
           : faults_.empty() ? taken_fault(taken_)
                             : join({taken_fault(taken_), "\n", faults_});
  }

  /// The same on stderr, for a program that opens the library and asks it nothing.
  [[gnu::cold]] static void print_faults() {
    const std::string faults = is_asked ? std::string() : get().faults();
    if (!faults.empty()) {
      std::fprintf(stderr, "aten_bridge: %s\n", for_people(faults).c_str());
    }
  }

  /// Registers what was refused instead of what there is, and what is registered once more:
  /// another library may have replaced it.
  [[gnu::cold]] void replace() {
    std::vector<PyTorchKernel> refused;
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
    for (const PyTorchKernel& kernel : refused) {
      register_kernel(kernel, /*replaces=*/true);
    }
  }

  [[gnu::cold]] void register_kernel(const PyTorchKernel& kernel, bool replaces) noexcept {
    const char* const name = kernel.kernel->info.operator_name;
    try {
      const std::lock_guard<std::mutex> lock(registering_);
      try {
        check_pytorch(name);
        add(kernel, replaces);
      } catch (const Error& error) {
        add_refused(kernel, {}, as_utf8(error.what()));
      } catch (const std::exception& error) {
        add_refused(kernel, {}, as_utf8(join({name, ": ", exception_text(error)})));
      }
    } catch (...) {  // no memory for a text
    }
  }

  /// Gives up what is implemented of an operator on a device, for a library that replaces it.
  [[gnu::cold]] void release(const std::string& qualified_name, at::DeviceType device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (PyTorchOperator* op : operators_) {
      if (qualified_name == op->qualified_name && device == op->kernel.device) {
        op->implementations.clear();
      }
    }
  }

  /// `register_with_pytorch` of the table.
  [[gnu::cold]] static const char* answer(int replace) {
    is_asked = true;
    PyTorchRegistry& registry = get();
    if (replace != 0) {
      registry.replace();
    }
    std::string json = "{\"operators\": [";
    {
      const std::lock_guard<std::mutex> lock(registry.mutex_);
      for (const PyTorchOperator* op : registry.operators_) {
        json.append(json.back() == '[' ? "[" : ", [");
        append_json(json, op->qualified_name.c_str());
        json += ", ";
        append_json(json, op->info().operator_name);
        for (const c10::OperatorName& name : op->names()) {
          json += PyTorchOperator::is_out(name) ? ", \"out\"" : ", \"default\"";
        }
        json += ']';
      }
    }
    json += "], \"faults\": ";
    append_text(json, registry.faults());
    return keep_answer(json + "}");
  }

 private:
  [[gnu::cold]] PyTorchRegistry() {
    library_table().release = [](const char* qualified_name, int device) {
      get().release(qualified_name, static_cast<at::DeviceType>(device));
    };
    library_table().register_with_pytorch = &answer;
    std::atexit(&print_faults);
  }

  [[gnu::cold]] static std::vector<at::Tag> tags(const KernelDescriptor& info) {
    std::vector<at::Tag> tags;
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 2
    tags.push_back(at::Tag::pt2_compliant_tag);
#endif
    if (info.is_data_dependent) {
      tags.push_back(at::Tag::dynamic_output_shape);
    }
    if (info.has_side_effect()) {  // no other tag keeps a call where its result is not used
      tags.push_back(at::Tag::nondeterministic_seeded);
    }
    return tags;
  }

  /// Throws `Error` for names of attributes that no call can give, and for an operator's name that
  /// another kernel of this library has.
  [[gnu::cold]] void check_names(const PyTorchOperator& op) {
    const char* const kernel = op.info().operator_name;
    std::vector<std::string> names;
    for (const SchemaAttribute& attribute : op.attributes) {
      const std::string& name = attribute.name;
      const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
      const bool is_ascii = std::all_of(name.begin(), name.end(), [](char c) { return c > 0; });
      if (is_known || (is_ascii && !is_argument_name(name, {}))) {
        raise(Status::kAttribute,
              {kernel, ": attribute '", name, "': expected ",
               is_known ? "one attribute of this name, got several; rename them"
                        : "a name that an argument in Python can have, got another; rename it",
               " in the kernel's export"});
      }
      names.push_back(name);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const PyTorchOperator* other : operators_) {
      if (other->qualified_name == op.qualified_name && other->kernel.device == op.kernel.device) {
        raise(Status::kAttribute,
              {kernel, ": expected a name of its own in PyTorch, got ", op.qualified_name,
               ", which the kernel ", other->info().operator_name,
               " has too; give one of them aten_bridge::name(\"...\")"});
      }
    }
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
                                     const PyTorchKernel& kernel) {
    const std::string theirs = c10::toString(other.schema());
    const std::string own = c10::toString(schema);
    if (theirs != own) {
      raise(Status::kAttribute,
            {kernel.kernel->info.operator_name, ": expected the schema of the operator ",
             "that the process has already, ", theirs, ", got ", own,
             "; start a new process for it, or build one of the libraries with another ",
             "NAMESPACE"});
    }
    const bool has_side_effect = kernel.kernel->info.has_side_effect();
    if (other.hasTag(at::Tag::nondeterministic_seeded) != has_side_effect) {
      raise(Status::kAttribute,
            {kernel.kernel->info.operator_name, ": expected an operator ",
             has_side_effect ? "without" : "with", " side effects, as the process has already of ",
             "the name, got one ", has_side_effect ? "with" : "without",
             "; start a new process for it, or build one of the libraries with another ",
             "NAMESPACE"});
    }
    return other.hasKernelForDispatchKey(key_of(kernel.device)) ||
           other.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  }

  [[gnu::cold]] static void implement_all(PyTorchOperator& op, bool replaces) {
    if (replaces) {
      release_everywhere(op);
    }
    for (const c10::OperatorName& name : op.names()) {
      implement(op, name);
    }
  }

  /// Has each library of the process, this one too, give up what it implements of the operator on
  /// the same device.
  [[gnu::cold]] static void release_everywhere(const PyTorchOperator& op) {
    std::vector<std::string> libraries;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t /*size*/, void* to) {
          static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
          return 0;
        },
        &libraries);
    for (const std::string& library : libraries) {
      void* const opened =
          library.empty() ? nullptr : dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
      if (opened == nullptr) {
        continue;
      }
      using GetTable = const LibraryTable* (*)();
      if (void* const symbol = dlsym(opened, "aten_bridge_library")) {
        const LibraryTable& table = *reinterpret_cast<GetTable>(symbol)();
        if (table.release != nullptr) {
          table.release(op.qualified_name.c_str(), static_cast<int>(op.kernel.device));
        }
      }
      dlclose(opened);
    }
  }

  template <class Function, class... Argument>
  [[gnu::cold]] static void implement_key(const c10::OperatorName& name, c10::DispatchKey key,
                                          PyTorchOperator& op, Argument... arguments) {
    op.implementations.push_back(c10::Dispatcher::singleton().registerImpl(
        name, key,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Function>(op, arguments...)), {},
        nullptr, "aten_bridge"));
  }

  [[gnu::cold]] static void implement(PyTorchOperator& op, const c10::OperatorName& name) {
    const KernelDescriptor& info = op.info();
    const OperatorOptions& options = info.options;
    const bool is_out = PyTorchOperator::is_out(name);
    const auto handle = find_schema(name);
    // A library for another device may have registered what is the same for all devices. If that
    // library is replaced by one that lacks it, it is missing from then on.
    const auto is_there = [&](c10::DispatchKey key) { return handle.hasKernelForDispatchKey(key); };
    const auto call = [&](c10::DispatchKey key, CallMode mode) {
      implement_key<PyTorchFunction>(name, key, op, mode, is_out);
    };
    if (options.is_composite) {
      call(c10::DispatchKey::CompositeImplicitAutograd, CallMode::kTrace);
    } else {
      call(key_of(op.kernel.device), CallMode::kExecute);
      if (options.is_private_use && !is_there(c10::DispatchKey::PrivateUse1)) {
        call(c10::DispatchKey::PrivateUse1, CallMode::kExecute);
      }
      if ((info.has_meta || op.may_be_gradient) && !is_there(c10::DispatchKey::Meta)) {
        call(c10::DispatchKey::Meta, CallMode::kMeta);
      }
      if (!is_there(c10::DispatchKey::Autograd)) {
        implement_key<PyTorchAutograd>(name, c10::DispatchKey::Autograd, op, is_out);
      }
    }
    const auto pass = [&](c10::DispatchKey key) {
      op.implementations.push_back(c10::Dispatcher::singleton().registerImpl(
          name, key, c10::KernelFunction::makeFallthrough(), {}, nullptr, "aten_bridge"));
    };
    // PyTorch's own fallback for these reads a result that does not exist; the call resolves them.
    if (is_out && !is_there(c10::DispatchKey::Conjugate)) {
      pass(c10::DispatchKey::Conjugate);
      pass(c10::DispatchKey::Negative);
    }
    if (options.is_cast && !is_out) {
      for (const at::DeviceType device : {op.kernel.device, at::DeviceType::PrivateUse1}) {
        if (!is_there(PyTorchAutocast::key_of(device))) {
          implement_key<PyTorchAutocast>(name, PyTorchAutocast::key_of(device), op, device);
        }
      }
    }
  }

  std::mutex registering_;
  std::mutex mutex_;  // guards what follows
  std::vector<PyTorchOperator*> operators_;
  std::vector<c10::RegistrationHandleRAII> schemas_;
  std::vector<PyTorchKernel> refused_;
  std::string taken_;   // names
  std::string faults_;  // lines
};

ATEN_BRIDGE_INLINE void register_with_pytorch(const PyTorchKernel& kernel) noexcept {
  PyTorchRegistry& registry = PyTorchRegistry::get();  // adds itself to the library's table
  if (!kernel.kernel->info.is_raw) {
    registry.register_kernel(kernel, /*replaces=*/false);
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// No template of the host's depends on the device.
#define ATEN_BRIDGE_INSTANTIATE_PYTORCH(Device)

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_REGISTRY_H_
