// One call of XLA's: the host's adapter, and the way from its frame to the kernel and back.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_JAX_CALL_H_
#define ATEN_BRIDGE_HOSTS_JAX_CALL_H_

#include <aten_bridge/call/failure.h>
#include <aten_bridge/call/host.h>
#include <aten_bridge/call/run.h>
#include <aten_bridge/core/arithmetic.h>
#include <aten_bridge/hosts/jax/instances.h>
#include <aten_bridge/hosts/jax/jax.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Throws an error that says what is wrong with the form of a frame.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_form(const char* operator_name,
                                                               const xla::CallFrame& frame) {
  const auto text = [](const char* what, const auto& list) {
    return join({what, " (", count_text(list.size, "operand"), " in a structure of ",
                 count_text(static_cast<int64_t>(list.struct_size), "byte"), ")"});
  };
  raise(Status::kCount,
        {operator_name, ": expected a call frame of XLA's FFI, got one of ",
         count_text(static_cast<int64_t>(frame.struct_size), "byte"), " with ",
         text("inputs", frame.inputs), ", ", text("outputs", frame.outputs), " and ",
         text("attributes", frame.attributes), ", whose arrays contradict that; ",
         "report it with the version of jaxlib"});
}

/// What XLA calls a handler with, and what the bridge keeps for the kernel.
class JaxCall : public HostCallDefaults {
 public:
  using Result = const char*;  // null, or the text of an error, which is the thread's last one
  static constexpr HostMessages kMessages = {"out", "let out tell the shape of the result",
                                             "let out tell the dtype of the result",
                                             "the arguments of the call with the kernel"};

  JaxCall(const char* operator_name, const JaxKernel* kernel, JaxInstances* instances,
          const xla::CallFrame* frame)
      : frame_(*frame) {
    if (kernel->kernel->info.has_instance || frame_.attributes.size != 0) {
      kept_ = instances->of(*kernel->kernel, frame_.attributes);
      none_count_ = static_cast<int>(kept_->nones.size());
      if (none_count_ != 0 && kept_->nones.back() >= input_count()) {
        refuse_nones(operator_name);
      }
    }
    if (kernel->device != at::kCPU) {
      stream_ = find_stream(operator_name);
    }
  }

  int input_count() const { return static_cast<int>(frame_.inputs.size) + none_count_; }
  int size() const { return input_count() + static_cast<int>(frame_.outputs.size); }
  void* stream() const { return stream_; }

  /// XLA tells no more of where in a program a call is than its attributes and shapes.
  std::uint64_t call_site(int /*count*/) const {
    auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(kept_.get()));
    const auto add = [&](const xla::Args& operands, int64_t i) {
      const xla::Buffer* operand =
          i < operands.size && i >= 0 ? buffer(operands, static_cast<int>(i)) : nullptr;
      number = operand == nullptr ? number : with_sizes(number, operand->sizes, operand->rank);
    };
    add(frame_.inputs, 0);
    add(frame_.outputs, frame_.outputs.size - 1);
    return number;
  }

  JaxAttributes attributes() const { return JaxAttributes(frame_.attributes); }
  Instance* instance() const { return kept_ == nullptr ? nullptr : kept_->instance.get(); }

  void describe(OperandDescs operands) const {
    const int inputs = input_count();
    int none = 0;  // how many inputs were None so far
    for (int i = 0; i < inputs; ++i) {
      if (none < none_count_ && kept_->nones[static_cast<std::size_t>(none)] == i) {
        operands.set_none(i);
        ++none;
      } else {
        describe(operands, i, buffer(frame_.inputs, i - none));
      }
    }
    for (int i = inputs; i < operands.size(); ++i) {
      describe(operands, i, buffer(frame_.outputs, i - inputs));
    }
  }

  /// XLA's threads take denormal numbers for zeros (jaxlib 0.6 and 0.10): results are bitwise
  /// equal in all hosts. KernelScope restores what was set.
  static void invoke(const KernelBase& kernel, const Arguments& arguments) {
    Arithmetic::keep_denormals();
    kernel.invoke(arguments);
  }

  static const char* succeed() { return nullptr; }
  [[gnu::cold]] static const char* fail(const Failure& /*failure*/, ErrorMode /*mode*/) {
    return last_error_text().c_str();  // where record_failure() has put it
  }

 private:
  static void describe(OperandDescs operands, int i, const xla::Buffer* buffer) {
    if (buffer == nullptr) {
      operands.refuse(i).add(Status::kNullPointer, operands.name(i),
                             {"a buffer of XLA's", kGot, "none"});
      return;
    }
    const DType dtype = xla::dtype_of(buffer->dtype);
    operands.set(i, buffer->data, dtype, buffer->sizes, static_cast<int>(buffer->rank));
    if (dtype == DType::kNone || !has_form(buffer->rank, buffer->sizes)) {
      refuse(operands, i, *buffer);
    }
  }

  [[gnu::cold, gnu::noinline]] static void refuse(OperandDescs operands, int i,
                                                  const xla::Buffer& buffer) {
    const OperandName name = operands.name(i);
    Report& report = operands.refuse(i);
    if (!has_form(buffer.rank, buffer.sizes)) {
      report.add(Status::kShape, name, form_fault(buffer.rank));
      return;
    }
    report.add(Status::kDtype, name,
               {dtype_names(), kGot, "\"", xla::dtype_text(buffer.dtype), "\" with shape ",
                shape_text(buffer.sizes, static_cast<int>(buffer.rank))});
  }

  static const xla::Buffer* buffer(const xla::Args& operands, int i) {
    const auto* buffer = static_cast<const xla::Buffer*>(operands.items[i]);
    const bool is_one = operands.types[i] == xla::Args::kBuffer && buffer != nullptr &&
                        buffer->struct_size >= sizeof(xla::Buffer);
    return is_one ? buffer : nullptr;
  }

  [[noreturn, gnu::cold, gnu::noinline]] void refuse_nones(const char* operator_name) const {
    raise(Status::kAttribute,
          {operator_name, ": attribute '", kNoneAttribute, "': expected inputs below ",
           input_count(), ", got ", kept_->nones.back()});
  }

  /// XLA's stream of CUDA; throws what XLA says where there is none.
  void* find_stream(const char* operator_name) const {
    xla::StreamGetArgs arguments = {sizeof(arguments), nullptr, frame_.context, nullptr};
    if (xla::Error* const error = frame_.api->get_stream(&arguments)) {
      refuse_stream(operator_name, error);
    }
    return arguments.stream;
  }

  [[noreturn, gnu::cold, gnu::noinline]] void refuse_stream(const char* operator_name,
                                                            xla::Error* error) const {
    xla::ErrorGetMessageArgs message = {sizeof(message), nullptr, error, ""};
    frame_.api->get_error_message(&message);
    std::string text =
        join({operator_name, ": expected XLA's stream of CUDA, got the error: ", message.message});
    xla::ErrorDestroyArgs destroyed = {sizeof(destroyed), nullptr, error};
    frame_.api->destroy_error(&destroyed);
    raise(Status::kDevice, {text});
  }

  const xla::CallFrame& frame_;
  std::shared_ptr<const JaxCacheEntry> kept_;
  void* stream_ = nullptr;
  int none_count_ = 0;
};

/// Answers the call that asks what the handler is; false: the call is another.
inline bool answer_metadata(const xla::CallFrame& frame) {
  for (xla::Extension* extension = frame.extensions; extension != nullptr;
       extension = extension->next) {
    if (extension->type == xla::Extension::kMetadata) {
      xla::Metadata* metadata = reinterpret_cast<xla::MetadataExtension*>(extension)->metadata;
      // XLA refuses handlers of a minor version above its own; 0.1 is that of jaxlib 0.6.
      metadata->version = {sizeof(xla::Version), nullptr, 0, 1};
      metadata->traits = 0;
      return true;
    }
  }
  return false;
}

/// What is kept for the kernel; throws std::bad_alloc.
inline JaxInstances& instances_of(JaxKernel& kernel) {
  JaxInstances* instances = kernel.instances.load(std::memory_order_acquire);
  if (instances == nullptr) {
    auto made = std::make_unique<JaxInstances>();
    if (kernel.instances.compare_exchange_strong(instances, made.get())) {
      instances = made.release();  // for good: XLA may call to the end
    }
  }
  return *instances;
}

[[gnu::cold, gnu::noinline]] inline xla::Error* make_error(const xla::Api* api, const char* text) {
  xla::ErrorCreateArgs arguments = {sizeof(arguments), nullptr, text,
                                    xla::ErrorCreateArgs::kInvalidArgument};
  return api->create_error(&arguments);
}

template <class Device>
xla::Error* call_from_jax(const char* operator_name, FindForJax* find, JaxKernel* kernel,
                          const xla::CallFrame* frame) noexcept {
  if (frame == nullptr || answer_metadata(*frame) || frame->stage != xla::CallFrame::kExecute) {
    return nullptr;
  }
  const char* text = nullptr;
  try {
    if (!xla::is_well_formed(*frame)) {
      refuse_form(operator_name, *frame);
    }
    if (find != nullptr) {
      check_pytorch(operator_name);
      kernel = &find(*frame);
    }
    const KernelBase& base = *kernel->kernel;
    if (base.info.is_raw) {
      raise(Status::kCount, {operator_name, ": expected a kernel of tensors, got one ",
                             "over a CallFrame, which MindSpore alone has"});
    }
    text = run<Device, JaxCall>(base, kernel->call_sites, static_cast<const JaxKernel*>(kernel),
                                &instances_of(*kernel), frame);
  } catch (...) {
    record_failure(operator_name, nullptr, 0);
    text = last_error_text().c_str();
  }
  if (text == nullptr) {
    return nullptr;
  }
  return make_error(frame->api, *text == '\0' ? "expected memory for the call, got none" : text);
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// The template that a kernel's source only declares.
#define ATEN_BRIDGE_INSTANTIATE_JAX(Device)                                               \
  template xla::Error* call_from_jax<Device>(const char* operator_name, FindForJax* find, \
                                             JaxKernel* kernel,                           \
                                             const xla::CallFrame* frame) noexcept;

#endif  // ATEN_BRIDGE_HOSTS_JAX_CALL_H_
