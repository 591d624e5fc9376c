// One call of XLA's: the host's adapter, and the way from its frame to the kernel and back.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_JAX_CALL_H_
#define ATEN_BRIDGE_HOSTS_JAX_CALL_H_

#include <aten_bridge/call/failure.h>
#include <aten_bridge/call/host.h>
#include <aten_bridge/call/run.h>
#include <aten_bridge/hosts/jax/instances.h>
#include <aten_bridge/hosts/jax/jax.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Throws what is wrong with a frame that is not well formed.
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
  static constexpr bool kCountsInputs = true;
  static constexpr bool kCountsOutputs = true;

  JaxCall(const char* operator_name, const JaxKernel* kernel, JaxInstances* instances,
          const xla::CallFrame* frame)
      : frame_(*frame) {
    if (instances->info.has_instance || frame_.attributes.size != 0) {
      kept_ = instances->of(frame_.attributes);
      none_count_ = static_cast<int>(kept_->nones.size());
      if (none_count_ != 0 && kept_->nones.back() >= input_count()) {
        refuse_nones(operator_name);
      }
    }
    if (kernel->device != at::kCPU) {
      stream_ = find_stream(operator_name);
    }
  }

  static const KernelDescriptor& info(const KernelBase& /*kernel*/, const JaxKernel* /*kernel*/,
                                      JaxInstances* instances, const xla::CallFrame* /*frame*/) {
    return instances->info;
  }

  int input_count() const { return static_cast<int>(frame_.inputs.size) + none_count_; }
  int size() const { return input_count() + static_cast<int>(frame_.outputs.size); }
  void* stream() const { return stream_; }

  /// Each place of a program has its attributes and shapes. XLA tells no more of it.
  std::uint64_t call_site(int count) const {
    auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(kept_.get()));
    for (const int i : {0, count - 1}) {
      const xla::Buffer* buffer = i >= 0 && i < count ? find(i) : nullptr;
      const bool has_sizes =
          buffer != nullptr && buffer->sizes != nullptr && buffer->rank <= kMaxNdim;
      for (int64_t d = 0; has_sizes && d < buffer->rank; ++d) {
        number = 31 * number + static_cast<std::uint64_t>(buffer->sizes[d]);
      }
    }
    return number;
  }

  JaxAttributes attributes() const { return JaxAttributes(frame_.attributes); }
  Instance* instance() const { return kept_ == nullptr ? nullptr : kept_->instance.get(); }

  [[gnu::noinline]] bool read(int i, const OperandName& name, OperandDesc& desc,
                              Report& report) const {
    desc = {};
    if (is_none(i)) {
      return true;
    }
    const xla::Buffer* buffer = find(i);
    if (buffer == nullptr) {
      report.add(Status::kNullPointer, {name.text(), ": expected a buffer of XLA's, got none"});
      return false;
    }
    const std::string fault = form_fault(buffer->rank, buffer->sizes);
    if (!fault.empty()) {
      report.add(Status::kShape, {name.text(), fault});
      return false;
    }
    desc.data = buffer->data;
    desc.sizes = buffer->sizes;
    desc.ndim = static_cast<int>(buffer->rank);
    desc.dtype = xla::dtype_of(buffer->dtype);
    if (desc.is_none()) {
      report.add(Status::kDtype, {name.text(), ": expected ", dtype_names(), ", got \"",
                                  xla::dtype_text(buffer->dtype), "\" with shape ",
                                  shape_text(desc.sizes, desc.ndim)});
      return false;
    }
    return count_elements(desc, name, report);
  }

  bool matches_cached(int i, DType dtype, const int64_t* sizes, int ndim) const {
    const xla::Buffer* buffer = find(i);
    if (buffer == nullptr || buffer->rank != ndim || xla::dtype_of(buffer->dtype) != dtype ||
        (ndim > 0 && buffer->sizes == nullptr)) {
      return false;
    }
    for (int d = 0; d < ndim; ++d) {
      if (buffer->sizes[d] != sizes[d]) {
        return false;
      }
    }
    return true;
  }
  void* data(int i) const { return find(i)->data; }
  const int64_t* sizes(int i) const { return find(i)->sizes; }

  /// XLA's threads take denormal numbers for zeros (jaxlib 0.6 and 0.10): a kernel computes the
  /// same bits in all hosts. KernelScope makes it as it was.
  static void invoke(const KernelBase& kernel, const Arguments& arguments) {
#ifdef __SSE__
    constexpr unsigned int kFlushes = 0x8040;  // flush to zero, denormals are zeros
    const unsigned int mxcsr = __builtin_ia32_stmxcsr();
    if ((mxcsr & kFlushes) != 0) {
      __builtin_ia32_ldmxcsr(mxcsr & ~kFlushes);
    }
#endif
    kernel.invoke(arguments);
  }

  static const char* succeed() { return nullptr; }
  [[gnu::cold]] static const char* fail(const Failure& /*failure*/, ErrorMode /*mode*/) {
    return last_error_text().c_str();  // where record_failure() has put it
  }

 private:
  /// How many inputs before this one are None.
  int nones_before(int input) const {
    int count = 0;
    while (count < none_count_ && kept_->nones[static_cast<std::size_t>(count)] < input) {
      ++count;
    }
    return count;
  }

  bool is_none(int i) const {
    if (none_count_ == 0 || i >= input_count()) {
      return false;
    }
    const int before = nones_before(i);
    return before < none_count_ && kept_->nones[static_cast<std::size_t>(before)] == i;
  }

  /// Null for None, and for what is no buffer.
  const xla::Buffer* find(int i) const {
    const int inputs = input_count();
    if (i >= inputs) {
      return buffer(frame_.outputs, i - inputs);
    }
    if (none_count_ == 0) {
      return buffer(frame_.inputs, i);
    }
    return is_none(i) ? nullptr : buffer(frame_.inputs, i - nones_before(i));
  }

  static const xla::Buffer* buffer(const xla::Buffers& of, int i) {
    const auto* buffer = static_cast<const xla::Buffer*>(of.items[i]);
    const bool is_one = of.types[i] == xla::Buffers::kBuffer && buffer != nullptr &&
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
    xla::StreamArguments arguments = {sizeof(arguments), nullptr, frame_.context, nullptr};
    if (xla::Error* const error = frame_.api->get_stream(&arguments)) {
      refuse_stream(operator_name, error);
    }
    return arguments.stream;
  }

  [[noreturn, gnu::cold, gnu::noinline]] void refuse_stream(const char* operator_name,
                                                            xla::Error* error) const {
    xla::ErrorMessageArguments of_error = {sizeof(of_error), nullptr, error, ""};
    frame_.api->get_error_message(&of_error);
    std::string text =
        join({operator_name, ": expected XLA's stream of CUDA, got the error: ", of_error.message});
    xla::ErrorDestroyArguments destroyed = {sizeof(destroyed), nullptr, error};
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
    auto made = std::make_unique<JaxInstances>(*kernel.kernel);
    if (kernel.instances.compare_exchange_strong(instances, made.get())) {
      instances = made.release();  // for good: XLA may call to the end
    }
  }
  return *instances;
}

[[gnu::cold, gnu::noinline]] inline xla::Error* make_error(const xla::Api* api, const char* text) {
  xla::ErrorArguments arguments = {sizeof(arguments), nullptr, text,
                                   xla::ErrorArguments::kInvalidArgument};
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

#endif  // ATEN_BRIDGE_HOSTS_JAX_CALL_H_
