// The one attribute by which an operator of the host says which of PyTorch's operators it is.
//
// It is a list of strings, "2:ab0:", of its name with the overload's, of what is to be done ("0"
// calls it, "1/3" its gradient for 3 inputs; see operator_kernels.h), and of a name and a value for
// each attribute. A value is a letter for its type and then
//
//   b1  i-3  f4608083138725491507  stext  B1,0  I2,3  F0,0  S and a list of strings
//
// where a float is the int of its bits, so that every float64 arrives as it was given, whatever the
// locale; and no name clashes with the host's own.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_OPERATOR_TEXT_H_
#define ATEN_BRIDGE_OPERATORS_OPERATOR_TEXT_H_

#include <aten_bridge.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// What the host calls the attribute.
inline constexpr const char* kOperatorAttribute = "aten_bridge_operator";

/// The attributes in such a text.
class TextAttributes final : public Attributes {
 public:
  /// Throws `Error` if it is not one.
  explicit TextAttributes(const std::string& text) {
    std::vector<std::string> parts;
    if (!detail::split_strings(text, parts) || parts.size() < 2 || parts.size() % 2 != 0 ||
        !read_task(parts[1]) || parts[0].find('\0') != std::string::npos) {  // errors end at NUL
      detail::raise(Status::kAttribute,
                    {"AtenOperator: expected the attribute '", kOperatorAttribute,
                     "' as operator() of aten_bridge.mindspore and of aten_bridge.jax writes it, ",
                     "got '", text, "'; make the operator with it"});
    }
    name_ = std::move(parts[0]);
    for (std::size_t i = 2; i < parts.size(); i += 2) {
      values_.emplace_back(std::move(parts[i]), std::move(parts[i + 1]));
    }
  }

  const std::string& name() const { return name_; }  ///< "aten::max.dim"
  const std::string& task() const { return task_; }  ///< without the number of inputs
  int inputs() const { return inputs_; }             ///< -1: not told

  bool has(const char* name) const override { return find(name) != nullptr; }
  std::string advice(const char* name) const override {
    return detail::join(
        {"give it where the operator is made, as in operator(\"", name_, "\", ", name, "=...)"});
  }

 private:
  static constexpr int64_t kMostInputs = 1 << 20;

  /// "0", or "1/3" with a number of inputs; false if the number is not one.
  bool read_task(const std::string& text) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    task_ = text.substr(0, slash);
    if (slash == text.size()) {
      return true;
    }
    int64_t inputs = -1;
    if (!read_int(text.c_str() + slash + 1, inputs) || inputs < 0 || inputs > kMostInputs) {
      return false;
    }
    inputs_ = static_cast<int>(inputs);
    return true;
  }

  const std::string* find(const char* name) const {
    for (const auto& [given, value] : values_) {
      if (given == name) {
        return &value;
      }
    }
    return nullptr;
  }

  bool get_as(AttributeType type, const char* name, void* value) const override {
    const std::string* found = find(name);
    return found != nullptr &&
           detail::visit_attribute_type(type, value, [&](auto* to) { return read(*found, *to); });
  }

  static bool read(const std::string& text, bool& to) { return read_one(text, 'b', to); }
  static bool read(const std::string& text, int64_t& to) { return read_one(text, 'i', to); }
  static bool read(const std::string& text, double& to) { return read_one(text, 'f', to); }
  static bool read(const std::string& text, std::string& to) {
    const bool is_text = text[0] == 's';
    if (is_text) {
      to = text.c_str() + 1;
    }
    return is_text;
  }
  static bool read(const std::string& text, std::vector<bool>& to) {
    return read_list(text, 'B', to);
  }
  static bool read(const std::string& text, std::vector<int64_t>& to) {
    return read_list(text, 'I', to);
  }
  static bool read(const std::string& text, std::vector<double>& to) {
    return read_list(text, 'F', to);
  }
  static bool read(const std::string& text, std::vector<std::string>& to) {
    return text[0] == 'S' && detail::split_strings(text.c_str() + 1, to);
  }
  // No argument of an operator is a list of lists.
  template <class T>
  static bool read(const std::string& /*text*/, std::vector<std::vector<T>>& /*to*/) {
    return false;
  }

  /// A float is the int of its bits.
  template <class T>
  static T from_int(int64_t number) {
    if constexpr (std::is_same_v<T, double>) {
      double value = 0;
      std::memcpy(&value, &number, sizeof(value));
      return value;
    } else {
      return static_cast<T>(number);
    }
  }

  /// An int that ends at `end`, or with the text; false if there is none.
  static bool read_int(const char* text, int64_t& value, const char** end = nullptr) {
    char* stop = nullptr;
    errno = 0;
    value = std::strtoll(text, &stop, 10);
    const bool is_one = stop != text && errno == 0 && (end != nullptr || *stop == '\0');
    if (end != nullptr) {
      *end = stop;
    }
    return is_one;
  }

  template <class T>
  static bool read_one(const std::string& text, char letter, T& value) {
    int64_t number = 0;
    const bool is_one = text[0] == letter && read_int(text.c_str() + 1, number);
    value = is_one ? from_int<T>(number) : value;
    return is_one;
  }

  /// Numbers between commas; false if there is anything else.
  template <class T>
  static bool read_list(const std::string& list, char letter, std::vector<T>& values) {
    if (list[0] != letter) {
      return false;
    }
    std::vector<T> read;
    for (const char* text = list.c_str() + 1; *text != '\0';) {
      int64_t number = 0;
      if (!read_int(text, number, &text) || (*text != '\0' && *text != ',')) {
        return false;
      }
      read.push_back(from_int<T>(number));
      if (*text == ',' && *++text == '\0') {
        return false;
      }
    }
    values = std::move(read);
    return true;
  }

  std::string name_;
  std::string task_;
  int inputs_ = -1;
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_OPERATOR_TEXT_H_
