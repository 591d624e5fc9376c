// Kernels called as XLA calls them, without it: with call frames whose parts can be changed.
#ifndef ATEN_BRIDGE_TESTS_UNIT_JAX_FRAME_H_
#define ATEN_BRIDGE_TESTS_UNIT_JAX_FRAME_H_

#include <aten_bridge/hosts/jax/abi.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)  // as the structures are

namespace jax_frame {

namespace xla = aten_bridge::detail::xla;

using Floats = std::vector<float>;
using Sizes = std::vector<int64_t>;

inline std::string raised;  // the last error's text
inline int raised_code = 0;

inline xla::Error* create_error(xla::ErrorCreateArgs* arguments) {
  raised = arguments->message;
  raised_code = arguments->code;
  return reinterpret_cast<xla::Error*>(&raised);
}

inline int destroyed = 0;  // errors that are not XLA's any more

inline void get_error_message(xla::ErrorGetMessageArgs* arguments) {
  arguments->message = "no stream on this device";
}
inline void destroy_error(xla::ErrorDestroyArgs* arguments) {
  destroyed += arguments->error == reinterpret_cast<xla::Error*>(&destroyed) ? 1 : 0;
}

/// The stream is where XLA has its own context; null: an error, as on a device without streams.
inline xla::Error* get_stream(xla::StreamGetArgs* arguments) {
  arguments->stream = arguments->context;
  return arguments->stream == nullptr ? reinterpret_cast<xla::Error*>(&destroyed) : nullptr;
}

/// A call frame whose parts can be changed, larger than those of today by a tail of garbage.
class Frame {
 public:
  Frame(void* library, const std::string& kernel)
      : handler_(reinterpret_cast<Handler*>(dlsym(library, (kernel + "Jax").c_str()))) {
    std::memset(bytes_, 0x5a, sizeof(bytes_));
    api_ = {};
    api_.struct_size = sizeof(api_) + 1000;
    api_.create_error = &create_error;
    api_.get_error_message = &get_error_message;
    api_.destroy_error = &destroy_error;
    api_.get_stream = &get_stream;
    call = new (bytes_) xla::CallFrame();
    call->struct_size = sizeof(bytes_);
    call->api = &api_;
    call->stage = xla::CallFrame::kExecute;
    call->inputs.struct_size = call->outputs.struct_size = sizeof(xla::Args);
    call->attributes.struct_size = sizeof(xla::Attributes);
  }

  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  Frame& on(void* stream) {
    call->context = static_cast<xla::Context*>(stream);
    return *this;
  }
  Frame& input(void* data, Sizes sizes, int dtype = xla::kFloat32) {
    inputs.items.push_back(add_buffer(data, std::move(sizes), dtype));
    inputs.types.push_back(xla::Args::kBuffer);
    return *this;
  }
  Frame& input(Floats& values) {
    return input(values.data(), {static_cast<int64_t>(values.size())});
  }
  Frame& output(void* data, Sizes sizes, int dtype = xla::kFloat32) {
    outputs.items.push_back(add_buffer(data, std::move(sizes), dtype));
    outputs.types.push_back(xla::Args::kBuffer);
    return *this;
  }
  Frame& output(Floats& values) {
    return output(values.data(), {static_cast<int64_t>(values.size())});
  }

  template <class T>
  Frame& scalar(const char* name, int dtype, T value) {
    auto kept = std::make_shared<std::pair<T, xla::Scalar>>(value, xla::Scalar());
    kept->second = {dtype, &kept->first};
    return attribute(name, xla::Attributes::kScalar, &kept->second, kept);
  }
  template <class T>
  Frame& array(const char* name, int dtype, std::vector<T> values) {
    auto kept =
        std::make_shared<std::pair<std::vector<T>, xla::Array>>(std::move(values), xla::Array());
    kept->second = {dtype, kept->first.size(), kept->first.data()};
    return attribute(name, xla::Attributes::kArray, &kept->second, kept);
  }
  Frame& text(const char* name, std::string value) {
    auto kept =
        std::make_shared<std::pair<std::string, xla::ByteSpan>>(std::move(value), xla::ByteSpan());
    kept->second = {kept->first.data(), kept->first.size()};
    return attribute(name, xla::Attributes::kString, &kept->second, kept);
  }
  Frame& attribute(const char* name, int type, void* item, std::shared_ptr<void> kept = nullptr) {
    texts_.push_back({name, std::strlen(name)});
    names.push_back(&texts_.back());
    types.push_back(type);
    items.push_back(item);
    kept_.push_back(std::move(kept));
    return *this;
  }

  /// Puts the parts into the frame; what follows may change it.
  Frame& complete() {
    fill(call->inputs, inputs);
    fill(call->outputs, outputs);
    call->attributes.size = static_cast<int64_t>(names.size());
    call->attributes.types = types.data();
    call->attributes.names = names.data();
    call->attributes.items = items.data();
    return *this;
  }

  xla::Buffer& buffer(std::size_t index) { return buffers_[index].second; }

  /// "" or the error's text.
  std::string run_as_it_is() {
    raised.clear();
    void* const error = handler_(call);
    return (error == nullptr) == raised.empty() ? raised : "an error without a text";
  }
  std::string run() { return complete().run_as_it_is(); }

  struct Operands {
    std::vector<void*> items;
    std::vector<int> types;
  };
  Operands inputs;
  Operands outputs;
  std::vector<xla::ByteSpan*> names;
  std::vector<int> types;
  std::vector<void*> items;
  xla::CallFrame* call;

 private:
  void* add_buffer(void* data, Sizes sizes, int dtype) {
    buffers_.emplace_back(std::move(sizes), xla::Buffer());
    auto& [kept, made] = buffers_.back();
    made = {sizeof(made) + 8, nullptr, dtype, data, static_cast<int64_t>(kept.size()), kept.data()};
    return &made;
  }

  static void fill(xla::Args& to, Operands& from) {
    to.size = static_cast<int64_t>(from.items.size());
    to.types = from.types.data();
    to.items = from.items.data();
  }

  using Handler = void*(const void*);

  Handler* handler_;
  xla::Api api_;
  std::deque<std::pair<Sizes, xla::Buffer>> buffers_;
  std::deque<xla::ByteSpan> texts_;
  std::vector<std::shared_ptr<void>> kept_;
  alignas(16) unsigned char bytes_[sizeof(xla::CallFrame) + 64];
};

}  // namespace jax_frame

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_TESTS_UNIT_JAX_FRAME_H_
