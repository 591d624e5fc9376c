// MindSpore's op plugin (MS_OP_PLUGIN_PATH), for its own operators: all parameters are inputs,
// which may lie in memory in any way. It has the seven arguments of ops.Custom, and the two cannot
// be told apart at run time: the build of a source says for which one its kernels are.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_MINDSPORE_PLUGIN_H_
#define ATEN_BRIDGE_HOSTS_MINDSPORE_PLUGIN_H_

#include <aten_bridge/hosts/mindspore/abi.h>
#include <aten_bridge/hosts/mindspore/call.h>
#include <aten_bridge/hosts/mindspore/raw.h>
#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/interface/numbers.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

class MindSporePlugin : public MindSporeCall {
 public:
  static constexpr bool kStridesInputs = true;
  static constexpr bool kWritesInputs = true;
  static constexpr bool kMayHaveMore = true;
  static constexpr HostMessages kMessages =
      messages("the kernel's parameters with MindSpore's definition of the operator");

  template <class K>
  struct Requirements {
    static_assert(!K::kTraits.has_instance,
                  "aten_bridge: a kernel of a plugin takes all its parameters from inputs: it has "
                  "no attributes and no state.");
  };

  // no_sanitize: the dynamic type of `extra` is a class of the host's, unknown here.
  __attribute__((no_sanitize("vptr")))
  MindSporePlugin(const char* operator_name, int nparam, void** params, int* ndims,
                  int64_t** shapes, const char** dtypes, void* stream, void* extra)
      : MindSporeCall(operator_name, nparam, params, ndims, shapes, dtypes, stream, extra),
        inputs_(static_cast<PluginInputs*>(extra)) {
    if (inputs_ == nullptr) {
      raise(Status::kNullPointer,
            {operator_name,
             ": expected `extra` to describe the inputs, as MindSpore's op plugins get "
             "it, got null"});
    }
    const std::size_t count = inputs_->count();
    if (count > static_cast<std::size_t>(size())) {
      raise(Status::kCount,
            {operator_name, ": expected up to ", count_text(size(), "input"), ", got ", count});
    }
    layouts_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (auto layout = inputs_->layout(i)) {
        layouts_[i] = *std::move(layout);
      }
    }
    set_inputs(static_cast<int>(count), layouts_.data());
  }
  MindSporePlugin(const MindSporePlugin&) = delete;
  MindSporePlugin& operator=(const MindSporePlugin&) = delete;

  /// Python's floats arrive as float32: takes the decimal that they were. Dtypes arrive as
  /// MindSpore's numbers of them, and an empty list as None of the shape [0].
  __attribute__((no_sanitize("vptr"))) void refine(int input, const ParameterInfo& binding,
                                                   Operand& operand) const {
    OperandDesc& desc = operand.desc;
    const bool is_list =
        binding.number == ScalarInputType::kInts || binding.number == ScalarInputType::kReals;
    if (is_list && desc.is_none() && desc.ndim == 1 && desc.sizes[0] == 0) {
      desc = {operand.number, desc.sizes, desc.ndim, /*numel=*/0, DType::kInt64};
    } else if (binding.number == ScalarInputType::kDtype && desc.numel == 1) {
      int64_t id = 0;
      const bool is_id = convert(read_number(desc), id);
      const auto number = static_cast<int64_t>(is_id ? dtype_of_new_id(id) : DType::kNone);
      put(number, DType::kInt64, operand);
    } else if (desc.dtype == DType::kFloat32 && desc.numel == 1 && desc.ndim == 0 &&
               inputs_->is_scalar(static_cast<std::size_t>(input))) {
      put(widen(load<float>(desc.data)), DType::kFloat64, operand);
    }
  }

  /// The results' sizes, where they are known after the run only.
  std::vector<std::vector<int64_t>>* result_sizes() { return &sizes_; }
  __attribute__((no_sanitize("vptr"))) void publish_sizes() {
    auto shapes = std::make_unique<PluginShapes>();
    shapes->is_known.assign(sizes_.size(), true);
    shapes->sizes = std::move(sizes_);
    inputs_->set_shapes(std::move(shapes));
  }

  /// What an error's text ends with. In PyNative mode MindSpore runs an operator on another thread
  /// than its caller's, unless it is told to wait, and raises the error at a later line.
  [[gnu::cold]] static const char* advice() {
    return getpid() == static_cast<pid_t>(syscall(SYS_gettid))
               ? ""
               : "; for the line that it belongs to, run the program with `python -m "
                 "aten_bridge.mint`, or call mindspore.runtime.launch_blocking() before the "
                 "first operator";
  }

  /// The library's kernels replace MindSpore's, and have to take what those take: where ATen has no
  /// kernel for a dtype, it is computed in a wider one. uint64 is exact below 2^63.
  static void invoke(const KernelBase& kernel, const Arguments& arguments) {
    try {
      kernel.invoke(arguments);
    } catch (const c10::Error& error) {
      if (!lacks_kernel(error.what_without_backtrace()) ||
          (!invoke_wider(kernel, arguments, wider_unsigned) &&
           !invoke_wider(kernel, arguments, wider_number))) {
        throw;
      }
    }
  }

 private:
  template <class T>
  static void put(T value, DType dtype, Operand& operand) {
    std::memcpy(operand.number, &value, sizeof(value));
    operand.desc.data = operand.number;
    operand.desc.dtype = dtype;
  }

  static at::ScalarType wider_unsigned(at::ScalarType type) {
    switch (dtype_of(type)) {  // PyTorch itself names these from 2.3 on
      case DType::kUInt16:
        return at::kInt;
      case DType::kUInt32:
      case DType::kUInt64:
        return at::kLong;
      default:
        return type;
    }
  }

  static at::ScalarType wider_number(at::ScalarType type) {
    switch (type) {
      case at::kHalf:
      case at::kBFloat16:
        return at::kFloat;
      case at::kBool:
      case at::kByte:
      case at::kChar:
      case at::kShort:
      case at::kInt:
      case at::kLong:
        return at::kDouble;
      default:
        return type;
    }
  }

  /// False if that does not help either; the operands are as they were.
  [[gnu::cold]] static bool invoke_wider(const KernelBase& kernel, const Arguments& arguments,
                                         at::ScalarType (*wider)(at::ScalarType)) {
    std::vector<std::pair<Operand*, at::Tensor>> narrow;
    bool done = false;
    try {
      for (int i = 0; i < arguments.size(); ++i) {
        Operand& operand = arguments.operands[i];
        if (operand.view.defined() &&
            wider(operand.view.scalar_type()) != operand.view.scalar_type()) {
          narrow.emplace_back(&operand, operand.view);
          operand.view = operand.view.to(wider(operand.view.scalar_type()));
        }
      }
      if (!narrow.empty() && arguments.list_begin < 0) {
        kernel.invoke(arguments);
        for (const auto& [operand, view] : narrow) {
          const bool is_written =
              operand >= arguments.operands + arguments.inputs || arguments.outputs == 0;
          if (is_written) {
            view.copy_(operand->view);
          }
        }
        done = true;
      }
    } catch (const std::exception&) {  // the first error says more
    }
    for (auto& [operand, view] : narrow) {
      operand->view = view;
    }
    return done;
  }

  PluginInputs* inputs_;
  c10::SmallVector<Layout, 8> layouts_;
  std::vector<std::vector<int64_t>> sizes_;
};

/// The names of the operators that a plugin has kernels for, or of those among them whose results'
/// sizes are known after the run only.
inline std::vector<const char*>& plugin_operators(bool data_dependent) {
  static std::array<std::vector<const char*>, 2> names;
  return names[data_dependent ? 1 : 0];
}

/// Whether the user leaves the operator to MindSpore, by its name among those, between commas, of
/// the environment variable ATEN_BRIDGE_LEAVE_TO_MINDSPORE.
inline bool is_left_to_mindspore(const char* operator_name) {
  const char* const names = std::getenv("ATEN_BRIDGE_LEAVE_TO_MINDSPORE");
  return names != nullptr &&
         ("," + std::string(names) + ",").find("," + std::string(operator_name) + ",") !=
             std::string::npos;
}

inline bool add_plugin_operator(const KernelBase& kernel) {
  if (is_left_to_mindspore(kernel.info.operator_name)) {
    return false;
  }
  plugin_operators(/*data_dependent=*/false).push_back(kernel.info.operator_name);
  if (kernel.info.is_data_dependent) {
    plugin_operators(/*data_dependent=*/true).push_back(kernel.info.operator_name);
  }
  return true;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// The kernel's C function.
#define ATEN_BRIDGE_ENTRY_MINDSPORE_PLUGIN(Name)                         \
  ATEN_BRIDGE_ENTRY_MINDSPORE_CALL(Name, aten_bridge_kernel_##Name.call) \
  [[maybe_unused]] static const bool aten_bridge_is_added_##Name =       \
      ::aten_bridge::detail::add_plugin_operator(aten_bridge_kernel_##Name);
#define ATEN_BRIDGE_INSTANTIATE_MINDSPORE_PLUGIN(Device)                                       \
  ATEN_BRIDGE_INSTANTIATE_CALL(run, MindSporePlugin, Device, CallSiteCache& (*call_sites)(), ) \
  ATEN_BRIDGE_INSTANTIATE_CALL(run_raw, MindSporePlugin, Device, )
#define ATEN_BRIDGE_ENTRY_POINTS_MINDSPORE_PLUGIN(Name) #Name " "

#ifdef ATEN_BRIDGE_MINDSPORE_PLUGIN
// What MindSpore asks a plugin when it opens it: the operators that it has kernels for, and those
// of them whose results' sizes are known after the run only. Beside a plugin MindSpore's own
// kernels take views for whole tensors, unless patch_mindspore.cpp is part of it:
// PATCH_MINDSPORE of aten_bridge_add_kernel().
extern "C" __attribute__((weak, visibility("hidden"))) void aten_bridge_patch_mindspore();
extern "C" ATEN_BRIDGE_PUBLIC inline int GetRegisteredOpCount() {  // NOLINT: MindSpore's name
  if (aten_bridge_patch_mindspore != nullptr) {
    aten_bridge_patch_mindspore();
  }
  return static_cast<int>(aten_bridge::detail::plugin_operators(false).size());
}
extern "C" ATEN_BRIDGE_PUBLIC inline const char**
GetAllRegisteredOps() {  // NOLINT: MindSpore's name
  return aten_bridge::detail::plugin_operators(false).data();
}
extern "C" ATEN_BRIDGE_PUBLIC inline int GetComputeDependOpCount() {  // NOLINT: MindSpore's name
  return static_cast<int>(aten_bridge::detail::plugin_operators(true).size());
}
extern "C" ATEN_BRIDGE_PUBLIC inline const char**
GetAllOpPluginComputeDependOps() {  // NOLINT: MindSpore's name
  return aten_bridge::detail::plugin_operators(true).data();
}
#endif

#endif  // ATEN_BRIDGE_HOSTS_MINDSPORE_PLUGIN_H_
