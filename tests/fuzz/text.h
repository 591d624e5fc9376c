// Values as text: what a kernel was given, and what it has to be given.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_TEXT_H_
#define ATEN_BRIDGE_TESTS_FUZZ_TEXT_H_

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fuzz {

inline constexpr int64_t kTextBytes = 1024;  // size of the tensor that a kernel writes its text to

/// The double of the shortest decimal; beyond the largest bfloat16 the same number.
inline double widened(float value) {
  char text[64];
  *std::to_chars(text, text + sizeof(text) - 1, value, std::chars_format::scientific).ptr = '\0';
  return std::abs(value) >= 3.3895314e38F ? value : std::strtod(text, nullptr);
}

template <class T>
std::string value_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.17g", static_cast<double>(value));
    return text;
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    return '"' + std::string(value) + '"';
  } else {
    std::string text = "[";
    for (std::size_t i = 0; i < value.size(); ++i) {
      text.append(i == 0 ? "" : ", ").append(value_text(typename T::value_type(value[i])));
    }
    return text + "]";
  }
}

/// A list of strings as the text of an attribute: each behind its length.
inline std::string list_text(const std::vector<std::string>& strings) {
  std::string text;
  for (const std::string& string : strings) {
    text += std::to_string(string.size()) + ':' + string;
  }
  return text;
}

}  // namespace fuzz

#endif  // ATEN_BRIDGE_TESTS_FUZZ_TEXT_H_
