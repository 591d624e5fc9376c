// The one attribute by which an operator of the host says which of PyTorch's operators it is: a
// list of strings, "2:ab0:", of its name with the overload's, of what is to be done ("0" calls it,
// "1/3" its gradient for 3 inputs; see operator_kernels.h), and of a name and a value for each
// attribute. A value is a letter for its type and then
//
//   b1  i-3  f4608083138725491507  stext  B1,0  I2,3  F0,0  S and a list of strings
//
// where a float is the int of its bits, so that every float64 arrives as it was given, whatever the
// locale; and no name clashes with the host's own.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_TEXT_H_
#define ATEN_BRIDGE_OPERATORS_TEXT_H_

#include <aten_bridge.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// What the host calls the attribute.
inline constexpr const char* kOperatorAttribute = "aten_bridge_operator";

/// The attributes in such a text.
class TextAttributes final : public Attributes {
 public:
  /// Throws `Error` if it is none.
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

  /// "0", or "1/3" with a number of inputs; false if the number is none.
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
    constexpr const char* kLetters = "bifsIF--BS--";  // in the order of AttributeType
    const std::string* found = find(name);
    if (found == nullptr || found->empty() ||
        found->front() != kLetters[static_cast<std::size_t>(type)]) {
      return false;
    }
    const char* const text = found->c_str() + 1;
    const auto to_bool = [](int64_t number) { return number != 0; };
    const auto to_int = [](int64_t number) { return number; };
    switch (type) {
      case AttributeType::kBool:
        return read_one(text, *static_cast<bool*>(value), to_bool);
      case AttributeType::kInt:
        return read_one(text, *static_cast<int64_t*>(value), to_int);
      case AttributeType::kFloat:
        return read_one(text, *static_cast<double*>(value), to_float);
      case AttributeType::kString:
        *static_cast<std::string*>(value) = text;
        return true;
      case AttributeType::kBools:
        return read_list(text, *static_cast<std::vector<bool>*>(value), to_bool);
      case AttributeType::kInts:
        return read_list(text, *static_cast<std::vector<int64_t>*>(value), to_int);
      case AttributeType::kFloats:
        return read_list(text, *static_cast<std::vector<double>*>(value), to_float);
      case AttributeType::kStrings:
        return detail::split_strings(text, *static_cast<std::vector<std::string>*>(value));
      case AttributeType::kIntLists:
      case AttributeType::kFloatLists:
      case AttributeType::kNumber:
      case AttributeType::kDtype:
        return false;
    }
    return false;
  }

  /// Of its bits.
  static double to_float(int64_t bits) {
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
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

  template <class T, class Convert>
  static bool read_one(const char* text, T& value, Convert convert) {
    int64_t number = 0;
    const bool is_one = read_int(text, number);
    if (is_one) {
      value = convert(number);
    }
    return is_one;
  }

  /// Numbers between commas; false if there is anything else.
  template <class T, class Convert>
  static bool read_list(const char* text, std::vector<T>& values, Convert convert) {
    std::vector<T> read;
    while (*text != '\0') {
      int64_t number = 0;
      if (!read_int(text, number, &text) || (*text != '\0' && *text != ',')) {
        return false;
      }
      read.push_back(convert(number));
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

#endif  // ATEN_BRIDGE_OPERATORS_TEXT_H_
