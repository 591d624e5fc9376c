// PyTorch: its headers, and what differs between its versions. Beside it old_optional.h, the pools
// of device_cuda.h, and two headers of the PyTorch host ask which version it is.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TENSORS_TORCH_H_
#define ATEN_BRIDGE_TENSORS_TORCH_H_

#include <ATen/core/Tensor.h>
#include <aten_bridge/core/dtypes.h>
#include <aten_bridge/core/errors.h>
#include <torch/csrc/api/include/torch/version.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

// In libtorch_cpu of every version; the wheels of PyTorch 2.1 and 2.6 lack the header for it.
namespace caffe2 {
// Weak: a libtorch of GCC's other C++ ABI has it under another name, and is known by that.
[[gnu::weak]] TORCH_API const std::map<std::string, std::string>&
GetBuildOptions();  // NOLINT(*-naming)
}  // namespace caffe2
// The header for it costs each kernel a second of compile time.
namespace torch::autograd {
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 6
using MaybeBool = c10::optional<bool>;
#else
using MaybeBool = std::optional<bool>;
#endif
TORCH_API std::vector<at::Tensor> grad(  // NOLINT(*-naming)
    const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
    const std::vector<at::Tensor>& grad_outputs, MaybeBool retain_graph, bool create_graph,
    bool allow_unused);
}  // namespace torch::autograd

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// PyTorch's name of a type; Undefined where this PyTorch has none: std::uint16_t, std::uint32_t
/// and std::uint64_t came with 2.3.
template <class T, class = void>
inline constexpr at::ScalarType kScalarTypeOf = at::ScalarType::Undefined;
template <class T>
inline constexpr at::ScalarType
    kScalarTypeOf<T, std::void_t<decltype(c10::CppTypeToScalarType<T>::value)>> =
        c10::CppTypeToScalarType<T>::value;

#define ATEN_BRIDGE_DTYPE(dtype, name, itemsize, T) \
  static_assert(sizeof(T) == (itemsize),            \
                "aten_bridge: ATEN_BRIDGE_DTYPES has the bytes of " #T ".");
ATEN_BRIDGE_DTYPES(ATEN_BRIDGE_DTYPE)
#undef ATEN_BRIDGE_DTYPE

// By the numbers of `DType`.
#define ATEN_BRIDGE_DTYPE(dtype, name, itemsize, T) kScalarTypeOf<T>,
inline constexpr at::ScalarType kScalarTypes[] = {at::ScalarType::Undefined,
                                                  ATEN_BRIDGE_DTYPES(ATEN_BRIDGE_DTYPE)};
#undef ATEN_BRIDGE_DTYPE

/// The bridge's names of PyTorch's dtypes, by their numbers.
constexpr auto dtypes_by_scalar_type() {
  std::array<DType, static_cast<std::size_t>(at::ScalarType::NumOptions) + 1> dtypes = {};
  for (const DTypeInfo& info : kDTypes) {
    const at::ScalarType type = kScalarTypes[static_cast<std::size_t>(info.dtype)];
    if (type != at::ScalarType::Undefined) {
      dtypes[static_cast<std::size_t>(type)] = info.dtype;
    }
  }
  return dtypes;
}
inline constexpr auto kDTypesByScalarType = dtypes_by_scalar_type();

/// The bridge's name of PyTorch's dtype; kNone for one that it lacks.
constexpr DType dtype_of(at::ScalarType type) {
  return kDTypesByScalarType[static_cast<std::size_t>(type)];
}

template <class StorageImpl>
auto forbid_data(StorageImpl* storage, const char* text, int /*preferred*/)
    -> decltype(storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::string())) {
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::string(text));
}
// Older versions of PyTorch have a text of their own; 2.1 has none, and crashes.
template <class StorageImpl>
auto forbid_data(StorageImpl* storage, const char* /*text*/, long /*fallback*/)  // NOLINT
    -> decltype(storage->set_throw_on_mutable_data_ptr()) {
  storage->set_throw_on_mutable_data_ptr();
}
inline void forbid_data(...) {}  // NOLINT(cert-dcl50-cpp)

/// Whether the tensor has an object of Python's. After 2.12 PyTorch has one interpreter, and no
/// longer says in the operand which it is.
template <class OperandDesc>
auto has_python_object(OperandDesc* desc, int /*preferred*/)
    -> decltype(desc->load_pyobj() != nullptr) {
  return desc->load_pyobj() != nullptr;
}
template <class OperandDesc>
auto has_python_object(OperandDesc* desc, long /*fallback*/)  // NOLINT
    -> decltype(desc->pyobj_interpreter() != nullptr) {
  return desc->pyobj_interpreter() != nullptr;
}

/// What is wrong with the PyTorch in this process; empty if nothing is. A library is loaded with
/// the libtorch that is there already, whatever its own runpath says, and tensors differ from one
/// minor version to the next. (at::show_config() would start CUDA.)
[[gnu::cold, gnu::noinline]] inline std::string pytorch_fault() {
  const std::string built_with = join({TORCH_VERSION_MAJOR, ".", TORCH_VERSION_MINOR, "."});
  std::string loaded = "one of another C++ ABI";
  if (caffe2::GetBuildOptions != nullptr) {
    const auto& options = caffe2::GetBuildOptions();
    const auto version = options.find("TORCH_VERSION");  // such as "2.11.0"
    if (version == options.end() ||
        version->second.compare(0, built_with.size(), built_with) == 0) {
      return {};
    }
    loaded = version->second;
  }
  return join({"expected PyTorch ", built_with, "x, with which this library was built, got ",
               loaded, ", which the process had loaded before; build the library ",
               "with the PyTorch that the program imports"});
}

/// Whether the PyTorch in this process was found to be that of the library. Not a static
/// local variable, whose guard each call would test.
inline std::atomic<bool> is_pytorch_checked{false};

[[gnu::cold, gnu::noinline]] inline void look_at_pytorch(const char* operator_name) {
  const std::string fault = pytorch_fault();
  if (!fault.empty()) {
    raise(Status::kPyTorch, {operator_name, ": ", fault});
  }
  is_pytorch_checked.store(true, std::memory_order_relaxed);
}

/// Throws `Error` if the PyTorch in this process is not the one that the library was built with.
[[gnu::always_inline]] inline void check_pytorch(const char* operator_name) {
  if (!is_pytorch_checked.load(std::memory_order_relaxed)) {
    look_at_pytorch(operator_name);
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_TENSORS_TORCH_H_
