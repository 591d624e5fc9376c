// Values: the types that attributes can have, and how one is read.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_KERNEL_VALUES_H_
#define ATEN_BRIDGE_KERNEL_VALUES_H_

#include <aten_bridge/core/attributes.h>
#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/interface/operands.h>
#include <aten_bridge/tensors/torch.h>
#include <aten_bridge/tensors/views.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

template <class>
inline constexpr bool kNever = false;

template <class T>
using Plain = std::remove_cv_t<std::remove_reference_t<T>>;

template <>
struct AttributeTypeOf<at::Scalar> {
  static constexpr AttributeType kType = AttributeType::kNumber;
  static constexpr const char* kText = "a number";
};
template <>
struct AttributeTypeOf<at::ScalarType> {
  static constexpr AttributeType kType = AttributeType::kDtype;
  static constexpr const char* kText = "the name of a dtype, such as \"float32\"";
};

// clang-format off
template <class T> inline constexpr auto kScalarInputType = ScalarInputType::kNone;
template <> inline constexpr auto kScalarInputType<bool> = ScalarInputType::kBool;
template <> inline constexpr auto kScalarInputType<int64_t> = ScalarInputType::kInt;
template <> inline constexpr auto kScalarInputType<double> = ScalarInputType::kReal;
template <> inline constexpr auto kScalarInputType<at::Scalar> = ScalarInputType::kAny;
template <> inline constexpr auto kScalarInputType<at::ScalarType> = ScalarInputType::kDtype;
template <> inline constexpr auto kScalarInputType<std::vector<int64_t>> = ScalarInputType::kInts;
template <> inline constexpr auto kScalarInputType<std::vector<double>> = ScalarInputType::kReals;
// clang-format on

/// A type that attributes, and some that numbers, can be: how it is stored (`Stored`) and handed
/// over
/// (`get`), and what error texts call it.
template <class T, class = void>
struct Value {
  static constexpr bool kSupported = false;
  static constexpr ScalarInputType kNumber = ScalarInputType::kNone;
  using Stored = char;
};
template <class T>
struct Value<T, std::void_t<decltype(AttributeTypeOf<T>::kType)>> : AttributeTypeOf<T> {
  static constexpr bool kSupported = true;
  static constexpr ScalarInputType kNumber = kScalarInputType<T>;
  using Stored = T;
  static const T& get(const T& stored) { return stored; }
};

/// A type that only refers to a value of type T.
template <class View, class T>
struct ViewCaster : Value<T> {
  static View get(const T& stored) { return stored; }
};
template <>
struct Value<std::string_view> : ViewCaster<std::string_view, std::string> {};
template <>
struct Value<at::IntArrayRef> : ViewCaster<at::IntArrayRef, std::vector<int64_t>> {};
template <>
struct Value<at::ArrayRef<double>> : ViewCaster<at::ArrayRef<double>, std::vector<double>> {};

template <class T>
struct Value<std::optional<T>> : Value<T> {
  using Stored = std::optional<typename Value<T>::Stored>;
  static std::optional<T> get(const Stored& stored) {
    return stored.has_value() ? std::optional<T>(Value<T>::get(*stored)) : std::nullopt;
  }
};
template <>
struct Value<at::OptionalIntArrayRef> : Value<std::optional<std::vector<int64_t>>> {
  static at::OptionalIntArrayRef get(const Stored& stored) {
    return stored.has_value() ? at::OptionalIntArrayRef(*stored) : at::OptionalIntArrayRef();
  }
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <>
inline constexpr bool kIsOptional<at::OptionalIntArrayRef> = true;

struct NoDefault {};

/// Default of an attribute: a list, of whatever the attribute has.
struct EmptyList {
  template <class T>
  operator std::vector<T>() const {  // NOLINT(*-explicit-*)
    return {};
  }
};

/// Default of an attribute: a list of bools, of strings, of ints, or of floats.
template <class T>
using DefaultElement = std::conditional_t<
    std::is_same_v<T, bool>, bool,
    std::conditional_t<std::is_convertible_v<T, std::string>, std::string,
                       std::conditional_t<std::is_integral_v<T>, int64_t, double>>>;
template <class T>
using DefaultList = std::vector<DefaultElement<T>>;

/// An aten_bridge::attr option.
template <class Default>
struct Attr {
  const char* name;
  Default fallback;
};

/// Whether an operator must set the attribute.
template <class Stored, class AttrOption>
inline constexpr bool kIsRequired =
    std::is_same_v<AttrOption, Attr<NoDefault>> && !kIsOptional<Stored>;

/// Whether a default fits: no float for an int, no number for a bool.
template <class Stored, class Default>
constexpr bool default_fits() {
  if constexpr (std::is_same_v<Default, NoDefault> || std::is_same_v<Stored, Default>) {
    return true;
  } else if constexpr (kIsOptional<Stored> && !std::is_same_v<Default, std::nullopt_t>) {
    return default_fits<typename Stored::value_type, Default>();
  } else if constexpr (std::is_same_v<Stored, bool>) {
    return std::is_same_v<Default, bool>;
  } else if constexpr (std::is_same_v<Stored, int64_t>) {
    return std::is_integral_v<Default> && !std::is_same_v<Default, bool>;
  } else if constexpr (std::is_same_v<Stored, double>) {
    return std::is_arithmetic_v<Default> && !std::is_same_v<Default, bool>;
  } else {
    return std::is_convertible_v<Default, Stored>;
  }
}

/// What is seen of an attribute.
template <class Stored, class Default>
[[gnu::cold]] void visit_attribute(const Attr<Default>& attr, AttributeVisitor& visitor) {
  AttributeInfo info{attr.name,
                     Value<Stored>::kText,
                     Value<Stored>::kType,
                     kIsOptional<Stored>,
                     kIsRequired<Stored, Attr<Default>>,
                     nullptr};
  if constexpr (std::is_same_v<Default, NoDefault> || std::is_same_v<Default, std::nullopt_t>) {
    visitor.visit(info);
  } else if constexpr (kIsOptional<Stored>) {
    const Stored fallback = attr.fallback;
    info.fallback = fallback.has_value() ? &*fallback : nullptr;
    visitor.visit(info);
  } else {
    const Stored fallback = attr.fallback;
    info.fallback = &fallback;
    visitor.visit(info);
  }
}

template <class T>
bool get_attribute(const Attributes& attributes, const char* name, T& value) {
  return attributes.get(name, value);
}

inline bool get_attribute(const Attributes& attributes, const char* name, at::ScalarType& value) {
  std::string text;
  DType dtype = DType::kNone;
  const bool is_found = attributes.get(name, text) && aten_bridge::find_dtype(text, dtype);
  value = is_found ? scalar_type(dtype) : at::ScalarType::Undefined;
  return value != at::ScalarType::Undefined;
}

inline bool get_attribute(const Attributes& attributes, const char* name, at::Scalar& value) {
  bool flag = false;
  int64_t integer = 0;
  double real = 0;
  if (attributes.get(name, real)) {
    value = real;
  } else if (attributes.get(name, integer)) {
    value = integer;
  } else if (attributes.get(name, flag)) {
    value = flag;
  } else {
    return false;
  }
  return true;
}

template <class T>
bool get_attribute(const Attributes& attributes, const char* name, std::optional<T>& value) {
  T given{};
  const bool found = get_attribute(attributes, name, given);
  value = std::move(given);
  return found;
}

/// The value of an attribute or its default; without either adds to the report.
template <class Stored, class Default>
Stored read_attribute(const Attributes& attributes, const Attr<Default>& attr, Report& report) {
  static_assert(default_fits<Stored, Default>(),
                "aten_bridge: the default of an attribute has the type of its parameter: a number "
                "where that is a double, an integer, a bool, a string, at::kFloat for a dtype, "
                "{1, 2} for a list of ints, {1.0, 2.0} of floats.");
  if (kIsRequired<Stored, Attr<Default>> || attributes.has(attr.name)) {
    Stored value{};
    if (!get_attribute(attributes, attr.name, value)) {
      attributes.add_fault(attr.name, Value<Stored>::kText, report);
    }
    return value;
  }
  if constexpr (std::is_same_v<Default, NoDefault>) {
    return Stored{};
  } else {
    Stored value = attr.fallback;
    return value;
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_KERNEL_VALUES_H_
