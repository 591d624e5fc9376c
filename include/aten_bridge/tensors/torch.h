// PyTorch: its headers, and what differs between its versions. Beside it old_optional.h, the pools
// of device_cuda.h, and two rooms of the PyTorch host ask which version it is.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TENSORS_TORCH_H_
#define ATEN_BRIDGE_TENSORS_TORCH_H_

#include <ATen/core/Tensor.h>
#include <aten_bridge/core/dtypes.h>
#include <aten_bridge/core/errors.h>
#include <torch/csrc/api/include/torch/version.h>

#include <map>
#include <optional>
#include <string>
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

// Not every libtorch has every enumerator: UInt16, UInt32 and UInt64 came with 2.3.
#define ATEN_BRIDGE_SCALAR_TYPE(name)                                              \
  template <class ScalarType>                                                      \
  constexpr auto scalar_type_##name(int)->decltype(ScalarType::name) {             \
    return ScalarType::name;                                                       \
  }                                                                                \
  template <class ScalarType>                                                      \
  constexpr ScalarType scalar_type_##name(long) { /* NOLINT(google-runtime-int) */ \
    return ScalarType::Undefined;                                                  \
  }
ATEN_BRIDGE_SCALAR_TYPE(UInt16)
ATEN_BRIDGE_SCALAR_TYPE(UInt32)
ATEN_BRIDGE_SCALAR_TYPE(UInt64)
#undef ATEN_BRIDGE_SCALAR_TYPE

// In the order of `DType`.
inline constexpr at::ScalarType kScalarTypes[] = {
    at::ScalarType::Undefined,
    at::ScalarType::Bool,
    at::ScalarType::Byte,
    at::ScalarType::Char,
    scalar_type_UInt16<at::ScalarType>(0),
    at::ScalarType::Short,
    scalar_type_UInt32<at::ScalarType>(0),
    at::ScalarType::Int,
    scalar_type_UInt64<at::ScalarType>(0),
    at::ScalarType::Long,
    at::ScalarType::Half,
    at::ScalarType::BFloat16,
    at::ScalarType::Float,
    at::ScalarType::Double,
    at::ScalarType::ComplexFloat,
    at::ScalarType::ComplexDouble,
    at::ScalarType::Float8_e4m3fn,
    at::ScalarType::Float8_e5m2,
};

template <class StorageImpl>
auto forbid_data(StorageImpl* storage, const char* text, int /*preferred*/)
    -> decltype(storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::string())) {
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(std::string(text));
}
// Older ones of PyTorch have a text of their own, 2.1 has none and crashes.
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
[[gnu::cold]] inline std::string pytorch_fault() {
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

/// Throws `Error` if the PyTorch in this process is not the one that the library was built with.
[[gnu::always_inline]] inline void check_pytorch(const char* operator_name) {
  static const std::string fault = pytorch_fault();
  if (!fault.empty()) {
    raise(Status::kAten, {operator_name, ": ", fault});
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_TENSORS_TORCH_H_
