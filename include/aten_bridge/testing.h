// A simulated host for kernel authors' own tests: calls a kernel as MindSpore 2.10 does, without
// MindSpore, PyTorch's headers or a test framework.
//
//   aten_bridge::testing::Library library("./leaky_relu.so");
//   aten_bridge::testing::Call call = library.call("LeakyRelu");
//   call.input<float>({2, 2}, {0.0f, -0.1f, -0.2f, 1.0f});
//   call.output<float>({2, 2});
//   aten_bridge::testing::Result result = call.run();
//   result.error();            // "" or what a user of the host would read
//   result.output<float>(0);   // {0.0f, -0.001f, -0.002f, 1.0f}
//
// What it does as the real host (each point measured on MindSpore 2.10.0): metadata for inputs and
// outputs only, in arrays of exactly that length; a null shape for rank 0; a pointer also for empty
// tensors; outputs and workspaces uninitialised, at an address of 16 modulo 64; `extra` never null;
// the kernel runs in a worker thread; only std::exception is caught. What it does on top: it fills
// outputs with bytes of 0xff (NaN, -1) and watches 64 bytes on both sides of every buffer, with
// AddressSanitizer where that is on.
//
// Link with ${CMAKE_DL_LIBS} and threads (Threads::Threads).
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TESTING_H_
#define ATEN_BRIDGE_TESTING_H_

#include <dlfcn.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define ATEN_BRIDGE_TESTING_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATEN_BRIDGE_TESTING_ASAN 1
#endif
#endif
#ifdef ATEN_BRIDGE_TESTING_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace aten_bridge::testing {

/// The C function that a host calls.
using HostFunction = int (*)(int nparam, void** params, int* ndims, int64_t** shapes,
                             const char** dtypes, void* stream, void* extra);

/// The host's name of a C++ element type: "float32" for float. Dtypes without one, such as
/// float16, are given as bytes.
template <class T>
constexpr const char* dtype_of() = delete;
// clang-format off
template <> constexpr const char* dtype_of<bool>() { return "bool"; }
template <> constexpr const char* dtype_of<std::uint8_t>() { return "uint8"; }
template <> constexpr const char* dtype_of<std::int8_t>() { return "int8"; }
template <> constexpr const char* dtype_of<std::uint16_t>() { return "uint16"; }
template <> constexpr const char* dtype_of<std::int16_t>() { return "int16"; }
template <> constexpr const char* dtype_of<std::uint32_t>() { return "uint32"; }
template <> constexpr const char* dtype_of<std::int32_t>() { return "int32"; }
template <> constexpr const char* dtype_of<std::uint64_t>() { return "uint64"; }
template <> constexpr const char* dtype_of<std::int64_t>() { return "int64"; }
template <> constexpr const char* dtype_of<float>() { return "float32"; }
template <> constexpr const char* dtype_of<double>() { return "float64"; }
template <> constexpr const char* dtype_of<std::complex<float>>() { return "complex64"; }
template <> constexpr const char* dtype_of<std::complex<double>>() { return "complex128"; }
// clang-format on

namespace detail {

/// Makes AddressSanitizer refuse accesses to `size` bytes at `address`, or allow them again.
inline void set_accessible([[maybe_unused]] void* address, [[maybe_unused]] std::size_t size,
                           [[maybe_unused]] bool accessible) {
#ifdef ATEN_BRIDGE_TESTING_ASAN
  if (accessible) {
    __asan_unpoison_memory_region(address, size);
  } else {
    __asan_poison_memory_region(address, size);
  }
#endif
}

/// Memory at an address of `remainder` modulo 64, between two guard zones.
class Buffer {
 public:
  static constexpr std::size_t kGuard = 64;
  static constexpr unsigned char kGuardByte = 0xab;

  Buffer(std::size_t size, std::size_t remainder)
      : size_(size), block_(new unsigned char[size + 2 * kGuard + 64]) {
    const auto address = reinterpret_cast<std::uintptr_t>(block_.get() + kGuard);
    data_ = block_.get() + kGuard + (64 + remainder - address % 64) % 64;
    std::memset(data_ - kGuard, kGuardByte, kGuard);
    std::memset(data_ + size_, kGuardByte, kGuard);
    guard();
  }
  ~Buffer() { unguard(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  unsigned char* data() { return data_; }
  std::size_t size() const { return size_; }

  /// "" or which side was written to.
  std::string damage() {
    unguard();
    const auto damaged = [](const unsigned char* zone) {
      return std::any_of(zone, zone + kGuard, [](unsigned char c) { return c != kGuardByte; });
    };
    std::string text;
    if (damaged(data_ - kGuard)) {
      text = "in front of its first byte";
    } else if (damaged(data_ + size_)) {
      text = "behind its last byte";
    }
    guard();
    return text;
  }

 private:
  void guard() {
    set_accessible(data_ - kGuard, kGuard, false);
    set_accessible(data_ + size_, kGuard, false);
  }
  void unguard() { set_accessible(data_ - kGuard, size_ + 2 * kGuard, true); }

  std::size_t size_;
  std::unique_ptr<unsigned char[]> block_;
  unsigned char* data_;
};

/// One input or output as the host describes it.
struct Operand {
  std::string dtype;
  std::vector<int64_t> sizes;
  std::shared_ptr<Buffer> buffer;  // null for None
};

/// The layout of the host's AotExtra up to the workspaces. It has no attributes.
struct Extra {
  virtual ~Extra() = default;
  std::vector<std::size_t> workspaces;
  void* kernel_data = nullptr;
};

}  // namespace detail

/// What came back from one call.
class Result {
 public:
  bool ok() const { return code_ == 0 && error_.empty(); }

  /// "" for success; the text of the exception that the kernel threw; or "return code <n>".
  const std::string& error() const { return error_; }

  /// What the kernel returned; 0 if it threw.
  int code() const { return code_; }

  /// The library's aten_bridge_last_error() in the thread of the call; "" if it has none.
  const std::string& last_error() const { return last_error_; }

  /// Elements of output `index`, row-major. Throws std::logic_error if T is not its dtype.
  template <class T>
  std::vector<T> output(int index) const {
    const Output& output = outputs_.at(static_cast<std::size_t>(index));
    if (output.dtype != dtype_of<T>()) {
      throw std::logic_error("output " + std::to_string(index) + " is " + output.dtype + ", not " +
                             dtype_of<T>());
    }
    std::vector<T> values(output.bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, output.bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = value;
    }
    return values;
  }

  /// The bytes of output `index`, whatever its dtype.
  const std::vector<unsigned char>& bytes(int index) const {
    return outputs_.at(static_cast<std::size_t>(index)).bytes;
  }

 private:
  friend class Call;
  struct Output {
    std::string dtype;
    std::vector<unsigned char> bytes;
  };
  int code_ = 0;
  std::string error_;
  std::string last_error_;
  std::vector<Output> outputs_;
};

/// One call, described operand by operand. Can be run any number of times; inputs keep what a
/// kernel wrote to them.
class Call {
 public:
  /// `last_error` is the library's aten_bridge_last_error, if it has one.
  explicit Call(HostFunction host_function, const char* (*last_error)() = nullptr)
      : function_(host_function), last_error_(last_error) {}

  /// The function itself, for calls that this class would not make.
  HostFunction function() const { return function_; }

  /// Adds an input. Throws std::logic_error if there are not as many values as `sizes` says.
  template <class T>
  Call& input(std::vector<int64_t> sizes, const std::vector<T>& values) {
    std::vector<unsigned char> bytes(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = values[i];
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    if (static_cast<int64_t>(values.size()) != numel(sizes)) {
      throw std::logic_error(std::to_string(values.size()) + " values for " +
                             std::to_string(numel(sizes)) + " elements");
    }
    return input_bytes(dtype_of<T>(), std::move(sizes), bytes);
  }

  /// Adds an input of any dtype, also one that the host should refuse.
  Call& input_bytes(std::string dtype, std::vector<int64_t> sizes,
                    const std::vector<unsigned char>& bytes) {
    auto buffer = std::make_shared<detail::Buffer>(bytes.size(), input_remainder_);
    std::copy(bytes.begin(), bytes.end(), buffer->data());
    inputs_.push_back({std::move(dtype), std::move(sizes), std::move(buffer)});
    return *this;
  }

  /// Adds the input that the host passes for Python's None.
  Call& input_none() {
    inputs_.push_back({"none", {}, nullptr});
    return *this;
  }

  /// Adds input `index` once more: the same memory twice, as when Python passes a tensor twice.
  Call& input_again(int index) {
    inputs_.push_back(inputs_.at(static_cast<std::size_t>(index)));
    return *this;
  }

  /// Where inputs added from here on lie: an address of `remainder`, 0 to 63, modulo 64. At first
  /// 16. The real host promises nothing.
  Call& input_alignment(std::size_t remainder) {
    input_remainder_ = remainder;
    return *this;
  }

  /// Adds an output.
  template <class T>
  Call& output(std::vector<int64_t> sizes) {
    return output_bytes(dtype_of<T>(), std::move(sizes), sizeof(T));
  }

  /// Adds an output of any dtype with elements of `itemsize` bytes.
  Call& output_bytes(std::string dtype, std::vector<int64_t> sizes, std::size_t itemsize) {
    const std::size_t size = static_cast<std::size_t>(numel(sizes)) * itemsize;
    outputs_.push_back(
        {std::move(dtype), std::move(sizes), std::make_shared<detail::Buffer>(size, 16)});
    return *this;
  }

  /// Adds a workspace: memory without metadata, after the outputs.
  Call& workspace(std::size_t bytes) {
    workspaces_.push_back(std::make_shared<detail::Buffer>(bytes, 16));
    return *this;
  }

  /// Calls the kernel in a new thread, as the host's worker does. Throws std::logic_error if the
  /// kernel wrote beside a buffer. An exception that is not a std::exception ends the process, as
  /// it does in the host.
  Result run() {
    Result result;
    std::exception_ptr failure;
    std::thread worker([&] {
      try {
        result = run_here();
      } catch (const std::exception&) {
        failure = std::current_exception();
      }
    });
    worker.join();
    if (failure != nullptr) {
      std::rethrow_exception(failure);
    }
    return result;
  }

  /// The same in the calling thread: a graph's second run in MindSpore.
  Result run_here() {
    std::vector<detail::Operand> operands = inputs_;
    operands.insert(operands.end(), outputs_.begin(), outputs_.end());
    const std::size_t described = operands.size();
    const std::size_t nparam = described + workspaces_.size();

    // Exactly as long as the host's, so that AddressSanitizer sees a read behind the end.
    const std::unique_ptr<void*[]> params(new void*[nparam]);
    const std::unique_ptr<int[]> ndims(new int[described]);
    const std::unique_ptr<int64_t*[]> shapes(new int64_t*[described]);
    const std::unique_ptr<const char*[]> dtypes(new const char*[described]);
    for (std::size_t i = 0; i < described; ++i) {
      detail::Operand& operand = operands[i];
      params[i] = operand.buffer == nullptr ? nullptr : operand.buffer->data();
      ndims[i] = static_cast<int>(operand.sizes.size());
      shapes[i] = operand.sizes.empty() ? nullptr : operand.sizes.data();
      dtypes[i] = operand.dtype.c_str();
    }
    detail::Extra extra;
    for (std::size_t i = 0; i < workspaces_.size(); ++i) {
      params[described + i] = workspaces_[i]->data();
      extra.workspaces.push_back(workspaces_[i]->size());
      poison(*workspaces_[i]);
    }
    for (const detail::Operand& output : outputs_) {
      poison(*output.buffer);
    }

    Result result;
    try {
      result.code_ = function_(static_cast<int>(nparam), params.get(), ndims.get(), shapes.get(),
                               dtypes.get(), /*stream=*/nullptr, &extra);
      if (result.code_ != 0) {
        result.error_ = "return code " + std::to_string(result.code_);
      }
    } catch (const std::exception& error) {
      result.error_ = error.what();
    }
    if (last_error_ != nullptr) {
      result.last_error_ = last_error_();
    }
    check("input", inputs_);
    check("output", outputs_);
    for (std::size_t i = 0; i < workspaces_.size(); ++i) {
      check("workspace", i, *workspaces_[i]);
    }
    for (const detail::Operand& output : outputs_) {
      unsigned char* data = output.buffer->data();
      result.outputs_.push_back({output.dtype, {data, data + output.buffer->size()}});
    }
    return result;
  }

  /// The bytes of input `index` as they are now.
  std::vector<unsigned char> input_now(int index) const {
    detail::Buffer& buffer = *inputs_.at(static_cast<std::size_t>(index)).buffer;
    return {buffer.data(), buffer.data() + buffer.size()};
  }

 private:
  static int64_t numel(const std::vector<int64_t>& sizes) {
    int64_t numel = 1;
    for (const int64_t size : sizes) {
      numel *= size;
    }
    return numel;
  }

  static void poison(detail::Buffer& buffer) { std::memset(buffer.data(), 0xff, buffer.size()); }

  static void check(const char* kind, std::size_t index, detail::Buffer& buffer) {
    const std::string damage = buffer.damage();
    if (!damage.empty()) {
      throw std::logic_error(std::string("the kernel wrote to memory that is not its own: ") +
                             kind + ' ' + std::to_string(index) + ", " + damage);
    }
  }

  static void check(const char* kind, const std::vector<detail::Operand>& operands) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].buffer != nullptr) {
        check(kind, i, *operands[i].buffer);
      }
    }
  }

  HostFunction function_;
  const char* (*last_error_)();
  std::size_t input_remainder_ = 16;
  std::vector<detail::Operand> inputs_;
  std::vector<detail::Operand> outputs_;
  std::vector<std::shared_ptr<detail::Buffer>> workspaces_;
};

/// A kernel library, opened as the host opens it: RTLD_LAZY | RTLD_LOCAL. Stays loaded, as
/// libraries with -z nodelete do.
class Library {
 public:
  /// Throws std::runtime_error with the loader's text.
  explicit Library(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      throw std::runtime_error(dlerror());
    }
  }

  /// A call of the exported function `name`. Throws std::runtime_error if there is none.
  Call call(const std::string& name) const {
    void* function = dlsym(handle_, name.c_str());
    if (function == nullptr) {
      throw std::runtime_error(dlerror());
    }
    return Call(reinterpret_cast<HostFunction>(function),
                reinterpret_cast<const char* (*)()>(dlsym(handle_, "aten_bridge_last_error")));
  }

 private:
  void* handle_;
};

}  // namespace aten_bridge::testing

#endif  // ATEN_BRIDGE_TESTING_H_
