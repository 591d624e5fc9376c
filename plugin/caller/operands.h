// What a call is made with: dtypes, and the shapes, dtypes and values of its inputs.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_OPERANDS_H_
#define ATEN_BRIDGE_CALLER_OPERANDS_H_

#include <include/utils/tensor_py.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace aten_bridge::caller {

namespace py = pybind11;
using mindspore::TypeId;
using mindspore::tensor::TensorPtr;

/// The bridge's names of dtypes, and MindSpore's numbers.
struct NamedType {
  TypeId id;
  const char* name;
};

inline constexpr std::array kTypes = {
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

/// The name of a dtype; null for one that kernels lack.
inline const char* type_name(TypeId id) {
  for (const NamedType& type : kTypes) {
    if (type.id == id) {
      return type.name;
    }
  }
  return nullptr;
}

inline TypeId type_of_name(const std::string& name) {
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

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_OPERANDS_H_
