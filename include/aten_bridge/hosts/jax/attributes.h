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
  int dtype = 0;  // of scalars and arrays
  const void* data = nullptr;
  std::size_t count = 0;  // of elements, or of characters
  std::size_t bytes = 0;

  bool is_array(int of) const { return type == xla::Attributes::kArray && dtype == of; }
  bool is_scalar(int of) const { return type == xla::Attributes::kScalar && dtype == of; }

  template <class T>
  T scalar() const {
    T value;
    std::memcpy(&value, data, sizeof(value));
    return value;
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
  const xla::Text* name = attributes.names[index];
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
      const auto* text = static_cast<const xla::Text*>(item);
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
    if (index < 0 || !read_value(attributes_, index, value) || !value.is_array(xla::kInt64)) {
      return false;
    }
    values = value.array<int64_t>();
    return true;
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
    switch (type) {
      case AttributeType::kBool:
        return set<bool>(to, value.is_scalar(xla::kBool), [&] { return value.scalar<bool>(); });
      case AttributeType::kInt:
        // JAX 0.10 carries an int of Python's as int64; of NumPy's there are others.
        return set<int64_t>(to, value.is_scalar(xla::kInt64),
                            [&] { return value.scalar<int64_t>(); }) ||
               set<int64_t>(to, value.is_scalar(xla::kInt32),
                            [&] { return value.scalar<std::int32_t>(); });
      case AttributeType::kFloat:
        return set<double>(to, value.is_scalar(xla::kFloat64),
                           [&] { return value.scalar<double>(); }) ||
               set<double>(to, value.is_scalar(xla::kFloat32),
                           [&] { return widen(value.scalar<float>()); });
      case AttributeType::kString:
        return set<std::string>(to, value.type == xla::Attributes::kString,
                                [&] { return text(value); });
      case AttributeType::kStrings:
        return value.type == xla::Attributes::kString &&
               split_strings(text(value), *static_cast<std::vector<std::string>*>(to));
      case AttributeType::kBools:
        // As ints: XLA of jaxlib 0.10 carries no array of bools.
        return !has_rows && value.is_array(xla::kInt64) &&
               to_bools(value.array<int64_t>(), *static_cast<std::vector<bool>*>(to));
      case AttributeType::kInts:
        return set<std::vector<int64_t>>(to, !has_rows && value.is_array(xla::kInt64),
                                         [&] { return value.array<int64_t>(); });
      case AttributeType::kFloats:
        return set<std::vector<double>>(to, !has_rows && value.is_array(xla::kFloat64),
                                        [&] { return value.array<double>(); });
      case AttributeType::kIntLists:
        return has_rows && value.is_array(xla::kInt64) &&
               set_rows(to, value.array<int64_t>(), sizes);
      case AttributeType::kFloatLists:
        return has_rows && value.is_array(xla::kFloat64) &&
               set_rows(to, value.array<double>(), sizes);
      case AttributeType::kNumber:
      case AttributeType::kDtype:
        return false;
    }
    return false;
  }

  static std::string text(const JaxValue& value) {
    return {static_cast<const char*>(value.data), value.count};
  }

  template <class T, class Get>
  static bool set(void* to, bool is_of_type, const Get& get) {
    if (is_of_type) {
      *static_cast<T*>(to) = get();
    }
    return is_of_type;
  }

  /// False if the sizes are not those of rows of these elements.
  template <class T>
  static bool set_rows(void* to, const std::vector<T>& elements,
                       const std::vector<int64_t>& sizes) {
    std::vector<std::vector<T>> rows;
    std::size_t begin = 0;
    for (const int64_t size : sizes) {
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
    *static_cast<std::vector<std::vector<T>>*>(to) = std::move(rows);
    return true;
  }

  const xla::Attributes& attributes_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_JAX_ATTRIBUTES_H_
