// Calls kernels in MindSpore's PyNative mode instead of ops.Custom: the same C functions, by
// MindSpore's extension interface (ops.CustomOpBuilder), which takes a tenth of the time.
//
// One module serves all kernels, and knows nothing of PyTorch. It is compiled for one version of
// MindSpore, with that one's headers and C++ ABI, and for one of Python.
//
// SPDX-License-Identifier: Apache-2.0

#include <include/backend/common/device_address_utils.h>
#include <include/pynative/backward/function.h>
#include <include/pynative/utils/pyboost/custom/tensor.h>
#if __has_include(<include/pynative/utils/runtime/pynative_async_task.h>)
#include <include/pynative/utils/runtime/pynative_async_task.h>
#else
#include <runtime/pipeline/task/task.h>
#define ATEN_BRIDGE_SETTINGS_OF_THE_PROCESS
#endif
#include <include/runtime/pipeline/pipeline.h>
#include <include/runtime/utils/runtime_conf/runtime_conf.h>
#include <include/utils/amp.h>
#include <include/utils/pynative/grad_state.h>
#include <include/utils/pynative/variable.h>
#include <include/utils/tensor_py.h>
#include <include/utils/tensor_utils.h>
#include <utils/custom_aot_extra.h>
#include <utils/ms_context.h>
#include <utils/ms_exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#ifdef ATEN_BRIDGE_SETTINGS_OF_THE_PROCESS
namespace mindspore::pynative {

/// Stands for MindSpore 2.10's class of this name. In 2.8 and 2.9 all threads have the same
/// settings.
class PyNativeAsyncTask : public runtime::AsyncTask {
 public:
  using AsyncTask::AsyncTask;

 protected:
  template <typename Function>
  void RunWithPyNativeContext(const Function& function) {
    function();
  }
};

}  // namespace mindspore::pynative
#endif

namespace {

namespace py = pybind11;
namespace autograd = mindspore::pynative::autograd;
using mindspore::TypeId;
using mindspore::tensor::TensorPtr;

using KernelFunction = int (*)(int, void**, int*, int64_t**, const char**, void*, void*);
using InitFunction = int (*)(int*, int64_t**, const char**, mindspore::AotExtra*);
using StridesFunction = void (*)(const int64_t* const*, int);

// ===--- operands ---===

/// The bridge's names of dtypes, and MindSpore's numbers.
struct NamedType {
  TypeId id;
  const char* name;
};

constexpr std::array kTypes = {
    NamedType{mindspore::kNumberTypeBool, "bool"},
    NamedType{mindspore::kNumberTypeUInt8, "uint8"},
    NamedType{mindspore::kNumberTypeInt8, "int8"},
    NamedType{mindspore::kNumberTypeUInt16, "uint16"},
    NamedType{mindspore::kNumberTypeInt16, "int16"},
    NamedType{mindspore::kNumberTypeUInt32, "uint32"},
    NamedType{mindspore::kNumberTypeInt32, "int32"},
    NamedType{mindspore::kNumberTypeUInt64, "uint64"},
    NamedType{mindspore::kNumberTypeInt64, "int64"},
    NamedType{mindspore::kNumberTypeFloat16, "float16"},
    NamedType{mindspore::kNumberTypeBFloat16, "bfloat16"},
    NamedType{mindspore::kNumberTypeFloat32, "float32"},
    NamedType{mindspore::kNumberTypeFloat64, "float64"},
    NamedType{mindspore::kNumberTypeComplex64, "complex64"},
    NamedType{mindspore::kNumberTypeComplex128, "complex128"},
    NamedType{mindspore::kNumberTypeFloat8E4M3FN, "float8e4m3fn"},
    NamedType{mindspore::kNumberTypeFloat8E5M2, "float8e5m2"},
};

/// The name of a dtype; null where kernels have none such.
const char* type_name(TypeId id) {
  for (const NamedType& type : kTypes) {
    if (type.id == id) {
      return type.name;
    }
  }
  return nullptr;
}

TypeId type_of_name(const std::string& name) {
  for (const NamedType& type : kTypes) {
    if (name == type.name) {
      return type.id;
    }
  }
  throw py::value_error("expected a dtype of the bridge's, got \"" + name + "\"");
}

/// Shapes and dtypes of a call's inputs, in one list of numbers that begins with the kind of each.
using Key = std::vector<int64_t>;

struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::uint64_t hash = key.size();
    for (const int64_t number : key) {
      hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(hash);
  }
};

enum Kind : int64_t { kTensor, kNone, kBool, kInt, kFloat, kTuple };

/// The inputs of one call.
struct Inputs {
  Key key;
  std::vector<TensorPtr> tensors;
  std::vector<int64_t> numbers;  // the memory of the Python numbers among them, in their order

  /// False for what `Kernel._call` has to look at first, or refuses.
  bool read(PyObject* object, bool is_in_tuple = false) {
    if (mindspore::tensor::IsPyObjectTensorPy(object)) {
      const TensorPtr tensor = mindspore::tensor::ConvertPyObjectToTensor(object);
      if (tensor == nullptr) {
        return false;
      }
      add_tensor(tensor);
      return true;
    }
    if (is_in_tuple) {
      return false;
    }
    if (object == Py_None) {
      key.push_back(kNone);
      return true;
    }
    if (PyBool_Check(object)) {
      return add_number(kBool, object == Py_True ? 1 : 0);
    }
    if (PyLong_CheckExact(object)) {
      int overflow = 0;
      const int64_t number = PyLong_AsLongLongAndOverflow(object, &overflow);
      return overflow == 0 && add_number(kInt, number);
    }
    if (PyFloat_CheckExact(object)) {
      const double number = PyFloat_AS_DOUBLE(object);
      const auto single = static_cast<float>(number);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &single, sizeof(bits));
      // Where float32 holds infinity or zero in its place, Python says so.
      const bool is_held = (single - single == 0.0F && single != 0.0F) || single == number;
      return (is_held || number != number) && add_number(kFloat, bits);
    }
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
      const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
      key.push_back(kTuple | static_cast<int64_t>(count) << 8);
      for (Py_ssize_t i = 0; i < count; ++i) {
        if (!read(PySequence_Fast_GET_ITEM(object, i), /*is_in_tuple=*/true)) {
          return false;
        }
      }
      return true;
    }
    return false;
  }

  void add_tensor(const TensorPtr& tensor) {
    const auto& shape = tensor->shape();
    key.push_back(kTensor | static_cast<int64_t>(tensor->data_type()) << 8 |
                  static_cast<int64_t>(shape.size()) << 32);
    key.insert(key.end(), shape.begin(), shape.end());
    tensors.push_back(tensor);
  }

  bool add_number(Kind kind, int64_t bits) {
    key.push_back(kind);
    key.push_back(bits);
    numbers.push_back(bits);
    return true;
  }
};

// ===--- signatures ---===

class Extra final : public mindspore::AotExtraImpl {
 public:
  explicit Extra(const mindspore::PrimitivePtr& primitive) { SetKernelPrim(primitive); }
};

struct Gradient;
struct SizesCall;
struct Step;
struct Signature;

/// A signature of the backward program of a step, and the key of the calls that it is for.
struct BackwardSignature {
  Key key;
  std::shared_ptr<Signature> signature;
};

/// What calls with inputs of the same shapes and dtypes have in common.
struct Signature {
  Extra extra;  // with a state of its own, as in ops.Custom
  std::weak_ptr<Gradient> gradient;
  std::shared_ptr<const SizesCall> sizes_call;  // null where sizes are known before a call
  std::shared_ptr<const Step> step;             // null where it belongs to no step
  std::vector<std::size_t> written;             // inputs in whose memory the first outputs are
  std::array<BackwardSignature, 2> backwards;   // a step's; the interpreter's lock guards them
  std::vector<Kind> kinds;                      // one for each input
  std::vector<ShapeVector> sizes;               // the inputs', then the outputs'
  std::vector<int> ndims;
  std::vector<int64_t*> shapes;
  std::vector<const char*> dtypes;
  std::vector<TypeId> output_types;
  std::vector<std::size_t> workspaces;
  std::atomic<bool> is_short{false};  // the last call took less than to wake another thread
  bool is_of_step = false;            // one of its two programs': long, and alone

  explicit Signature(const mindspore::PrimitivePtr& primitive) : extra(primitive) {}
  Signature(const Signature&) = delete;
  Signature& operator=(const Signature&) = delete;
  ~Signature() { extra.DestructKernelData(); }

  void add(const char* dtype, ShapeVector shape) {
    dtypes.push_back(dtype);
    sizes.push_back(std::move(shape));
  }

  /// False if a dtype is one that kernels have not.
  bool add_inputs(const Key& key) {
    for (std::size_t i = 0; i < key.size();) {
      const auto kind = static_cast<Kind>(key[i] & 0xff);
      if (kind == kTensor) {
        const char* dtype = type_name(static_cast<TypeId>(key[i] >> 8 & 0xffffff));
        const auto* begin = key.data() + i + 1;
        i += static_cast<std::size_t>(key[i] >> 32);
        if (dtype == nullptr) {
          return false;
        }
        add(dtype, {begin, key.data() + i + 1});
      } else if (kind == kNone) {
        add("none", {});
      } else if (kind != kTuple) {
        add(kind == kBool ? "bool" : kind == kInt ? "int64" : "float32", {});
        ++i;  // its value
      }
      if (kind != kTuple) {
        kinds.push_back(kind);
      }
      ++i;
    }
    return true;
  }

  /// The operand's dtype and shape, from which MindSpore makes zeros for a missing gradient.
  mindspore::AbstractBasePtr abstract(std::size_t operand) const {
    return std::make_shared<mindspore::abstract::AbstractTensor>(
        mindspore::TypeIdToType(type_of_name(dtypes[operand])), sizes[operand]);
  }

  /// As MindSpore does: the shape of a tensor of rank 0 is a null pointer.
  void finish() {
    for (ShapeVector& shape : sizes) {
      ndims.push_back(static_cast<int>(shape.size()));
      shapes.push_back(shape.empty() ? nullptr : shape.data());
    }
  }
};

// ===--- steps ---===

/// A reference to an object of Python's, which any thread may drop.
class Reference {
 public:
  Reference() = default;
  explicit Reference(py::object object) : object_(object.release().ptr()) {}
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Reference() {
    if (object_ != nullptr && Py_IsInitialized() != 0) {
      const py::gil_scoped_acquire acquired;
      Py_DECREF(object_);
    }
  }

  bool is_none() const { return object_ == nullptr || object_ == Py_None; }
  py::object get() const { return py::reinterpret_borrow<py::object>(object_); }

 private:
  PyObject* object_ = nullptr;
};

bool is_recording_gradients() { return mindspore::pynative::GradState::Get().RequiresGrad(); }

class Caller;

/// A forward and a backward program. The library itself keeps what the second needs of the first.
struct Step {
  void (*set_kept)(void**, int) = nullptr;
  void (*free_kept)(void*) = nullptr;
  std::vector<std::size_t> written;    // inputs in whose memory the first outputs are
  bool gives_tuple = false;            // also of one output
  std::vector<std::size_t> inputs;     // what the backward program reads of the forward one's
  std::vector<std::size_t> tangents;   // results whose gradients it reads
  std::vector<std::size_t> gradients;  // inputs whose gradients it computes
  std::size_t weight_count = 0;        // inputs before the module's own
  std::shared_ptr<Caller> of_weights;  // computes the gradients of weights alone
  std::shared_ptr<Caller> of_all;
  Reference differentiate_again;  // Python's, for gradients of these gradients; None: has none
  std::string no_gradient;        // what is said there

  /// How many of the gradients are those of weights.
  std::size_t weight_gradients() const {
    return static_cast<std::size_t>(
        std::lower_bound(gradients.begin(), gradients.end(), weight_count) - gradients.begin());
  }
};

/// What the forward program of one call has kept, in the library.
class Kept {
 public:
  explicit Kept(std::shared_ptr<const Step> step) : step_(std::move(step)) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    if (values_ != nullptr) {
      step_->free_kept(values_);
    }
  }

  /// Lets this thread's programs know of it while this lives.
  class Scope {
   public:
    explicit Scope(Kept* kept) : kept_(kept) { set(kept == nullptr ? nullptr : &kept->values_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { set(nullptr); }

   private:
    void set(void** place) {
      if (kept_ != nullptr) {
        // A gradient that is itself differentiated leaves what it reads to that.
        kept_->step_->set_kept(place, is_recording_gradients() ? 0 : 1);
      }
    }

    Kept* kept_;
  };

 private:
  std::shared_ptr<const Step> step_;
  void* values_ = nullptr;
};

// ===--- one call ---===

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Target {
  KernelFunction function = nullptr;
  InitFunction init = nullptr;
  StridesFunction set_strides = nullptr;  // null: its inputs are row-major
  std::string path;
  std::string name;
  std::string full_name;
};

/// Throws what ops.Custom says (MindSpore 2.10) if a function of the library has failed.
void check_status(const Target& target, int status) {
  if (status != 0) {
    MS_LOG(EXCEPTION) << "Return value from CPU AOT kernel(" << target.path << ")'s function("
                      << target.name << ") is " << status
                      << ". Any return value not equal to 0 will be treated as user defined error "
                         "code and we will terminate execution. If termination is not your "
                         "purpose, please set return value to 0.";
  }
}

/// Leaves the interpreter's lock, where this thread has it.
class Unlocked {
 public:
  Unlocked() {
    // MindSpore's own threads are none of Python's.
    if (PyGILState_GetThisThreadState() != nullptr && PyGILState_Check() == 1) {
      thread_ = PyEval_SaveThread();
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    if (thread_ != nullptr) {
      PyEval_RestoreThread(thread_);
    }
  }

 private:
  PyThreadState* thread_ = nullptr;
};

/// Something that MindSpore's queues run, with the settings of the thread that puts it there. Its
/// own classes for that need four times the headers (2.10).
class Task final : public mindspore::pynative::PyNativeAsyncTask {
 public:
  using Function = std::function<void()>;
  using Failed = std::function<void(const std::exception_ptr&)>;

  Task(mindspore::runtime::TaskType type, Function function, Failed failed = nullptr)
      : PyNativeAsyncTask(type), function_(std::move(function)), failed_(std::move(failed)) {}

  void Run() override {
    RunWithPyNativeContext(function_);
    function_ = nullptr;  // and the tensors in it: the queue may have the task for longer
  }

  void SetException(const std::exception_ptr& exception) override {
    if (failed_ != nullptr) {
      failed_(exception);
    }
  }

 private:
  Function function_;
  Failed failed_;
};

/// Whether calls may wait in MindSpore's queue. Where all threads have the same settings, a call
/// that waits would be recorded, or not, by what the program does when its turn comes.
#ifdef ATEN_BRIDGE_SETTINGS_OF_THE_PROCESS
constexpr bool kMayQueue = false;
#else
constexpr bool kMayQueue = true;
#endif

/// Whether MindSpore runs each operator at once, in the thread that calls it: as
/// OpExecutor::NeedSync (2.10), whose header takes twelve seconds to compile.
bool is_blocking() {
  return mindspore::runtime::RuntimeConf::GetInstance()->launch_blocking() ||
         mindspore::MsContext::GetInstance()->get_param<bool>(
             mindspore::MS_CTX_ENABLE_PYNATIVE_SYNCHRONIZE);
}

/// Waits until nothing is in MindSpore's queues: graphs are there even where it runs operators at
/// once.
void wait_for_queued() {
  const py::gil_scoped_release released;
  mindspore::runtime::Pipeline::Get().WaitForward();
}

const mindspore::device::DeviceContext* cpu() {
  static const auto* context =
      mindspore::device::DeviceContextManager::GetInstance().GetOrCreateDeviceContext(
          {mindspore::device::DeviceType::kCPU, 0});
  return context;
}

/// How the inputs of a call lie in memory, for a kernel that takes them so.
class Strides {
 public:
  Strides(StridesFunction set, std::size_t count) : set_(set) {
    if (set_ != nullptr) {
      kept_.reserve(count);  // data() of each stays valid
      strides_.resize(count, nullptr);
    }
  }

  void add(std::size_t input, const mindspore::tensor::Tensor& tensor) {
    if (set_ != nullptr && !tensor.is_contiguous()) {
      strides_[input] = kept_.emplace_back(tensor.stride()).data();
    }
  }

  /// Tells this thread's next call of the library.
  void tell() const {
    if (set_ != nullptr) {
      set_(strides_.data(), static_cast<int>(strides_.size()));
    }
  }

 private:
  StridesFunction set_;
  std::vector<std::vector<int64_t>> kept_;
  std::vector<const int64_t*> strides_;
};

/// One call.
class Call {
 public:
  Call(std::shared_ptr<const Target> target, std::shared_ptr<Signature> signature,
       std::vector<int64_t> numbers, std::shared_ptr<Kept> kept)
      : target_(std::move(target)),
        signature_(std::move(signature)),
        numbers_(std::move(numbers)),
        kept_(std::move(kept)) {}

  /// Makes outputs, whose memory is there once launch() has run.
  std::vector<TensorPtr> prepare(const std::vector<TensorPtr>& inputs) {
    const mindspore::kernel::pyboost::RequireGradGuard unrecorded(false);  // a copy is no operator
    inputs_.reserve(inputs.size());
    for (const TensorPtr& input : inputs) {
      const bool needs_no_copy = target_->set_strides != nullptr || input->is_contiguous();
      inputs_.push_back(needs_no_copy ? input : ms::Tensor(input).contiguous().tensor());
      DeviceAddressUtils::CreateInputTensorAddress(cpu(), 0, 0, inputs_.back());
    }
    const std::size_t count = signature_->output_types.size();
    const std::size_t first = signature_->sizes.size() - count;
    outputs_.reserve(count);
    for (std::size_t i = signature_->written.size(); i < count; ++i) {
      outputs_.push_back(make_tensor(signature_->output_types[i], signature_->sizes[first + i]));
    }
    DeviceAddressUtils::CreateOutputTensorAddress(cpu(), 0, outputs_);
    return outputs_;
  }

  /// Tensors that have their memory.
  static std::vector<TensorPtr> allocate(const std::vector<TypeId>& types,
                                         const std::vector<ShapeVector>& shapes) {
    std::vector<TensorPtr> tensors;
    for (std::size_t i = 0; i < types.size(); ++i) {
      tensors.push_back(make_tensor(types[i], shapes[i]));
    }
    DeviceAddressUtils::CreateOutputTensorAddress(cpu(), 0, tensors);
    DeviceAddressUtils::MallocForOutputs(cpu(), tensors);
    return tensors;
  }

  static void* data(const mindspore::tensor::Tensor& tensor) {
    return static_cast<std::byte*>(tensor.device_address()->GetMutablePtr()) +
           static_cast<std::size_t>(tensor.DataItemSize()) * tensor.storage_offset();
  }

  void launch() {
    DeviceAddressUtils::MallocForOutputs(cpu(), outputs_);
    Signature& signature = *signature_;
    std::vector<void*> params;
    params.reserve(signature.sizes.size() + signature.workspaces.size());
    auto tensor = inputs_.begin();
    auto number = numbers_.begin();
    Strides strides(target_->set_strides, signature.kinds.size());
    for (const Kind kind : signature.kinds) {
      if (kind == kTensor) {
        strides.add(params.size(), **tensor);
        params.push_back(data(**tensor++));
      } else {
        params.push_back(kind == kNone ? nullptr : static_cast<void*>(&*number++));
      }
    }
    for (const std::size_t input : signature.written) {
      params.push_back(data(*inputs_[input]));
    }
    for (const TensorPtr& output : outputs_) {
      params.push_back(data(*output));
    }
    const std::vector<TensorPtr> memory = add_workspaces(params);
    std::vector<int> ndims(signature.ndims);  // what the kernel may write over
    run(params, ndims, strides);
  }

 private:
  using DeviceAddressUtils = mindspore::runtime::DeviceAddressUtils;

  static TensorPtr make_tensor(TypeId type, const ShapeVector& shape) {
    return ms::Tensor(type, shape).tensor();
  }

  /// Returns what has the memory.
  std::vector<TensorPtr> add_workspaces(std::vector<void*>& params) const {
    if (signature_->workspaces.empty()) {
      return {};
    }
    std::size_t bytes = kAlignment;
    for (const std::size_t workspace : signature_->workspaces) {
      bytes += aligned(std::max<std::size_t>(workspace, 1));
    }
    std::vector<TensorPtr> memory{
        make_tensor(mindspore::kNumberTypeUInt8, {static_cast<int64_t>(bytes)})};
    DeviceAddressUtils::CreateOutputTensorAddress(cpu(), 0, memory);
    DeviceAddressUtils::MallocForOutputs(cpu(), memory);
    auto address = aligned(reinterpret_cast<std::uintptr_t>(data(*memory.front())));
    for (const std::size_t workspace : signature_->workspaces) {
      params.push_back(reinterpret_cast<void*>(address));
      address += aligned(std::max<std::size_t>(workspace, 1));
    }
    return memory;
  }

  void run(std::vector<void*>& params, std::vector<int>& ndims, const Strides& strides) {
    Signature& signature = *signature_;
    int status = 0;
    const auto begin = std::chrono::steady_clock::now();
    try {
      const Unlocked unlocked;
      const Kept::Scope scope(kept_.get());
      strides.tell();
      status = target_->function(static_cast<int>(params.size()), params.data(), ndims.data(),
                                 signature.shapes.data(), signature.dtypes.data(),
                                 /*stream=*/nullptr, &signature.extra);
    } catch (const std::exception& error) {
      // The texts of ops.Custom (MindSpore 2.10).
      MS_LOG(EXCEPTION) << "For 'Custom' on CPU, operator failed when executing user defined file "
                        << target_->path << "! Error message is " << error.what();
    }
    check_status(*target_, status);
    signature.is_short = std::chrono::steady_clock::now() - begin < kShort;
  }

  static constexpr std::chrono::microseconds kShort{50};
  std::shared_ptr<const Target> target_;
  std::shared_ptr<Signature> signature_;
  std::vector<int64_t> numbers_;
  std::shared_ptr<Kept> kept_;
  std::vector<TensorPtr> inputs_;
  std::vector<TensorPtr> outputs_;
};

/// Puts a task into one of MindSpore's queues, which take those of one thread at a time (2.10).
void push(const mindspore::AsyncRQueuePtr& queue, std::mutex& mutex,
          const std::shared_ptr<Task>& task) {
  const Unlocked unlocked;  // a full queue may wait for the lock
  const std::lock_guard<std::mutex> guard(mutex);
  queue->Push(task);
}

/// Runs a call. Where MindSpore has queues, in the thread of its own that runs its kernels for the
/// CPU, in their order, or here, if that has nothing to do and the kernel is short; else at once:
/// there it relies on the interpreter's lock, which only the kernel itself leaves. A program of a
/// step always runs at once: it is most of what there is to do, and other threads would only be
/// woken for it.
std::vector<TensorPtr> run(const std::shared_ptr<const Target>& target,
                           const std::shared_ptr<Signature>& signature,
                           const std::vector<TensorPtr>& inputs,
                           const std::vector<int64_t>& numbers,
                           const std::shared_ptr<Kept>& kept = nullptr) {
  const bool blocks = is_blocking() || signature->is_of_step;
  const auto& queue = mindspore::runtime::Pipeline::Get().backend_stage();
  const auto call = std::make_shared<Call>(target, signature, numbers, kept);
  const std::vector<TensorPtr> outputs = call->prepare(inputs);  // may queue copies of inputs
  if (blocks) {
    wait_for_queued();
  }
  if (blocks || (signature->is_short && queue->Empty())) {
    // What should have made the inputs may have failed.
    mindspore::MsException::Instance().CheckException();
    call->launch();
    return outputs;
  }
  static std::mutex mutex;
  push(queue, mutex,
       std::make_shared<Task>(mindspore::runtime::kBackendTask, [call]() { call->launch(); }));
  return outputs;
}

// ===--- results whose sizes are known after the run ---===

/// A library's functions for results that it has computed before there is memory for them.
struct ResultsOfLibrary {
  void (*set_results)(void**) = nullptr;
  void (*copy_results)(const void*, void* const*) = nullptr;
  void (*free_results)(void*) = nullptr;
  std::vector<TypeId> types;  // by the library's numbers of dtypes, which begin with one
};

/// The kernel that computes them, and tells a row for each: dtype, rank and sizes.
struct SizesCall {
  std::shared_ptr<const ResultsOfLibrary> library;
  std::shared_ptr<const Target> target;
  std::shared_ptr<Signature> signature;
};

/// The results of one call.
class ComputedResults {
 public:
  /// Computes them in this thread.
  ComputedResults(const SizesCall& sizes_call, const Inputs& inputs)
      : ComputedResults(*sizes_call.library) {
    Call call(sizes_call.target, sizes_call.signature, inputs.numbers, nullptr);
    const TensorPtr table = call.prepare(inputs.tensors).front();
    wait_for_queued();  // for copies of inputs, too
    try {
      library_.set_results(&values_);
      call.launch();
      library_.set_results(nullptr);
    } catch (...) {
      library_.set_results(nullptr);
      throw;
    }
    const auto* row = static_cast<const int64_t*>(Call::data(*table));
    for (int64_t i = 0; i < table->shape()[0]; ++i, row += table->shape()[1]) {
      types_.push_back(library_.types.at(static_cast<std::size_t>(row[0] - 1)));
      shapes_.emplace_back(row + 2, row + 2 + row[1]);
    }
  }
  ComputedResults(const ComputedResults&) = delete;
  ComputedResults& operator=(const ComputedResults&) = delete;
  ~ComputedResults() {
    if (values_ != nullptr) {
      library_.free_results(values_);
    }
  }

  const std::vector<TypeId>& types() const { return types_; }
  const std::vector<ShapeVector>& shapes() const { return shapes_; }

  std::vector<TensorPtr> copy() const {
    std::vector<TensorPtr> outputs = Call::allocate(types_, shapes_);
    std::vector<void*> memory;
    for (const TensorPtr& output : outputs) {
      memory.push_back(Call::data(*output));
    }
    const Unlocked unlocked;
    library_.copy_results(values_, memory.data());
    return outputs;
  }

 private:
  explicit ComputedResults(const ResultsOfLibrary& library) : library_(library) {}

  const ResultsOfLibrary& library_;
  void* values_ = nullptr;
  std::vector<TypeId> types_;
  std::vector<ShapeVector> shapes_;
};

/// Whether a gradient may be asked for that this tensor is part of. MindSpore itself knows more
/// once it has recorded what computed the tensor, which it does in another thread.
bool may_need_gradient(const TensorPtr& tensor) { return tensor->auto_grad_meta_data() != nullptr; }

// ===--- gradients ---===

/// How calls of an operator are differentiated whose arguments are laid out in one way. Python
/// makes it; `layout` is for Python.
struct Gradient {
  Reference weak_operator;  // the operator has this
  Reference layout;
  bool reads_results = false;
  // The operator of the gradient's kernel, once Python has called it: then C++ does.
  std::weak_ptr<Caller> kernel;
  std::vector<bool> mask;  // for each input: whether the kernel computes its gradient

  Gradient(const py::object& the_operator, py::object the_layout, bool reads)
      : weak_operator(py::weakref(the_operator)),
        layout(std::move(the_layout)),
        reads_results(reads) {}
};

/// Name the nodes of calls, and of gradients that have no gradient, in MindSpore's record.
struct KernelCall;
struct StepGradient;

}  // namespace

namespace mindspore::pynative::autograd {

/// One call that MindSpore differentiates.
template <>
struct CppFunctionNode<KernelCall> : public BackwardNode {
  CppFunctionNode(const std::string& name, std::shared_ptr<::Signature> signature_of_call,
                  std::shared_ptr<Gradient> gradient_of_call)
      : BackwardNode(name,
                     signature_of_call->output_types.size() - signature_of_call->written.size()),
        signature(std::move(signature_of_call)),
        gradient(std::move(gradient_of_call)) {}

  ValuePtrList CallBackward(const ValuePtrList& values) override;

  void Release() override {
    context.to_save_.clear();
    context.saved_tensors_.clear();
    kept = nullptr;
  }

  /// Lets MindSpore know of the call, and of the tensors that its gradient reads, if it may have
  /// to differentiate it.
  void record(const TensorPtrList& inputs, TensorPtrList& outputs) {
    const ::Step* step = signature->step.get();
    const TensorPtrList differentiable = step == nullptr ? inputs : chosen(inputs, step->gradients);
    if (std::none_of(differentiable.begin(), differentiable.end(), may_need_gradient)) {
      return;
    }
    for (const TensorPtr& input : differentiable) {
      input->set_need_pipeline_sync(true);  // as MindSpore's Function has it (2.10)
    }
    TensorPtrList saved = step == nullptr ? inputs : chosen(inputs, step->inputs);
    if (gradient != nullptr && gradient->reads_results) {
      saved.insert(saved.end(), outputs.begin(), outputs.end());
    }
    context.node_ = weak_from_this();
    context.SaveForBackward(saved);
    CppFunctionDoGrad(&context, differentiable, &outputs);
  }

  std::shared_ptr<::Signature> signature;
  std::shared_ptr<Gradient> gradient;
  std::vector<int64_t> numbers;
  Reference python_operator;
  Reference python_numbers;  // as they were given, a tuple
  std::shared_ptr<Kept> kept;
  AutogradContext context;

 private:
  static TensorPtrList chosen(const TensorPtrList& tensors, const std::vector<std::size_t>& which) {
    TensorPtrList found;
    found.reserve(which.size());
    for (const std::size_t i : which) {
      found.push_back(tensors[i]);
    }
    return found;
  }

  /// Gradients of these results, with zeros for those that have none.
  TensorPtrList result_gradients(const ValuePtrList& values,
                                 const std::vector<std::size_t>& which) const;
  ValuePtrList differentiate_step(const ValuePtrList& values);
  ValuePtrList ask_python(const TensorPtrList& saved, const TensorPtrList& gradients) const;
};

/// The gradients of a step, which Python differentiates where a module was made for that.
template <>
struct CppFunctionNode<StepGradient> : public BackwardNode {
  CppFunctionNode(std::shared_ptr<::Signature> signature_of_call, std::size_t outputs)
      : BackwardNode("StepGradient", outputs), forward(std::move(signature_of_call)) {}

  /// A value for each operand of the backward program.
  ValuePtrList CallBackward(const ValuePtrList& values) override;

  void Release() override {
    context.to_save_.clear();
    context.saved_tensors_.clear();
  }

  /// `edges` are those of the forward call: without derivatives the error must be raised also where
  /// nothing but a kept value leads here.
  void record(const std::vector<Edge>& edges, TensorPtrList inputs, TensorPtrList& outputs) {
    context.node_ = weak_from_this();
    if (!forward->step->differentiate_again.is_none()) {
      context.SaveForBackward(inputs);
    } else {
      for (const Edge& edge : edges) {
        inputs.push_back(end_of(edge));
      }
    }
    CppFunctionDoGrad(&context, inputs, &outputs);
  }

  /// A tensor that stands for the output to which an edge leads.
  static TensorPtr end_of(const Edge& edge) {
    TensorPtr tensor = ms::Tensor(mindspore::kNumberTypeFloat32, ShapeVector{}).tensor();
    if (edge.is_defined()) {
      const auto data = std::make_shared<AutoGradMetaData>(edge.grad_node, InputType::kOpOutput);
      data->set_requires_grad(true);
      data->set_output_index(edge.input_index);
      tensor->set_auto_grad_meta_data(data);
    }
    return tensor;
  }

  std::shared_ptr<::Signature> forward;  // that of the step's forward program
  AutogradContext context;
};

}  // namespace mindspore::pynative::autograd

namespace {

using Node = autograd::CppFunctionNode<KernelCall>;

// ===--- operators ---===

/// The names of MindSpore's module of jit_context().
PyObject* jit_context_names = nullptr;

/// Whether a graph is recorded by what is called, which has ops.Custom.
bool is_recording() {
  PyObject* context = PyDict_GetItemString(jit_context_names, "_jit_context");
  return context != nullptr && context != Py_None;
}

bool is_pynative() {
  return mindspore::MsContext::GetInstance()->get_param<int>(mindspore::MS_CTX_EXECUTION_MODE) ==
         mindspore::kPynativeMode;
}

/// How many cells are running whose calls are for ops.Custom; Python counts them.
std::atomic<int> custom_cells{0};

/// Whether the call is one for ops.Custom.
bool is_for_custom() {
  const auto strategy = mindspore::amp::GetCurrentAmpStrategy();
  return custom_cells > 0 || (strategy != nullptr && strategy->IsEnable()) || is_recording() ||
         !is_pynative();
}

mindspore::ValuePtr attribute_value(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) {
    return mindspore::MakeValue(value.cast<bool>());
  }
  if (py::isinstance<py::int_>(value)) {
    return mindspore::MakeValue(value.cast<int64_t>());
  }
  if (py::isinstance<py::float_>(value)) {
    return mindspore::MakeValue(value.cast<float>());
  }
  if (py::isinstance<py::str>(value)) {
    return mindspore::MakeValue(value.cast<std::string>());
  }
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    std::vector<mindspore::ValuePtr> elements;
    for (const py::handle element : py::reinterpret_borrow<py::sequence>(value)) {
      elements.push_back(attribute_value(element));
    }
    return std::make_shared<mindspore::ValueList>(elements);
  }
  return mindspore::MakeValue(py::str(value).cast<std::string>());
}

/// An operator, of the one thread that made it.
class Caller {
 public:
  Caller(std::uintptr_t function, std::uintptr_t init, std::uintptr_t set_strides, std::string path,
         std::string name, const py::dict& attributes, bool keeps_states)
      : keeps_states_(keeps_states) {
    auto target = std::make_shared<Target>();
    target->function = reinterpret_cast<KernelFunction>(function);
    target->init = reinterpret_cast<InitFunction>(init);
    target->set_strides = reinterpret_cast<StridesFunction>(set_strides);
    target->path = std::move(path);
    target->name = std::move(name);
    target_ = std::move(target);
    primitive_ = std::make_shared<mindspore::Primitive>("Custom");
    for (const auto& [key, value] : attributes) {
      primitive_->AddAttr(key.cast<std::string>(), attribute_value(value));
    }
  }

  /// NotImplemented where `Kernel._call` has to do something first.
  PyObject* call(PyObject* const* arguments, Py_ssize_t count) {
    if (std::this_thread::get_id() != thread_ || is_for_custom()) {
      return Py_NewRef(Py_NotImplemented);
    }
    Inputs inputs;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!inputs.read(arguments[i])) {
        return Py_NewRef(Py_NotImplemented);
      }
    }
    const auto found = signatures_.find(inputs.key);
    if (found == signatures_.end() || !can_write(*found->second, inputs)) {
      return Py_NewRef(Py_NotImplemented);
    }
    if (found->second->sizes_call != nullptr) {
      return run_for_sizes(*found->second, inputs, arguments, count);
    }
    return run_or_queue(found->second, inputs, arguments, count);
  }

  /// Remembers the dtypes and shapes of what calls with such arguments return, and how they are
  /// differentiated. False if it takes none such.
  bool add(const py::sequence& arguments, const std::vector<std::string>& dtypes,
           const std::vector<ShapeVector>& shapes, const std::shared_ptr<Gradient>& gradient) {
    Inputs inputs;
    auto signature = make_signature(arguments, dtypes, shapes, gradient, inputs);
    if (signature == nullptr) {
      return false;
    }
    remember(std::move(inputs.key), std::move(signature));
    return true;
  }

  /// The same for calls whose results have sizes that only `sizes`, which has been told of such
  /// calls, knows once it has computed them.
  bool add_unsized(const py::sequence& arguments, const Caller& sizes,
                   const std::shared_ptr<ResultsOfLibrary>& library,
                   const std::shared_ptr<Gradient>& gradient) {
    Inputs inputs;
    auto signature = read_signature(arguments, gradient, inputs);
    const auto found = sizes.signatures_.find(inputs.key);
    if (signature == nullptr || found == sizes.signatures_.end()) {
      return false;
    }
    signature->sizes_call =
        std::make_shared<SizesCall>(SizesCall{library, sizes.target_, found->second});
    remember(std::move(inputs.key), std::move(signature));
    return true;
  }

  /// The same for calls of a step's forward program.
  bool add_step(const py::sequence& arguments, const std::vector<std::string>& dtypes,
                const std::vector<ShapeVector>& shapes, const std::shared_ptr<Step>& step) {
    Inputs inputs;
    auto signature = make_signature(arguments, dtypes, shapes, nullptr, inputs);
    if (signature == nullptr || inputs.tensors.size() != signature->kinds.size()) {
      return false;
    }
    signature->step = step;
    signature->is_of_step = true;
    signature->written = step->written;
    remember(std::move(inputs.key), std::move(signature));
    return true;
  }

  /// Where this has a step's backward program: the gradients of the first `count` inputs that have
  /// any, of a call of the forward one.
  std::vector<TensorPtr> differentiate_step(Signature& forward, std::size_t count,
                                            const std::vector<TensorPtr>& operands,
                                            const std::shared_ptr<Kept>& kept) const {
    Inputs inputs;
    for (const TensorPtr& operand : operands) {
      inputs.add_tensor(operand);
    }
    BackwardSignature& known = forward.backwards[this == forward.step->of_all.get() ? 1 : 0];
    std::shared_ptr<Signature> signature = known.key == inputs.key ? known.signature : nullptr;
    if (signature == nullptr) {
      signature = std::make_shared<Signature>(primitive_);
      signature->is_of_step = true;
      signature->add_inputs(inputs.key);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t input = forward.step->gradients[i];
        signature->output_types.push_back(type_of_name(forward.dtypes[input]));
        signature->add(forward.dtypes[input], forward.sizes[input]);
      }
      signature->finish();
      init(*signature);
      known = {inputs.key, signature};
    }
    return run(target_, signature, inputs.tensors, {}, kept);
  }

  std::size_t signature_count() const { return signatures_.size(); }

  /// A call whose results no other with such arguments has.
  PyObject* call_once(const py::sequence& arguments, const std::vector<std::string>& dtypes,
                      const std::vector<ShapeVector>& shapes,
                      const std::shared_ptr<Gradient>& gradient) {
    if (is_for_custom()) {
      return Py_NewRef(Py_NotImplemented);
    }
    Inputs inputs;
    const auto signature = make_signature(arguments, dtypes, shapes, gradient, inputs);
    if (signature == nullptr) {
      return Py_NewRef(Py_NotImplemented);
    }
    const py::tuple tuple(arguments);
    return run_or_queue(signature, inputs, PySequence_Fast_ITEMS(tuple.ptr()),
                        PyTuple_GET_SIZE(tuple.ptr()));
  }

  /// Where this is the operator of a gradient's kernel: its results for a call of another
  /// operator. Empty if Python has to call it.
  std::vector<TensorPtr> differentiate(const Node& node, const std::vector<TensorPtr>& saved,
                                       const std::vector<TensorPtr>& gradients) const {
    if (std::this_thread::get_id() != thread_ || is_for_custom()) {
      return {};
    }
    Inputs inputs;
    auto tensor = saved.begin();
    auto number = node.numbers.begin();
    for (const Kind kind : node.signature->kinds) {
      if (kind == kTensor) {
        inputs.add_tensor(*tensor++);
      } else if (kind == kNone) {
        inputs.key.push_back(kNone);
      } else {
        inputs.add_number(kind, *number++);
      }
    }
    for (const TensorPtr& gradient : gradients) {
      inputs.add_tensor(gradient);
    }
    const auto found = signatures_.find(inputs.key);
    if (found == signatures_.end()) {
      return {};
    }
    const std::shared_ptr<Signature>& signature = found->second;
    return run_and_record(make_node(signature, inputs, node.python_numbers.get()), target_,
                          signature, inputs.tensors, inputs.numbers);
  }

 private:
  static constexpr std::size_t kMaxSignatures = 1024;

  void remember(Key key, std::shared_ptr<Signature> signature) {
    if (signatures_.size() >= kMaxSignatures && !keeps_states_) {
      signatures_.clear();
    }
    signatures_[std::move(key)] = std::move(signature);
  }

  /// Whether inputs that a step changes are there themselves, and neither copies nor views, which
  /// MindSpore's own assign refuses (2.10).
  static bool can_write(const Signature& signature, const Inputs& inputs) {
    return std::all_of(signature.written.begin(), signature.written.end(), [&](std::size_t input) {
      return inputs.tensors[input]->is_contiguous() &&
             inputs.tensors[input]->storage_info() == nullptr;
    });
  }

  /// What is known of the inputs; null if such are not taken.
  std::shared_ptr<Signature> read_signature(const py::sequence& arguments,
                                            const std::shared_ptr<Gradient>& gradient,
                                            Inputs& inputs) const {
    for (const py::handle argument : arguments) {
      if (!inputs.read(argument.ptr())) {
        return nullptr;
      }
    }
    auto signature = std::make_shared<Signature>(primitive_);
    signature->gradient = gradient;
    return signature->add_inputs(inputs.key) ? signature : nullptr;
  }

  std::shared_ptr<Signature> make_signature(const py::sequence& arguments,
                                            const std::vector<std::string>& dtypes,
                                            const std::vector<ShapeVector>& shapes,
                                            const std::shared_ptr<Gradient>& gradient,
                                            Inputs& inputs) const {
    auto signature = read_signature(arguments, gradient, inputs);
    if (signature == nullptr) {
      return nullptr;
    }
    for (std::size_t i = 0; i < dtypes.size(); ++i) {
      const TypeId type = type_of_name(dtypes[i]);
      signature->output_types.push_back(type);
      signature->add(type_name(type), shapes[i]);
    }
    signature->finish();
    init(*signature);
    return signature;
  }

  void init(Signature& signature) const {
    if (target_->init == nullptr) {
      return;
    }
    {
      const py::gil_scoped_release released;
      const int status = target_->init(signature.ndims.data(), signature.shapes.data(),
                                       signature.dtypes.data(), &signature.extra);
      check_status(*target_, status);
    }
    signature.workspaces = signature.extra.WorkSpace();
  }

  /// The numbers among a call's arguments.
  static py::tuple python_numbers(PyObject* const* arguments, Py_ssize_t count) {
    py::list numbers;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (PyLong_Check(arguments[i]) || PyFloat_Check(arguments[i])) {
        numbers.append(py::handle(arguments[i]));
      }
    }
    return py::tuple(numbers);
  }

  /// What MindSpore may record of a call; null where it records none.
  std::shared_ptr<Node> make_node(const std::shared_ptr<Signature>& signature, const Inputs& inputs,
                                  const py::object& numbers) const {
    if (!is_recording_gradients()) {
      return nullptr;
    }
    if (signature->step != nullptr) {
      auto node = autograd::BackwardNode::Create<Node>(target_->name, signature, nullptr);
      node->kept = std::make_shared<Kept>(signature->step);
      return node;
    }
    const auto gradient = signature->gradient.lock();
    const py::object python_operator =
        gradient == nullptr ? py::none() : gradient->weak_operator.get()();
    if (python_operator.is_none()) {
      throw std::logic_error(target_->name + ": expected an operator, got one that is gone");
    }
    auto node = autograd::BackwardNode::Create<Node>(target_->name, signature, gradient);
    node->numbers = inputs.numbers;
    node->python_operator = Reference(python_operator);
    node->python_numbers = Reference(numbers);
    return node;
  }

  /// Runs a call, and lets MindSpore differentiate it where an input may need that. What computes
  /// the inputs stands before it in MindSpore's queue, or is waited for.
  static std::vector<TensorPtr> run_and_record(const std::shared_ptr<Node>& node,
                                               const std::shared_ptr<const Target>& target,
                                               const std::shared_ptr<Signature>& signature,
                                               const std::vector<TensorPtr>& inputs,
                                               const std::vector<int64_t>& numbers) {
    std::vector<TensorPtr> outputs =
        run(target, signature, inputs, numbers, node == nullptr ? nullptr : node->kept);
    if (node != nullptr) {
      node->record(inputs, outputs);
    }
    return outputs;
  }

  std::shared_ptr<Node> make_node(const std::shared_ptr<Signature>& signature, const Inputs& inputs,
                                  PyObject* const* arguments, Py_ssize_t argument_count) const {
    if (inputs.numbers.empty() || !is_recording_gradients()) {
      return make_node(signature, inputs, py::object());
    }
    return make_node(signature, inputs, python_numbers(arguments, argument_count));
  }

  /// A call whose results have sizes that are known once they are computed: in this thread.
  PyObject* run_for_sizes(const Signature& unsized, const Inputs& inputs,
                          PyObject* const* arguments, Py_ssize_t argument_count) const {
    const ComputedResults computed(*unsized.sizes_call, inputs);
    const auto signature = std::make_shared<Signature>(primitive_);
    signature->gradient = unsized.gradient;
    signature->add_inputs(inputs.key);
    signature->output_types = computed.types();
    for (std::size_t i = 0; i < computed.types().size(); ++i) {
      signature->add(type_name(computed.types()[i]), computed.shapes()[i]);
    }
    std::vector<TensorPtr> outputs = computed.copy();
    const auto node = make_node(signature, inputs, arguments, argument_count);
    if (node != nullptr) {
      node->record(inputs.tensors, outputs);
    }
    std::vector<PyObject*> results;
    results.reserve(outputs.size());
    for (const TensorPtr& output : outputs) {
      results.push_back(mindspore::tensor::PackTensor(output));
    }
    return results.size() == 1 ? results.front() : tuple_of(results);
  }

  PyObject* run_or_queue(const std::shared_ptr<Signature>& signature, Inputs& inputs,
                         PyObject* const* arguments, Py_ssize_t argument_count) const {
    const std::shared_ptr<Node> node = make_node(signature, inputs, arguments, argument_count);
    const std::size_t first = signature->written.size();  // None stands for those that are written
    std::vector<PyObject*> results(signature->output_types.size(), nullptr);
    for (std::size_t i = 0; i < first; ++i) {
      results[i] = Py_NewRef(Py_None);
    }
    const bool is_one =
        results.size() == 1 && (signature->step == nullptr || !signature->step->gives_tuple);
    const auto& queue = mindspore::runtime::Pipeline::Get().frontend_stage();
    if (is_blocking() || signature->is_short || signature->is_of_step || !kMayQueue) {
      if (!queue->Empty()) {
        const py::gil_scoped_release released;
        queue->Wait();
      }
      const std::vector<TensorPtr> outputs =
          run_and_record(node, target_, signature, inputs.tensors, inputs.numbers);
      for (std::size_t i = first; i < results.size(); ++i) {
        results[i] = mindspore::tensor::PackTensor(outputs[i - first]);
      }
      return is_one ? results.front() : tuple_of(results);
    }
    std::vector<mindspore::stub::StubNodePtr> promises;
    promises.reserve(results.size() - first);
    for (std::size_t i = first; i < results.size(); ++i) {
      const mindspore::tensor::TensorWrapper future(/*has_side_effect=*/false);
      results[i] = future.value();
      promises.push_back(future.MakeFuture());
    }
    const auto task = std::make_shared<Task>(
        mindspore::runtime::kFrontendTask,
        [target = target_, signature, node, tensors = std::move(inputs.tensors),
         numbers = std::move(inputs.numbers), promises]() {
          const std::vector<TensorPtr> outputs =
              run_and_record(node, target, signature, tensors, numbers);
          for (std::size_t i = 0; i < promises.size(); ++i) {
            promises[i]->SetValue(outputs[i]);
          }
        },
        [promises](const std::exception_ptr& exception) {
          for (const auto& promise : promises) {
            promise->SetException(exception);
          }
        });
    static std::mutex mutex;
    push(queue, mutex, task);
    return is_one ? results.front() : tuple_of(results);
  }

  static PyObject* tuple_of(const std::vector<PyObject*>& results) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(results.size()));
    for (std::size_t i = 0; tuple != nullptr && i < results.size(); ++i) {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), results[i]);
    }
    return tuple;
  }

  std::shared_ptr<const Target> target_;
  mindspore::PrimitivePtr primitive_;
  bool
      keeps_states_;  // that calls change, so that signatures, which have them, are never forgotten
  std::thread::id thread_ = std::this_thread::get_id();
  std::unordered_map<Key, std::shared_ptr<Signature>, KeyHash> signatures_;
};

PyObject* call(PyObject* capsule, PyObject* const* arguments, Py_ssize_t count) {
  try {
    auto* caller = static_cast<std::shared_ptr<Caller>*>(PyCapsule_GetPointer(capsule, nullptr));
    return caller == nullptr ? nullptr : (*caller)->call(arguments, count);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyMethodDef call_method = {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call)),
                           METH_FASTCALL, "Calls the kernel, or returns NotImplemented."};

}  // namespace

namespace mindspore::pynative::autograd {

namespace {

py::object to_python(const TensorPtr& tensor) {
  return py::reinterpret_steal<py::object>(tensor::PackTensor(tensor));
}

/// A gradient that Python has computed, or None.
ValuePtr from_python(const py::handle& gradient) {
  return gradient.is_none() ? kNone : ValuePtr(tensor::ConvertPyObjectToTensor(gradient.ptr()));
}

}  // namespace

TensorPtrList Node::result_gradients(const ValuePtrList& values,
                                     const std::vector<std::size_t>& which) const {
  TensorPtrList gradients;
  gradients.reserve(which.size());
  for (const std::size_t i : which) {
    gradients.push_back(values[i] == nullptr ? nullptr : values[i]->cast<TensorPtr>());
  }
  if (std::find(gradients.begin(), gradients.end(), nullptr) == gradients.end()) {
    return gradients;
  }
  ValuePtrList some;
  abstract::AbstractBasePtrList results;
  const std::size_t first =
      signature->sizes.size() - signature->output_types.size() + signature->written.size();
  for (const std::size_t i : which) {
    some.push_back(values[i]);
    results.push_back(signature->abstract(first + i));
  }
  return GradPreProcess(some, results, /*materialize_grads=*/true, name_);
}

ValuePtrList CppFunctionNode<StepGradient>::CallBackward(const ValuePtrList& values) {
  const py::gil_scoped_acquire acquired;
  const ::Step& step = *forward->step;
  if (step.differentiate_again.is_none()) {
    throw py::value_error(step.no_gradient);
  }
  ValuePtrList all(values);
  all.resize(step.gradients.size(), kNone);  // those of weights alone may have been computed
  abstract::AbstractBasePtrList abstracts;
  for (const std::size_t input : step.gradients) {
    abstracts.push_back(forward->abstract(input));
  }
  TensorPtrList operands = context.GetSavedTensors();
  const TensorPtrList gradients = GradPreProcess(all, abstracts, /*materialize_grads=*/true, name_);
  operands.insert(operands.end(), gradients.begin(), gradients.end());
  py::list given;
  for (const TensorPtr& operand : operands) {
    given.append(to_python(operand));
  }
  ValuePtrList found;
  for (const py::handle one : py::list(step.differentiate_again.get()(given))) {
    found.push_back(from_python(one));
  }
  return found;
}

/// A value for each input of the forward program that has a gradient.
ValuePtrList Node::differentiate_step(const ValuePtrList& values) {
  const ::Step& step = *signature->step;
  TensorPtrList operands = context.GetSavedTensors();
  const TensorPtrList tangents = result_gradients(values, step.tangents);
  operands.insert(operands.end(), tangents.begin(), tangents.end());
  const std::size_t of_weights = step.weight_gradients();
  bool needs_all = of_weights == 0;
  const AutoDiffInterfacePtr engine = impl::CurrentAutoDiffEngine();
  for (std::size_t i = of_weights; i < step.gradients.size(); ++i) {
    const BackwardNodePtr& source = next_edges()[i].grad_node;
    needs_all =
        needs_all || engine == nullptr || (source != nullptr && engine->IsInExecGraph(source));
  }
  const Caller& caller = needs_all ? *step.of_all : *step.of_weights;
  const std::size_t count = needs_all ? step.gradients.size() : of_weights;
  TensorPtrList found = caller.differentiate_step(*signature, count, operands, kept);
  if (is_recording_gradients()) {
    Create<CppFunctionNode<StepGradient>>(signature, count)->record(next_edges(), operands, found);
  }
  ValuePtrList results(found.begin(), found.end());
  results.resize(step.gradients.size(), kNone);
  return results;
}

/// A value for each input that is a tensor.
ValuePtrList Node::CallBackward(const ValuePtrList& values) {
  const py::gil_scoped_acquire acquired;
  if (signature->step != nullptr) {
    return differentiate_step(values);
  }
  std::vector<std::size_t> all(values.size());
  std::iota(all.begin(), all.end(), 0);
  const TensorPtrList gradients = result_gradients(values, all);
  const TensorPtrList saved = context.GetSavedTensors();
  const auto kernel = gradient->kernel.lock();
  TensorPtrList found;
  if (kernel != nullptr) {
    found = kernel->differentiate(*this, saved, gradients);
  }
  if (found.empty()) {
    return ask_python(saved, gradients);
  }
  ValuePtrList results;
  auto next = found.begin();
  for (std::size_t i = 0; i < signature->kinds.size(); ++i) {
    const ValuePtr result = gradient->mask[i] ? ValuePtr(*next++) : kNone;
    if (signature->kinds[i] == kTensor) {
      results.push_back(result);
    }
  }
  return results;
}

ValuePtrList Node::ask_python(const TensorPtrList& saved, const TensorPtrList& gradients) const {
  py::list inputs, results, result_gradients;
  auto tensor = saved.begin();
  std::size_t number = 0;
  for (const Kind kind : signature->kinds) {
    if (kind == kTensor) {
      inputs.append(to_python(*tensor++));
    } else {
      inputs.append(kind == ::kNone ? py::none()
                                    : py::object(py::tuple(python_numbers.get())[number++]));
    }
  }
  for (; tensor != saved.end(); ++tensor) {
    results.append(to_python(*tensor));
  }
  for (const TensorPtr& one : gradients) {
    result_gradients.append(to_python(one));
  }
  const py::sequence answer = python_operator.get().attr("differentiate")(
      gradient, gradient->layout.get(), inputs, results, result_gradients);
  ValuePtrList found;
  for (std::size_t i = 0; i < signature->kinds.size(); ++i) {
    if (signature->kinds[i] == kTensor) {
      found.push_back(from_python(py::object(answer[i])));
    }
  }
  return found;
}

}  // namespace mindspore::pynative::autograd

PYBIND11_MODULE(aten_bridge_caller, m) {
  m.attr("interface") = 3;  // _INTERFACE of mindspore/_caller.py, which refuses another one
  m.def("set_jit_context_names", [](const py::dict& names) {
    jit_context_names = py::object(names).release().ptr();  // as long as the process
  });
  m.def("set_custom_cells", [](int count) { custom_cells = count; });
  m.def("is_for_custom", is_for_custom);
  m.def("wait_for_queued", wait_for_queued);
  m.doc() = "Calls kernels in MindSpore's PyNative mode.";
  py::class_<Gradient, std::shared_ptr<Gradient>>(m, "Gradient")
      .def(py::init<const py::object&, py::object, bool>())
      .def("set_kernel",
           [](Gradient& self, const std::shared_ptr<Caller>& kernel, std::vector<bool> mask) {
             self.kernel = kernel;
             self.mask = std::move(mask);
           });
  py::class_<ResultsOfLibrary, std::shared_ptr<ResultsOfLibrary>>(m, "ResultsOfLibrary")
      .def(py::init([](std::uintptr_t set_results, std::uintptr_t copy_results,
                       std::uintptr_t free_results, const std::vector<std::string>& dtypes) {
        auto library = std::make_shared<ResultsOfLibrary>();
        library->set_results = reinterpret_cast<decltype(library->set_results)>(set_results);
        library->copy_results = reinterpret_cast<decltype(library->copy_results)>(copy_results);
        library->free_results = reinterpret_cast<decltype(library->free_results)>(free_results);
        for (const std::string& dtype : dtypes) {
          library->types.push_back(type_of_name(dtype));
        }
        return library;
      }));
  py::class_<Step, std::shared_ptr<Step>>(m, "Step")
      .def(py::init([](std::uintptr_t set_kept, std::uintptr_t free_kept) {
        auto step = std::make_shared<Step>();
        step->set_kept = reinterpret_cast<decltype(step->set_kept)>(set_kept);
        step->free_kept = reinterpret_cast<decltype(step->free_kept)>(free_kept);
        return step;
      }))
      .def_readwrite("written", &Step::written)
      .def_readwrite("gives_tuple", &Step::gives_tuple)
      .def_readwrite("inputs", &Step::inputs)
      .def_readwrite("tangents", &Step::tangents)
      .def_readwrite("gradients", &Step::gradients)
      .def_readwrite("weight_count", &Step::weight_count)
      .def_readwrite("of_weights", &Step::of_weights)
      .def_readwrite("of_all", &Step::of_all)
      .def_property("differentiate_again", py::cpp_function(),
                    [](Step& self, py::object function) {
                      self.differentiate_again = Reference(std::move(function));
                    })
      .def_readwrite("no_gradient", &Step::no_gradient);
  py::class_<Caller, std::shared_ptr<Caller>>(m, "Caller")
      .def(py::init<std::uintptr_t, std::uintptr_t, std::uintptr_t, std::string, std::string,
                    const py::dict&, bool>())
      .def("add", &Caller::add)
      .def("add_step", &Caller::add_step)
      .def("add_unsized", &Caller::add_unsized)
      .def("signature_count", &Caller::signature_count)
      .def("call_once",
           [](Caller& self, const py::sequence& arguments, const std::vector<std::string>& dtypes,
              const std::vector<ShapeVector>& shapes, const std::shared_ptr<Gradient>& gradient) {
             PyObject* result = self.call_once(arguments, dtypes, shapes, gradient);
             if (result == nullptr) {
               throw py::error_already_set();
             }
             return py::reinterpret_steal<py::object>(result);
           })
      .def("function", [](const std::shared_ptr<Caller>& self) {
        const py::capsule capsule(new std::shared_ptr<Caller>(self), [](void* pointer) {
          delete static_cast<std::shared_ptr<Caller>*>(pointer);
        });
        return py::reinterpret_steal<py::object>(PyCFunction_New(&call_method, capsule.ptr()));
      });
}
