// Attributes: where their values come from, and what error texts call them.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CORE_ATTRIBUTES_H_
#define ATEN_BRIDGE_CORE_ATTRIBUTES_H_

#include <aten_bridge/core/errors.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

// The one list of what a host can have as an attribute, in the order of its numbers, which the
// Python module has too: the enumerator, the type in C++, and what error texts call it.
#define ATEN_BRIDGE_ATTRIBUTE_TYPES(X)                                       \
  X(kBool, bool, "a bool")                                                   \
  X(kInt, int64_t, "an int")                                                 \
  X(kFloat, double, "a float, such as 1.0")                                  \
  X(kString, std::string, "a str")                                           \
  X(kInts, std::vector<int64_t>, "a list of ints")                           \
  X(kFloats, std::vector<double>, "a list of floats, such as [1.0, 2.0]")    \
  X(kIntLists, std::vector<std::vector<int64_t>>, "a list of lists of ints") \
  X(kFloatLists, std::vector<std::vector<double>>,                           \
    "a list of lists of floats, such as [[1.0], [2.0, 3.0]]")                \
  X(kBools, std::vector<bool>, "a list of bools")                            \
  X(kStrings, std::vector<std::string>, "a list of strs")

#define ATEN_BRIDGE_ATTRIBUTE_TYPE(type, T, text) type,
/// What an attribute can be: kBool, kInt, kFloat, kString, kInts, kFloats, kIntLists, kFloatLists,
/// kBools, kStrings, and two types of parameters alone: a host has an at::Scalar, kNumber, as one
/// of the first three, and an at::ScalarType, kDtype, as its name.
enum class AttributeType : std::uint8_t {
  ATEN_BRIDGE_ATTRIBUTE_TYPES(ATEN_BRIDGE_ATTRIBUTE_TYPE) kNumber,
  kDtype
};
#undef ATEN_BRIDGE_ATTRIBUTE_TYPE

namespace detail {

/// What is known of an attribute's type; not defined for others.
template <class T>
struct AttributeTypeOf;

#define ATEN_BRIDGE_ATTRIBUTE_TYPE(type, T, text)               \
  template <>                                                   \
  struct AttributeTypeOf<T> {                                   \
    static constexpr AttributeType kType = AttributeType::type; \
    static constexpr const char* kText = text;                  \
  };
ATEN_BRIDGE_ATTRIBUTE_TYPES(ATEN_BRIDGE_ATTRIBUTE_TYPE)
#undef ATEN_BRIDGE_ATTRIBUTE_TYPE

/// Calls `visitor` with `value`, which may be null, as a pointer to that type, and returns what it
/// does; for kNumber and kDtype, which no host has, what its result is by default.
template <class Void, class Visitor>
[[gnu::cold]] auto visit_attribute_type(AttributeType type, Void* value, const Visitor& visitor) {
  switch (type) {
#define ATEN_BRIDGE_ATTRIBUTE_TYPE(type, T, text) \
  case AttributeType::type:                       \
    return visitor(static_cast<std::conditional_t<std::is_const_v<Void>, const T, T>*>(value));
    ATEN_BRIDGE_ATTRIBUTE_TYPES(ATEN_BRIDGE_ATTRIBUTE_TYPE)
#undef ATEN_BRIDGE_ATTRIBUTE_TYPE
    case AttributeType::kNumber:
    case AttributeType::kDtype:
      break;
  }
  return decltype(visitor(static_cast<bool*>(nullptr))){};
}

}  // namespace detail

/// Where the values of a kernel's attributes come from: an interface between the hosts and all that
/// stands below.
class Attributes {
 public:
  virtual ~Attributes() = default;
  virtual bool has(const char* name) const = 0;

  /// What error texts say of one that is not there: how an operator gets it.
  virtual std::string advice(const char* name) const = 0;

  /// Adds to the report that an attribute is not there, or not what was `expected`. Virtual so that
  /// a kernel's object has no copy of it: 6.8 KB (leaky_relu.cpp, g++ 12, -O3).
  virtual inline void add_fault(const char* name, const char* expected, Report& report) const;

  /// Returns false, and leaves `value` alone, if the attribute is not there or of another type:
  /// hosts convert nothing, and neither does the bridge.
  template <class T>
  bool get(const char* name, T& value) const {
    return get_as(detail::AttributeTypeOf<T>::kType, name, &value);
  }

 private:
  /// The same for a value of that type, as visit_attribute_type() has it.
  virtual bool get_as(AttributeType type, const char* name, void* value) const = 0;
};

}  // namespace aten_bridge

namespace aten_bridge::detail {

/// The double that the shortest decimal for `value` names (of subnormals one of 6 digits): 0.01 for
/// 0.01f, not 0.00999999977648. Never beyond the largest number of a dtype that `value` is.
inline double widen(float value) {
  // The shortest decimals of the largest bfloat16 and float32 lie beyond them.
  if (std::fabs(value) >= 0x1.fep127F) {
    return value;
  }
  // No two decimals of up to 6 digits are one float. What people write is found here, in 3 ns
  // instead of 140 by text; quotients of such whole numbers are what strtod() gives.
  for (const double scale : {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6}) {
    const double whole = std::nearbyint(value * scale);
    if (std::fabs(whole) < 1e6 && static_cast<float>(whole / scale) == value) {
      return whole / scale;
    }
  }
  char text[32];
  for (int digits = 6;; ++digits) {  // 9 name every float
    std::snprintf(text, sizeof(text), "%.*g", digits, static_cast<double>(value));
    if (digits == 9 || std::strtof(text, nullptr) == value) {
      return std::strtod(text, nullptr);
    }
  }
}

template <class T>
[[gnu::cold]] auto widen(const std::vector<T>& values) {
  std::vector<decltype(widen(values[0]))> wide(values.size());
  std::transform(values.begin(), values.end(), wide.begin(),
                 [](const T& value) { return widen(value); });
  return wide;
}

/// Takes a list of bools out of one of ints. False if an int is not a bool.
[[gnu::cold]] inline bool to_bools(const std::vector<int64_t>& integers, std::vector<bool>& value) {
  std::vector<bool> bools(integers.size());
  for (std::size_t i = 0; i < bools.size(); ++i) {
    if (integers[i] != 0 && integers[i] != 1) {
      return false;
    }
    bools[i] = integers[i] == 1;
  }
  value = std::move(bools);
  return true;
}

/// Takes a list of strings out of one, in which each has its length before it: "2:ab0:" is "ab" and
/// "". False if it is not one.
[[gnu::cold]] inline bool split_strings(const std::string& text,
                                        std::vector<std::string>& strings) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t colon = text.find_first_not_of("0123456789", begin);
    if (colon == std::string::npos || text[colon] != ':' || colon == begin || colon - begin > 9) {
      return false;
    }
    const std::size_t length = std::strtoul(text.c_str() + begin, nullptr, 10);
    if (length > text.size() - colon - 1) {
      return false;
    }
    parts.push_back(text.substr(colon + 1, length));
    begin = colon + 1 + length;
  }
  strings = std::move(parts);
  return true;
}

inline void append_value(std::string& text, bool value) { text += value ? "True" : "False"; }
inline void append_value(std::string& text, int64_t value) { text += join({value}); }
inline void append_value(std::string& text, double value) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.9g", value);
  text += digits;
}
inline void append_value(std::string& text, const std::string& value) {
  text += join({"\"", value, "\""});
}
template <class T>
[[gnu::cold, gnu::noinline]] void append_value(std::string& text, const std::vector<T>& values) {
  text += '[';
  for (const T& value : values) {
    text += text.back() == '[' ? "" : ", ";
    append_value(text, value);
  }
  text += ']';
}

/// "the int " of "an int, which ...".
[[gnu::cold, gnu::noinline]] inline std::string the_type(std::string_view called) {
  called.remove_prefix(called.find(' '));  // the article
  return join({"the", called.substr(0, called.find(',')), " "});
}

/// What an attribute is, for error texts: "the int 1", "the list of floats [0.5, 1]".
[[gnu::cold]] inline std::string attribute_text(const Attributes& attributes, const char* name) {
  const char* type = nullptr;
  std::string text;
  const auto append_if = [&](auto value, const char* called) {
    // Few hosts tell bools and strs in a list from other values.
    if constexpr (!std::is_same_v<decltype(value), std::vector<bool>> &&
                  !std::is_same_v<decltype(value), std::vector<std::string>>) {
      if (type == nullptr && attributes.get(name, value)) {
        type = called;
        append_value(text, value);
      }
    }
  };
#define ATEN_BRIDGE_ATTRIBUTE_TYPE(type, T, called) append_if(T(), called);
  ATEN_BRIDGE_ATTRIBUTE_TYPES(ATEN_BRIDGE_ATTRIBUTE_TYPE)
#undef ATEN_BRIDGE_ATTRIBUTE_TYPE
  return type == nullptr
             ? "something that is none of bool, int, float, str, and lists of ints or of floats"
             : the_type(type) + text;
}

}  // namespace aten_bridge::detail

[[gnu::cold]] inline void aten_bridge::Attributes::add_fault(const char* name, const char* expected,
                                                             Report& report) const {
  if (has(name)) {
    report.add_attribute(name, {expected, detail::kGot, detail::attribute_text(*this, name)});
  } else {
    report.add_attribute(name, {expected, detail::kGot, "nothing", detail::kDo, advice(name)});
  }
}

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CORE_ATTRIBUTES_H_
