// Attributes as XLA brings them, with what aten_bridge.jax, the Python module, adds to them.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_JAX_ATTRIBUTES_H_
#define ATEN_BRIDGE_HOSTS_JAX_ATTRIBUTES_H_

#include <aten_bridge/core/attributes.h>
#include <aten_bridge/hosts/jax/abi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

// XLA has no None among its operands. The module leaves them out, and says in this attribute, a
// list of ints, which inputs they are.
inline constexpr std::string_view kNoneAttribute = "aten_bridge_none";

// XLA has no lists of lists: the module passes their elements in one, and in an attribute whose
// name begins with this how many each has.
inline constexpr std::string_view kRowsPrefix = "aten_bridge_rows_";

/// One attribute's value, as it lies in XLA's memory.
struct JaxValue {
  int type = 0;
  int dtype = 0;  // for scalars and arrays
  const void* data = nullptr;
  std::size_t count = 0;  // how many elements, or characters
  std::size_t bytes = 0;

  bool is_array(int number) const { return type == xla::Attributes::kArray && dtype == number; }
  bool is_scalar(int number) const { return type == xla::Attributes::kScalar && dtype == number; }

  /// Reads a scalar of that dtype, which is a T in C++; false if it is not one.
  template <class T, class To>
  bool read(int number, To& to) const {
    if (!is_scalar(number)) {
      return false;
    }
    T value;
    std::memcpy(&value, data, sizeof(value));
    to = value;
    return true;
  }

  template <class T>
  std::vector<T> array() const {
    std::vector<T> values(count);
    if (bytes != 0) {
      std::memcpy(values.data(), data, bytes);
    }
    return values;
  }
};

inline std::string_view name_of(const xla::Attributes& attributes, int64_t index) {
  const xla::ByteSpan* name = attributes.names[index];
  return name == nullptr || name->data == nullptr ? std::string_view()
                                                  : std::string_view(name->data, name->size);
}

/// Whether there is a value that can be looked at, which goes to `value`.
inline bool read_value(const xla::Attributes& attributes, int64_t index, JaxValue& value) {
  const void* const item = attributes.items[index];
  value.type = attributes.types[index];
  if (item == nullptr) {
    return false;
  }
  switch (value.type) {
    case xla::Attributes::kScalar: {
      const auto* scalar = static_cast<const xla::Scalar*>(item);
      value.dtype = scalar->dtype;
      value.data = scalar->value;
      value.count = 1;
      break;
    }
    case xla::Attributes::kArray: {
      const auto* array = static_cast<const xla::Array*>(item);
      value.dtype = array->dtype;
      value.data = array->data;
      value.count = array->size;
      break;
    }
    case xla::Attributes::kString: {
      const auto* text = static_cast<const xla::ByteSpan*>(item);
      value.dtype = 0;
      value.data = text->data;
      value.count = value.bytes = text->size;
      return value.data != nullptr || value.count == 0;
    }
    default:  // dictionaries
      return false;
  }
  const std::size_t itemsize = dtype_itemsize(xla::dtype_of(value.dtype));
  return itemsize != 0 && !__builtin_mul_overflow(value.count, itemsize, &value.bytes) &&
         (value.data != nullptr || value.count == 0);
}

/// The attributes of a call, whose arrays are there.
class JaxAttributes final : public Attributes {
 public:
  explicit JaxAttributes(const xla::Attributes& attributes) : attributes_(attributes) {}

  bool has(const char* name) const override { return find(name) >= 0; }
  std::string advice(const char* name) const override {
    return join({"give it where the operator is made, as in kernel(..., ", name, "=...)"});
  }

  int64_t find(std::string_view name) const {
    for (int64_t i = 0; i < attributes_.size; ++i) {
      if (name_of(attributes_, i) == name) {
        return i;
      }
    }
    return -1;
  }

  /// A list of ints; false if there is none of that name.
  [[gnu::cold]] bool ints(std::string_view name, std::vector<int64_t>& values) const {
    JaxValue value;
    const int64_t index = find(name);
    return index >= 0 && read_value(attributes_, index, value) &&
           read_array(value, xla::kInt64, values);
  }

 private:
  [[gnu::cold]] bool get_as(AttributeType type, const char* name, void* to) const override {
    JaxValue value;
    const int64_t index = find(name);
    if (index < 0 || !read_value(attributes_, index, value)) {
      return false;
    }
    std::vector<int64_t> sizes;
    const bool has_rows = ints(std::string(kRowsPrefix) + name, sizes);
    return visit_attribute_type(
        type, to, [&](auto* typed) { return read(value, has_rows ? &sizes : nullptr, *typed); });
  }

  using Rows = const std::vector<int64_t>*;  // how many elements each has; null: there are none

  static bool read(const JaxValue& value, Rows /*rows*/, bool& to) {
    return value.read<bool>(xla::kBool, to);
  }
  // JAX 0.10 carries an int of Python's as int64; of NumPy's there are others.
  static bool read(const JaxValue& value, Rows /*rows*/, int64_t& to) {
    return value.read<int64_t>(xla::kInt64, to) || value.read<std::int32_t>(xla::kInt32, to);
  }
  static bool read(const JaxValue& value, Rows /*rows*/, double& to) {
    float narrow = 0;
    const bool is_narrow = value.read<float>(xla::kFloat32, narrow);
    to = is_narrow ? widen(narrow) : to;
    return is_narrow || value.read<double>(xla::kFloat64, to);
  }
  static bool read(const JaxValue& value, Rows /*rows*/, std::string& to) {
    const bool is_text = value.type == xla::Attributes::kString;
    if (is_text) {
      to.assign(static_cast<const char*>(value.data), value.count);
    }
    return is_text;
  }
  static bool read(const JaxValue& value, Rows rows, std::vector<std::string>& to) {
    std::string text;
    return read(value, rows, text) && split_strings(text, to);
  }
  // As ints: XLA of jaxlib 0.10 carries no array of bools.
  static bool read(const JaxValue& value, Rows rows, std::vector<bool>& to) {
    std::vector<int64_t> integers;
    return read(value, rows, integers) && to_bools(integers, to);
  }
  static bool read(const JaxValue& value, Rows rows, std::vector<int64_t>& to) {
    return rows == nullptr && read_array(value, xla::kInt64, to);
  }
  static bool read(const JaxValue& value, Rows rows, std::vector<double>& to) {
    return rows == nullptr && read_array(value, xla::kFloat64, to);
  }

  template <class T>
  static bool read_array(const JaxValue& value, int dtype, std::vector<T>& to) {
    const bool is_array = value.is_array(dtype);
    if (is_array) {
      to = value.array<T>();
    }
    return is_array;
  }

  /// False if the sizes are not those of rows of these elements.
  template <class T>
  static bool read(const JaxValue& value, Rows sizes, std::vector<std::vector<T>>& to) {
    std::vector<T> elements;
    if (sizes == nullptr || !read(value, nullptr, elements)) {
      return false;
    }
    std::vector<std::vector<T>> rows;
    std::size_t begin = 0;
    for (const int64_t size : *sizes) {
      if (size < 0 || static_cast<std::size_t>(size) > elements.size() - begin) {
        return false;
      }
      const auto first = elements.begin() + static_cast<std::ptrdiff_t>(begin);
      rows.emplace_back(first, first + size);
      begin += static_cast<std::size_t>(size);
    }
    if (begin != elements.size()) {
      return false;
    }
    to = std::move(rows);
    return true;
  }

  const xla::Attributes& attributes_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_JAX_ATTRIBUTES_H_
