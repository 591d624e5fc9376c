// The C functions that hosts call: any of PyTorch's operators, which an attribute names.
//
// AtenOperator is for operators of one result, AtenOperators for those of several: MindSpore 2.10
// has other types for their hooks. AtenOperatorJax and AtenOperatorsJax are handlers of XLA's,
// which do the same. Beside them stands what the Python modules ask.
//
// SPDX-License-Identifier: Apache-2.0

#include "kernel_cache.h"

#include <aten_bridge/hosts/jax/attributes.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::AotExtra;
using detail::append_json;
using detail::append_text;
using detail::CpuDevice;
using detail::keep_answer;
using detail::MindSporeAttributes;
using detail::MindSporeCustom;

/// The thread's, of all operators.
detail::CallSiteCache& call_sites() {
  thread_local const detail::CallSites kept;
  return *kept.cache;
}

/// What the host's attribute says.
std::string text_of(void* extra) {
  std::string text;
  MindSporeAttributes(extra).get(kOperatorAttribute, text);
  detail::check_pytorch("AtenOperator");
  return text;
}

/// What the host keeps; null before Init, and where that met an error.
// no_sanitize: the dynamic type of `extra` is a class of the host's, unknown here.
__attribute__((no_sanitize("vptr"))) OperatorInstance* instance_of(void* extra) {
  const auto* const host = static_cast<AotExtra*>(extra);
  return host == nullptr
             ? nullptr
             : static_cast<OperatorInstance*>(static_cast<Instance*>(host->kernel_data));
}

/// The kernel that a call means, of so many inputs and outputs. Throws `Error`.
const KernelBase& kernel_of_call(void* extra, int operands) {
  OperatorInstance* const instance = instance_of(extra);
  return instance == nullptr ? find_kernel(text_of(extra)) : find_kernel(*instance, operands);
}

/// The kernel that a hook is asked about. Throws `Error`.
const KernelBase& kernel_of_hook(void* extra) {
  std::string inputs;
  if (!MindSporeAttributes(extra).get(detail::kInputsAttribute, inputs)) {
    return find_kernel(text_of(extra));
  }
  return find_kernel(text_of(extra), static_cast<int>(detail::split(inputs).size()));
}

/// Calls `use`; what is wrong with the operator's name reaches the host as its own errors do.
template <class Find, class Use>
auto with_kernel(const Find& find, const Use& use) {
  const KernelBase* kernel = nullptr;
  try {
    kernel = &find();
  } catch (...) {
    throw std::runtime_error(detail::record_failure("AtenOperator", nullptr, 0).text);
  }
  return use(*kernel);
}

int init(int* ndims, int64_t** shapes, const char** dtypes, void* extra) noexcept {
  try {
    const KernelBase& kernel = find_kernel(text_of(extra));
    detail::init(kernel, ndims, shapes, dtypes, extra);
    OperatorInstance* const instance = instance_of(extra);
    if (instance != nullptr && instance->kernel == nullptr) {
      instance->kernel = &kernel;
    }
    return 0;
  } catch (...) {  // the first call meets it again
    return 0;
  }
}

/// What a question's attribute says; empty without one.
std::string text_of(const detail::PythonQuestion& question) {
  for (int i = 0; i < question.attribute_count; ++i) {
    const detail::PythonAttribute& attribute = question.attributes[i];
    if (std::string_view(attribute.name) == kOperatorAttribute) {
      return {static_cast<const char*>(attribute.data), static_cast<std::size_t>(attribute.size)};
    }
  }
  return {};
}

/// The text of the operator that XLA calls; empty where there is none.
std::string_view text_of(const detail::xla::Attributes& attributes) {
  detail::JaxValue value;
  for (int64_t i = 0; i < attributes.size; ++i) {
    if (detail::name_of(attributes, i) == kOperatorAttribute &&
        detail::read_value(attributes, i, value) &&
        value.type == detail::xla::Attributes::kString) {
      return {static_cast<const char*>(value.data), value.count};
    }
  }
  return {};
}

/// The operator that XLA calls; it lives for ever. Throws `Error`.
detail::JaxKernel& find_for_jax(const detail::xla::CallFrame& frame) {
  struct Last {
    std::string text;
    std::uint64_t epoch = 0;
    detail::JaxKernel* kernel = nullptr;
  };
  thread_local Last last;
  const std::string_view text = text_of(frame.attributes);
  const std::uint64_t epoch = dispatcher_epoch();
  if (last.kernel == nullptr || last.epoch != epoch || last.text != text) {
    static auto* const mutex = new std::mutex;
    static auto* const found = new std::map<const KernelBase*, std::unique_ptr<detail::JaxKernel>>;
    std::string kept(text);
    const KernelBase& kernel = find_kernel(kept);
    const std::lock_guard<std::mutex> lock(*mutex);
    std::unique_ptr<detail::JaxKernel>& jax_kernel = (*found)[&kernel];
    if (jax_kernel == nullptr) {
      jax_kernel.reset(new detail::JaxKernel{&kernel, &call_sites, CpuDevice::kType});
    }
    last = {std::move(kept), epoch, jax_kernel.get()};
  }
  return *last.kernel;
}

/// A call of ops.Custom.
int call_custom(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                void* stream, void* extra) {
  const auto find = [&]() -> const KernelBase& { return kernel_of_call(extra, nparam); };
  return with_kernel(find, [&](const KernelBase& kernel) {
    return detail::run<CpuDevice, MindSporeCustom>(kernel, &call_sites, nparam, params, ndims,
                                                   shapes, dtypes, stream, extra);
  });
}

/// How many tensors an operator takes; -1: any number.
int count_inputs(const Schema& schema) {
  int count = 0;
  for (const Argument& argument : schema.arguments) {
    if (argument.form == Argument::Form::kTensors) {
      return -1;
    }
    count += argument.form == Argument::Form::kTensor ? 1 : 0;
  }
  return count;
}

const char* fail(int* status) {
  Failure failure = detail::record_failure("AtenOperator", nullptr, 0);
  *status = static_cast<int>(failure.status);
  return keep_answer(std::move(failure.text));
}

}  // namespace

}  // namespace aten_bridge::operators

#define ATEN_BRIDGE_OPERATOR_ENTRY(Name, kSeveral)                                                \
  ATEN_BRIDGE_ENTRY_MINDSPORE_CALL(Name, aten_bridge::operators::call_custom)                     \
  extern "C" ATEN_BRIDGE_PUBLIC int Name##Init(int* ndims, int64_t** shapes, const char** dtypes, \
                                               void* extra) {                                     \
    return aten_bridge::operators::init(ndims, shapes, dtypes, extra);                            \
  }                                                                                               \
  extern "C" ATEN_BRIDGE_PUBLIC void* Name##Jax(const void* call) {                               \
    using namespace aten_bridge::operators;                                                       \
    return aten_bridge::detail::call_from_jax<CpuDevice>(                                         \
        "AtenOperator", &find_for_jax, nullptr,                                                   \
        static_cast<const aten_bridge::detail::xla::CallFrame*>(call));                           \
  }                                                                                               \
  ATEN_BRIDGE_RETURNS_CLASSES(                                                                    \
      extern "C" ATEN_BRIDGE_PUBLIC auto Name##InferShape(int* ndims, int64_t** shapes,           \
                                                          void* extra) {                          \
        using namespace aten_bridge::operators;                                                   \
        const auto find = [&]() -> const KernelBase& { return kernel_of_hook(extra); };           \
        return with_kernel(find, [&](const KernelBase& kernel) {                                  \
          return aten_bridge::detail::as_returned<kSeveral>(                                      \
              aten_bridge::detail::infer_sizes(kernel, ndims, shapes, extra));                    \
        });                                                                                       \
      } extern "C" ATEN_BRIDGE_PUBLIC auto Name##InferType(std::vector<int> types, void* extra) { \
        using namespace aten_bridge::operators;                                                   \
        const auto find = [&]() -> const KernelBase& { return kernel_of_hook(extra); };           \
        return with_kernel(find, [&](const KernelBase& kernel) {                                  \
          return aten_bridge::detail::as_returned<kSeveral>(                                      \
              aten_bridge::detail::infer_types(kernel, types, extra));                            \
        });                                                                                       \
      })

ATEN_BRIDGE_OPERATOR_ENTRY(AtenOperator, false)
ATEN_BRIDGE_OPERATOR_ENTRY(AtenOperators, true)

/// All overloads of a name such as "aten::max", in JSON: [["aten::max.dim", "why it cannot be
/// called, or nothing", whether since it writes, whether since it takes no tensor, "its schema",
/// whether sizes depend on values, whether it is random, the number of tensors or -1, [["dim", 1,
/// "an int", true], ...]], ...].
extern "C" ATEN_BRIDGE_PUBLIC const char* aten_bridge_operator_overloads(const char* name,
                                                                         int* status) {
  using namespace aten_bridge::operators;
  try {
    aten_bridge::detail::check_pytorch(name);
    std::string json = "[";
    for (const c10::OperatorHandle& handle : find_overloads(name)) {
      const Schema schema = read_schema(handle.schema());
      json += json.size() == 1 ? "[" : ", [";
      append_json(json, schema.name.c_str());
      json += ", ";
      append_text(json, schema.fault);
      json += schema.is_writing ? ", true, " : ", false, ";
      json += schema.is_factory ? "true, " : "false, ";
      append_json(json, aten_bridge::detail::join({c10::toString(handle.schema())}).c_str());
      json += depends_on_values(handle) ? ", true, " : ", false, ";
      json += is_random(handle) ? "true, " : "false, ";
      json += std::to_string(count_inputs(schema)) + ", [";
      for (const Argument& argument : schema.arguments) {
        const bool is_list = argument.form == Argument::Form::kTensors && argument.is_required;
        if (argument.form == Argument::Form::kAttribute || is_list) {
          json += json.back() == '[' ? "[" : ", [";
          append_json(json, argument.name.c_str());
          const auto type = is_list ? aten_bridge::AttributeType::kInt : argument.type;
          json += aten_bridge::detail::join({", ", static_cast<int>(type), ", "});
          append_text(json, is_list ? kLengthText : argument.text);
          json += argument.is_required ? ", true]" : ", false]";
        }
      }
      json += "]]";
    }
    *status = 0;
    return keep_answer(json + "]");
  } catch (...) {
    return fail(status);
  }
}

/// The names of all operators of the dispatcher, without overloads, in JSON.
extern "C" ATEN_BRIDGE_PUBLIC const char* aten_bridge_operator_names() {
  using namespace aten_bridge::operators;
  std::set<std::string> names;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    names.insert(name.name);
  }
  std::string json = "[";
  for (const std::string& name : names) {
    json += json.size() == 1 ? "" : ", ";
    append_json(json, name.c_str());
  }
  return keep_answer(json + "]");
}

/// What the kernel of a text for `aten_bridge_operator` is, as the table says it of one that was
/// exported.
extern "C" ATEN_BRIDGE_PUBLIC const char* aten_bridge_operator_describe(const char* text,
                                                                        int* status) {
  using namespace aten_bridge::operators;
  try {
    *status = 0;
    return keep_answer(aten_bridge::detail::description(find_kernel(text), CpuDevice::kType,
                                                        "MINDSPORE JAX ", ""));
  } catch (...) {
    return fail(status);
  }
}

/// What infer_for_python() says of the kernel that `aten_bridge_operator` among the attributes
/// means.
extern "C" ATEN_BRIDGE_PUBLIC const char* aten_bridge_operator_infer(
    const aten_bridge::detail::PythonQuestion* question, int* status) {
  using namespace aten_bridge::operators;
  try {
    const KernelBase& kernel = find_kernel(text_of(*question), question->input_count);
    return aten_bridge::detail::infer_for_python(kernel, *question, status);
  } catch (...) {
    return fail(status);
  }
}

#pragma GCC visibility pop
