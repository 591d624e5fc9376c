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
// Attributes, and what the host asks before it has memory for a result:
//
//   call.attribute("negative_slope", 0.2);      // before the first run
//   call.known_sizes(0, {-1, 2});               // what is known of input 0 before the call
//   call.infer().sizes();                       // {{-1, 2}}, of LeakyReluInferShape
//   call.infer().dtypes();                      // {"float32"}, of LeakyReluInferType
//
// What it does as the real host (each point measured on MindSpore 2.10.0):
// - The call: metadata for inputs and outputs only, in arrays of exactly that length; a null shape
//   for rank 0; a pointer also for empty tensors; outputs and workspaces uninitialised, at an
//   address of 16 modulo 64; `extra` never null; the kernel runs in a worker thread; only
//   std::exception is caught.
// - Attributes: `extra` has the host's virtual functions and members, in the host's order. It
//   converts nothing: an int is not read as a float. Floats are float32.
// - Instances: <Name>Init runs once, before the first call and in the thread that asks for it. The
//   kernel data that it leaves in `extra` is deleted with the `Call`, and the workspaces that it
//   asks for are there in every call. The text of what it throws is lost.
// - Inference: <Name>InferShape and <Name>InferType see the inputs that are tensors, not None nor
//   numbers, and a short-lived `extra`.
// What it does on top: it fills outputs and workspaces with bytes of 0xff (NaN, -1) and watches 64
// bytes on both sides of every buffer, with AddressSanitizer where that is on.
//
// A kernel for CUDA is called through aten_bridge/testing_cuda.h, which stands on this.
//
// Link with ${CMAKE_DL_LIBS} and threads (Threads::Threads).
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TESTING_H_
#define ATEN_BRIDGE_TESTING_H_

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
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

//===----------------------------------------------------------------------===//
// Functions of a kernel
//===----------------------------------------------------------------------===//

namespace aten_bridge::testing {

/// The C function that a host calls.
using HostFunction = int (*)(int nparam, void** params, int* ndims, int64_t** shapes,
                             const char** dtypes, void* stream, void* extra);

/// <Name>Init: sees the inputs, then the outputs.
using InitFunction = int (*)(int* ndims, int64_t** shapes, const char** dtypes, void* extra);

/// <Name>InferShape or <Name>InferType, cast: their types depend on the number of outputs.
///
///   S (*)(int* ndims, int64_t** shapes, void* extra)
///   T (*)(std::vector<int> type_ids, void* extra)
///
/// With one output S is std::vector<int64_t> and T is int; with several, vectors of these.
using InferFunction = void (*)();

/// What a library exports for one kernel; null where it has nothing.
struct Functions {
  std::string name;
  HostFunction kernel = nullptr;
  InitFunction init = nullptr;
  InferFunction infer_shape = nullptr;
  InferFunction infer_type = nullptr;
  const char* (*last_error)() = nullptr;  ///< aten_bridge_last_error
  void* library = nullptr;                ///< dlopen's; null for the process itself
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

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

  /// Copies bytes and guard zones to `block`, or from it. It is as large as `block_size()`.
  void copy_to(void* block) { copy(block, data_ - kGuard); }
  void copy_from(const void* block) { copy(data_ - kGuard, block); }
  std::size_t block_size() const { return size_ + 2 * kGuard; }

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
  void copy(void* to, const void* from) {
    unguard();
    std::memcpy(to, from, block_size());
    guard();
  }
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
  std::shared_ptr<Buffer> buffer;                        // null for None
  bool is_tensor = true;                                 // the infer hooks see no others
  std::optional<std::vector<int64_t>> known_sizes = {};  // before a call, if not `sizes`
};

/// What the host says about operands, in arrays of exactly as many entries: AddressSanitizer sees a
/// read behind their end.
struct Metadata {
  explicit Metadata(std::vector<Operand> described)
      : operands(std::move(described)),
        ndims(new int[operands.size()]),
        shapes(new int64_t*[operands.size()]),
        dtypes(new const char*[operands.size()]) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      Operand& operand = operands[i];
      ndims[i] = static_cast<int>(operand.sizes.size());
      shapes[i] = operand.sizes.empty() ? nullptr : operand.sizes.data();
      dtypes[i] = operand.dtype.c_str();
    }
  }

  /// The same before a call, when sizes may be unknown.
  static Metadata before_call(std::vector<Operand> described) {
    for (Operand& operand : described) {
      if (operand.known_sizes.has_value()) {
        operand.sizes = *operand.known_sizes;
      }
    }
    return Metadata(std::move(described));
  }

  std::vector<Operand> operands;
  std::unique_ptr<int[]> ndims;
  std::unique_ptr<int64_t*[]> shapes;
  std::unique_ptr<const char*[]> dtypes;
};

}  // namespace detail

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// One call, or several of the same operands, on another device than the CPU. It has memory of its
/// own for each buffer of the call.
class DeviceRun {
 public:
  virtual ~DeviceRun() = default;

  /// Where the kernel finds the buffer. The same buffer always is in the same place.
  virtual void* place(detail::Buffer& buffer) = 0;

  virtual void* stream() = 0;

  /// Does `launch` between sending all buffers to the device and fetching them. `launch` may
  /// return before its work is done. Returns whether it waited for the stream.
  virtual bool around(const std::function<void()>& launch) = 0;
};

/// Where a call's operands are: an interface for the simulated hosts of devices.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::unique_ptr<DeviceRun> make_run() = 0;
};

//===----------------------------------------------------------------------===//
// Attributes and instances
//===----------------------------------------------------------------------===//

namespace detail {

/// A number as the host keeps it: a bool, an int64 or a float32.
template <class T>
auto host_number(T number) {
  static_assert(std::is_arithmetic_v<T>, "a number is a bool, an integer or a floating-point one");
  if constexpr (std::is_same_v<T, bool>) {
    return number;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(number);
  } else {
    return static_cast<float>(number);
  }
}

/// An attribute's value as the host keeps it.
class Value {
 public:
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  explicit Value(T number) : value_(host_number(number)) {}
  explicit Value(std::string text) : value_(std::move(text)) {}
  template <class T>
  explicit Value(const std::vector<T>& elements) {
    List list;
    for (const T& element : elements) {
      list.emplace_back(element);
    }
    value_ = std::move(list);
  }

  /// Throws std::runtime_error with the host's text if the value is not a T. The host reads lists
  /// element by element, so that an empty one is a list of anything. (Measured for a list of ints;
  /// the rest is read in the headers of MindSpore 2.10.0 and still to be measured.)
  template <class T>
  T get() const {
    T result{};
    read(result);
    return result;
  }

 private:
  using List = std::vector<Value>;

  template <class T>
  void read(T& result) const {
    const T* value = std::get_if<T>(&value_);
    if (value == nullptr) {
      static constexpr const char* kTypes[] = {"BoolImm", "Int64Imm", "FP32Imm", "StringImm",
                                               "ValueList"};
      static_assert(std::size(kTypes) == std::variant_size_v<decltype(value_)>);
      throw std::runtime_error("Cast failed, original value: " + text() +
                               ", type: " + kTypes[value_.index()]);
    }
    result = *value;
  }
  template <class T>
  void read(std::vector<T>& result) const {
    const List* list = std::get_if<List>(&value_);
    if (list == nullptr) {
      const std::string type = typeid(T).name();
      throw std::runtime_error("Error GetValue for value: " + text() + ", type: vector<" + type +
                               '>');
    }
    for (const Value& element : *list) {
      result.push_back(element.get<T>());
    }
  }

  /// "true", "7", "0.1", "text" or "[1, 2]".
  std::string text() const {
    if (const bool* flag = std::get_if<bool>(&value_)) {
      return *flag ? "true" : "false";
    }
    if (const int64_t* integer = std::get_if<int64_t>(&value_)) {
      return std::to_string(*integer);
    }
    if (const float* real = std::get_if<float>(&value_)) {
      char digits[32];
      std::snprintf(digits, sizeof(digits), "%g", static_cast<double>(*real));
      return digits;
    }
    if (const std::string* string = std::get_if<std::string>(&value_)) {
      return *string;
    }
    std::string list = "[";
    for (const Value& element : std::get<List>(value_)) {
      list.append(list.size() == 1 ? "" : ", ").append(element.text());
    }
    return list + ']';
  }

  std::variant<bool, int64_t, float, std::string, List> value_;
};

using Attributes = std::map<std::string, Value>;

/// MindSpore's AotKernelData: what Init leaves for the host to delete. Visible, or whole-program
/// optimisation would conclude that nobody derives from it.
struct __attribute__((visibility("default"))) KernelData {
  virtual ~KernelData() = default;
};

/// The layout of MindSpore's AotExtra, its virtual functions and its members in order.
struct AotExtra {
  virtual ~AotExtra() = default;
  virtual bool has(std::string name) = 0;
  virtual bool get_bool(std::string name) = 0;
  virtual int64_t get_int(std::string name) = 0;
  virtual float get_float(std::string name) = 0;
  virtual std::string get_string(std::string name) = 0;
  virtual std::vector<int64_t> get_ints(std::string name) = 0;
  virtual std::vector<float> get_floats(std::string name) = 0;
  virtual std::vector<std::vector<int64_t>> get_int_lists(std::string name) = 0;
  virtual std::vector<std::vector<float>> get_float_lists(std::string name) = 0;

  std::vector<std::size_t> workspaces;  // bytes of each
  void* kernel_data = nullptr;          // a KernelData
};
static_assert(sizeof(AotExtra) == 5 * sizeof(void*),
              "a pointer to the virtual table, 3 of the workspaces, 1 to the kernel data");

/// The host's AotExtraImpl. As there, no function moves out of its `name`: what a kernel passes may
/// look like a std::string only to those who read it.
class Extra final : public AotExtra {
 public:
  explicit Extra(Attributes attributes = {}) : attributes_(std::move(attributes)) {}
  Extra(const Extra&) = delete;
  Extra& operator=(const Extra&) = delete;
  // no_sanitize: the dynamic type of the data is a class of the kernel's, unknown here.
  __attribute__((no_sanitize("vptr"))) ~Extra() override {
    delete static_cast<KernelData*>(kernel_data);
  }

  bool has(std::string name) override { return attributes_.count(name) != 0; }
  bool get_bool(std::string name) override { return get<bool>(name); }
  int64_t get_int(std::string name) override { return get<int64_t>(name); }
  float get_float(std::string name) override { return get<float>(name); }
  std::string get_string(std::string name) override { return get<std::string>(name); }
  std::vector<int64_t> get_ints(std::string name) override {
    return get<std::vector<int64_t>>(name);
  }
  std::vector<float> get_floats(std::string name) override { return get<std::vector<float>>(name); }
  std::vector<std::vector<int64_t>> get_int_lists(std::string name) override {
    return get<std::vector<std::vector<int64_t>>>(name);
  }
  std::vector<std::vector<float>> get_float_lists(std::string name) override {
    return get<std::vector<std::vector<float>>>(name);
  }

 private:
  template <class T>
  T get(const std::string& name) const {
    const auto found = attributes_.find(name);
    if (found == attributes_.end()) {
      throw std::runtime_error("For 'Custom, there is no attribute called " + name + '!');
    }
    return found->second.get<T>();
  }

  Attributes attributes_;
};

/// What the host keeps of a kernel over its calls.
struct Instance {
  explicit Instance(Attributes attributes) : extra(std::move(attributes)) {}

  Extra extra;
  std::vector<std::size_t> workspaces;  // bytes of each that Init asked for
};

/// Owns an instance, or none yet. A copy has none.
struct InstanceOwner {
  InstanceOwner() = default;
  InstanceOwner(const InstanceOwner& /*other*/) {}
  InstanceOwner(InstanceOwner&&) = default;
  InstanceOwner& operator=(const InstanceOwner& other) { return *this = InstanceOwner(other); }
  InstanceOwner& operator=(InstanceOwner&&) = default;
  ~InstanceOwner() = default;

  std::unique_ptr<Instance> instance;
};

/// What the host makes of an exception that is not a std::exception, outside of a call. For use in
/// a catch clause.
inline std::string foreign_exception_text() {
  return std::string("Error occurred. Exception name: ") +
         abi::__cxa_current_exception_type()->name();
}

/// Calls `function` as one that takes `arguments`, by value, and returns an R. no_sanitize: what a
/// kernel takes for a type id and for `extra` may be classes of its own.
template <class R, class... Arguments>
#ifdef __clang__
__attribute__((no_sanitize("function")))
#endif
R call_as(void (*function)(), Arguments... arguments) {
  return reinterpret_cast<R (*)(Arguments...)>(function)(arguments...);
}

/// Throws std::runtime_error with the loader's text if `library` does not export `name`.
inline void* required_symbol(void* library, const std::string& name) {
  void* symbol = dlsym(library, name.c_str());
  if (symbol == nullptr) {
    throw std::runtime_error(dlerror());
  }
  return symbol;
}

}  // namespace detail

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// What came back from one call.
class Result {
 public:
  bool ok() const { return code_ == 0 && error_.empty(); }

  /// "" for success; the text of the exception that the kernel threw; "return code <n>"; or
  /// "<Name>Init failed", without the text that the host loses, and without outputs.
  const std::string& error() const { return error_; }

  /// What the kernel returned; 0 if it threw.
  int code() const { return code_; }

  /// Whether the kernel waited for the device's stream. Only kernels on a device are asked.
  bool waited() const { return waited_; }

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
  bool waited_ = false;
  std::string error_;
  std::string last_error_;
  std::vector<Output> outputs_;
};

/// What the infer hooks said about the outputs.
class Inferred {
 public:
  bool ok() const { return error_.empty(); }

  /// "" for success, or the text of the exception that a hook threw.
  const std::string& error() const { return error_; }

  /// For each output; -1 for a size that is not known yet, {-2} where not even the rank is.
  const std::vector<std::vector<int64_t>>& sizes() const { return sizes_; }

  /// For each output; "TypeId <n>" for an id without a name.
  const std::vector<std::string>& dtypes() const { return dtypes_; }

 private:
  friend class Call;
  std::string error_;
  std::vector<std::vector<int64_t>> sizes_;
  std::vector<std::string> dtypes_;
};

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// One kernel and one call of it, described operand by operand. Can be run any number of times;
/// inputs keep what a kernel wrote to them. The kernel's instance, with what Init made, appears
/// with the first run and dies with the call. A copy is another instance of the kernel, on the same
/// memory.
class Call {
 public:
  /// `error_text` is the library's aten_bridge_last_error, if it has one.
  explicit Call(HostFunction host_function, const char* (*error_text)() = nullptr) {
    functions_.kernel = host_function;
    functions_.last_error = error_text;
  }

  /// For functions that are not in a library.
  explicit Call(Functions functions) : functions_(std::move(functions)) {}

  /// The function itself, for calls that this class would not make.
  HostFunction function() const { return functions_.kernel; }

  /// The function's Init; null if there is none.
  InitFunction init() const { return functions_.init; }

  /// Sets an attribute: a bool, an integer, a floating-point number, a string, or a std::vector of
  /// those or of vectors of them. After the first run, the next one makes another instance: in the
  /// host, other attributes are another kernel.
  template <class T>
  Call& attribute(const std::string& name, const T& value) {
    attributes_.insert_or_assign(name, detail::Value(value));
    owner_.instance.reset();
    return *this;
  }

  /// Whether the infer hooks give lists with an entry for each output. At first false. The host
  /// sets this attribute of any kernel.
  Call& multi_output(bool several) { return attribute("multi_output", several); }

  /// Does not call <Name>Init, even if it is there: an older host. For use before the first run.
  Call& without_init() {
    functions_.init = nullptr;
    return *this;
  }

  /// The id of a dtype in the infer hooks, for those over 44, which differ between versions. (In
  /// 2.10: 45 bfloat16, 46 float8e4m3fn, 47 float8e5m2, 51 complex64, 52 complex128.)
  Call& type_id(const std::string& dtype, int id) {
    type_ids_[dtype] = id;
    return *this;
  }

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
    // The two stand for a str and a dtype of Python's.
    const bool is_tensor = dtype != "string" && dtype != "typetype";
    inputs_.push_back({std::move(dtype), std::move(sizes), std::move(buffer), is_tensor});
    return *this;
  }

  /// Gives input `index` other values, as many as it has.
  template <class T>
  Call& set_input(int index, const std::vector<T>& values) {
    detail::Buffer& buffer = *inputs_.at(static_cast<std::size_t>(index)).buffer;
    if (values.size() * sizeof(T) != buffer.size()) {
      throw std::logic_error(std::to_string(values.size()) + " values for " +
                             std::to_string(buffer.size()) + " bytes");
    }
    std::memcpy(buffer.data(), values.data(), buffer.size());
    return *this;
  }

  /// Adds the input that the host passes for Python's None.
  Call& input_none() {
    inputs_.push_back({"none", {}, nullptr, /*is_tensor=*/false});
    return *this;
  }

  /// Adds the input that the host passes for a number of Python's: an int64, float32 or bool of
  /// rank 0, which the infer hooks do not see.
  template <class T>
  Call& input_number(T number) {
    const auto value = detail::host_number(number);
    input<std::remove_const_t<decltype(value)>>({}, {value});
    inputs_.back().is_tensor = false;
    return *this;
  }

  /// Adds input `index` once more: the same memory twice, as when Python passes a tensor twice.
  Call& input_again(int index) {
    inputs_.push_back(inputs_.at(static_cast<std::size_t>(index)));
    return *this;
  }

  /// What Init and the infer hooks are told about input `index` instead of its sizes: -1 for a size
  /// that is not known yet, {-2} for an unknown rank.
  Call& known_sizes(int index, std::vector<int64_t> sizes) {
    inputs_.at(static_cast<std::size_t>(index)).known_sizes = std::move(sizes);
    return *this;
  }

  /// What Init is told about output `index` instead of its sizes.
  Call& known_output_sizes(int index, std::vector<int64_t> sizes) {
    outputs_.at(static_cast<std::size_t>(index)).known_sizes = std::move(sizes);
    return *this;
  }

  /// Where inputs added from here on lie: an address of `remainder`, 0 to 63, modulo 64. At first
  /// 16. The real host promises nothing.
  Call& input_alignment(std::size_t remainder) {
    input_remainder_ = remainder;
    return *this;
  }

  /// The same of outputs.
  Call& output_alignment(std::size_t remainder) {
    output_remainder_ = remainder;
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
    outputs_.push_back({std::move(dtype), std::move(sizes),
                        std::make_shared<detail::Buffer>(size, output_remainder_)});
    return *this;
  }

  /// Adds a workspace: memory without metadata, after the outputs and those that Init asked for.
  Call& workspace(std::size_t bytes) {
    workspaces_.push_back(std::make_shared<detail::Buffer>(bytes, 16));
    return *this;
  }

  /// Where the operands are during a call. `device` must outlive the call. At first the CPU.
  Call& on(Device& device) {
    device_ = &device;
    return *this;
  }

  /// Forgets the operands and keeps the instance: how a kernel whose shapes change is called the
  /// next time, without another Init.
  Call& clear_operands() {
    inputs_.clear();
    outputs_.clear();
    workspaces_.clear();
    return *this;
  }

  /// Asks <Name>InferShape and <Name>InferType about the outputs. Throws std::runtime_error with
  /// the loader's text if one is missing, std::logic_error for an input whose dtype has no id.
  Inferred infer() const {
    Inferred inferred = infer_shape_only();
    if (inferred.ok()) {
      Inferred types = infer_type_only();
      inferred.error_ = std::move(types.error_);
      inferred.dtypes_ = std::move(types.dtypes_);
    }
    return inferred;
  }

  /// The first half of it.
  Inferred infer_shape_only() const {
    const InferFunction hook = required_hook(functions_.infer_shape, "InferShape");
    const detail::Metadata inputs = detail::Metadata::before_call(tensors());
    return ask([&](void* extra, bool several, Inferred& inferred) {
      int* ndims = inputs.ndims.get();
      int64_t** shapes = inputs.shapes.get();
      using Sizes = std::vector<int64_t>;
      if (several) {
        inferred.sizes_ = detail::call_as<std::vector<Sizes>>(hook, ndims, shapes, extra);
      } else {
        inferred.sizes_ = {detail::call_as<Sizes>(hook, ndims, shapes, extra)};
      }
    });
  }

  /// The second half of it.
  Inferred infer_type_only() const {
    const InferFunction hook = required_hook(functions_.infer_type, "InferType");
    std::vector<int> ids;
    for (const detail::Operand& input : tensors()) {
      ids.push_back(type_id_of(input.dtype));
    }
    return ask([&](void* extra, bool several, Inferred& inferred) {
      std::vector<int> outputs;
      if (several) {
        outputs = detail::call_as<std::vector<int>>(hook, ids, extra);
      } else {
        outputs = {detail::call_as<int>(hook, ids, extra)};
      }
      for (const int id : outputs) {
        inferred.dtypes_.push_back(dtype_of_id(id));
      }
    });
  }

  /// Calls <Name>Init, the first time, and then the kernel in a new thread, as the host's worker
  /// does. Throws std::logic_error if the kernel wrote beside a buffer. An exception of the
  /// kernel's that is not a std::exception ends the process, as it does in the host.
  Result run() {
    Result result = prepare();
    if (!result.ok()) {
      return result;
    }
    std::exception_ptr failure;
    std::thread worker([&] {
      try {
        result = launch();
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
    Result result = prepare();
    return result.ok() ? launch() : result;
  }

  /// The bytes of input `index` as they are now.
  std::vector<unsigned char> input_now(int index) const {
    detail::Buffer& buffer = *inputs_.at(static_cast<std::size_t>(index)).buffer;
    return {buffer.data(), buffer.data() + buffer.size()};
  }

 private:
  friend class CudaGraph;

  /// Makes the kernel's instance unless it is there. The result is that of Init.
  Result prepare() {
    Result result;
    if (owner_.instance != nullptr) {
      return result;
    }
    auto instance = std::make_unique<detail::Instance>(attributes_);
    if (functions_.init != nullptr) {
      const detail::Metadata metadata = detail::Metadata::before_call(described());
      const std::string failed = functions_.name + "Init failed";
      try {
        if (functions_.init(metadata.ndims.get(), metadata.shapes.get(), metadata.dtypes.get(),
                            &instance->extra) != 0) {
          result.error_ = failed;
        }
      } catch (const std::exception&) {
        result.error_ = failed;
      } catch (...) {
        result.error_ = detail::foreign_exception_text();
      }
      result.last_error_ = last_error();
    }
    if (result.ok()) {
      instance->workspaces = instance->extra.workspaces;
      owner_.instance = std::move(instance);
    }
    return result;
  }

  /// What the host passes to the kernel: the same for each replay of a captured call.
  struct Launch {
    explicit Launch(std::vector<detail::Operand> operands) : metadata(std::move(operands)) {}

    detail::Metadata metadata;
    std::vector<std::shared_ptr<detail::Buffer>> workspaces;
    std::vector<void*> params;
    std::unique_ptr<DeviceRun> device;  // null: the CPU
  };

  std::unique_ptr<Launch> make_launch() {
    auto launch = std::make_unique<Launch>(described());
    launch->device = device_ == nullptr ? nullptr : device_->make_run();
    detail::Extra& extra = owner_.instance->extra;
    for (const std::size_t bytes : owner_.instance->workspaces) {
      launch->workspaces.push_back(std::make_shared<detail::Buffer>(bytes, 16));
    }
    launch->workspaces.insert(launch->workspaces.end(), workspaces_.begin(), workspaces_.end());
    const auto place = [&](detail::Buffer* buffer) -> void* {
      return buffer == nullptr           ? nullptr
             : launch->device == nullptr ? buffer->data()
                                         : launch->device->place(*buffer);
    };
    for (const detail::Operand& operand : launch->metadata.operands) {
      launch->params.push_back(place(operand.buffer.get()));
    }
    extra.workspaces.clear();
    for (const auto& workspace : launch->workspaces) {
      launch->params.push_back(place(workspace.get()));
      extra.workspaces.push_back(workspace->size());
    }
    return launch;
  }

  Result launch() {
    const std::unique_ptr<Launch> launch = make_launch();
    Result result;
    work(*launch, result, [&] { call_kernel(*launch, result); });
    return result;
  }

  /// Calls the kernel once, in arrays of exactly as many entries as there are.
  void call_kernel(Launch& launch, Result& result) {
    detail::Metadata& metadata = launch.metadata;
    const std::unique_ptr<void*[]> params(new void*[launch.params.size()]);
    std::copy(launch.params.begin(), launch.params.end(), params.get());
    try {
      result.code_ = functions_.kernel(
          static_cast<int>(launch.params.size()), params.get(), metadata.ndims.get(),
          metadata.shapes.get(), metadata.dtypes.get(),
          launch.device == nullptr ? nullptr : launch.device->stream(), &owner_.instance->extra);
      if (result.code_ != 0) {
        result.error_ = "return code " + std::to_string(result.code_);
      }
    } catch (const std::exception& error) {
      result.error_ = error.what();
    }
    result.last_error_ = last_error();
  }

  /// Does `body` with poisoned outputs, and collects them.
  template <class Body>
  void work(Launch& launch, Result& result, const Body& body) {
    for (const auto& workspace : launch.workspaces) {
      poison(*workspace);
    }
    for (const detail::Operand& output : outputs_) {
      poison(*output.buffer);
    }
    if (launch.device == nullptr) {
      body();
    } else {
      result.waited_ = launch.device->around(body);
    }
    check("input", inputs_);
    check("output", outputs_);
    for (std::size_t i = 0; i < launch.workspaces.size(); ++i) {
      check("workspace", i, *launch.workspaces[i]);
    }
    for (const detail::Operand& output : outputs_) {
      unsigned char* data = output.buffer->data();
      result.outputs_.push_back({output.dtype, {data, data + output.buffer->size()}});
    }
  }

  std::vector<detail::Operand> described() const {
    std::vector<detail::Operand> operands = inputs_;
    operands.insert(operands.end(), outputs_.begin(), outputs_.end());
    return operands;
  }

  /// The inputs that the infer hooks see.
  std::vector<detail::Operand> tensors() const {
    std::vector<detail::Operand> tensors;
    std::copy_if(inputs_.begin(), inputs_.end(), std::back_inserter(tensors),
                 [](const detail::Operand& input) { return input.is_tensor; });
    return tensors;
  }

  InferFunction required_hook(InferFunction hook, const char* suffix) const {
    return hook != nullptr ? hook
                           : reinterpret_cast<InferFunction>(detail::required_symbol(
                                 functions_.library, functions_.name + suffix));
  }

  /// Calls `hook` with what all infer hooks get, and returns what it fills in.
  template <class Hook>
  Inferred ask(const Hook& hook) const {
    Inferred inferred;
    detail::Extra extra(attributes_);
    const bool several = extra.get_bool("multi_output");
    try {
      hook(&extra, several, inferred);
    } catch (const std::exception& error) {
      inferred.error_ = error.what();
    } catch (...) {
      inferred.error_ = detail::foreign_exception_text();
    }
    return inferred;
  }

  int type_id_of(const std::string& dtype) const {
    const auto found = type_ids_.find(dtype);
    if (found == type_ids_.end()) {
      throw std::logic_error("no TypeId for " + dtype + ": give it with type_id()");
    }
    return found->second;
  }

  std::string dtype_of_id(int id) const {
    const auto found = std::find_if(type_ids_.begin(), type_ids_.end(),
                                    [id](const auto& entry) { return entry.second == id; });
    return found == type_ids_.end() ? "TypeId " + std::to_string(id) : found->first;
  }

  std::string last_error() const {
    return functions_.last_error == nullptr ? "" : functions_.last_error();
  }

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

  Functions functions_;
  detail::Attributes attributes_ = {{"multi_output", detail::Value(false)}};
  std::map<std::string, int> type_ids_ = {{"bool", 30},    {"int8", 32},    {"int16", 33},
                                          {"int32", 34},   {"int64", 35},   {"uint8", 37},
                                          {"uint16", 38},  {"uint32", 39},  {"uint64", 40},
                                          {"float16", 42}, {"float32", 43}, {"float64", 44}};
  std::size_t input_remainder_ = 16;
  std::size_t output_remainder_ = 16;
  std::vector<detail::Operand> inputs_;
  std::vector<detail::Operand> outputs_;
  std::vector<std::shared_ptr<detail::Buffer>> workspaces_;
  Device* device_ = nullptr;
  detail::InstanceOwner owner_;
};

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

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
    Functions functions;
    functions.name = name;
    functions.kernel = reinterpret_cast<HostFunction>(detail::required_symbol(handle_, name));
    functions.init = find<InitFunction>(name + "Init");
    functions.infer_shape = find<InferFunction>(name + "InferShape");
    functions.infer_type = find<InferFunction>(name + "InferType");
    functions.last_error = find<const char* (*)()>("aten_bridge_last_error");
    functions.library = handle_;
    return Call(std::move(functions));
  }

 private:
  /// Null if there is none.
  template <class Function>
  Function find(const std::string& name) const {
    return reinterpret_cast<Function>(dlsym(handle_, name.c_str()));
  }

  void* handle_;
};

}  // namespace aten_bridge::testing

#endif  // ATEN_BRIDGE_TESTING_H_
