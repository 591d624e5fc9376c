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
    if (!detail::split_strings(text, parts) || parts.size() < 2 || parts.size() % 2 != 0) {
      throw Error(Status::kAttribute,
                  detail::join({"expected the attribute '", kOperatorAttribute,
                                "' as aten_bridge.mindspore.operator() writes it, got '", text,
                                "'; make the operator with it"}));
    }
    name_ = parts[0];
    const std::size_t slash = std::min(parts[1].find('/'), parts[1].size());
    task_ = parts[1].substr(0, slash);
    if (slash < parts[1].size()) {
      inputs_ = std::atoi(parts[1].c_str() + slash + 1);  // NOLINT(cert-err34-c): anything will do
    }
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
    if (found == nullptr || found->front() != kLetters[static_cast<std::size_t>(type)]) {
      return false;
    }
    const char* const text = found->c_str() + 1;
    switch (type) {
      case AttributeType::kBool:
        *static_cast<bool*>(value) = *text == '1';
        break;
      case AttributeType::kInt:
        *static_cast<int64_t*>(value) = std::strtoll(text, nullptr, 10);
        break;
      case AttributeType::kFloat:
        *static_cast<double*>(value) = read_float(text, nullptr);
        break;
      case AttributeType::kString:
        *static_cast<std::string*>(value) = text;
        break;
      case AttributeType::kBools:
        read(text, *static_cast<std::vector<bool>*>(value),
             [](const char* begin, char** end) { return std::strtol(begin, end, 10) != 0; });
        break;
      case AttributeType::kInts:
        read(text, *static_cast<std::vector<int64_t>*>(value),
             [](const char* begin, char** end) { return std::strtoll(begin, end, 10); });
        break;
      case AttributeType::kFloats:
        read(text, *static_cast<std::vector<double>*>(value),
             [](const char* begin, char** end) { return read_float(begin, end); });
        break;
      case AttributeType::kStrings:
        return detail::split_strings(text, *static_cast<std::vector<std::string>*>(value));
      case AttributeType::kIntLists:
      case AttributeType::kFloatLists:
      case AttributeType::kNumber:
      case AttributeType::kDtype:
        return false;
    }
    return true;
  }

  static double read_float(const char* text, char** end) {
    const int64_t bits = std::strtoll(text, end, 10);
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

  /// Reads numbers between commas, as far as they are some.
  template <class T, class Read>
  static void read(const char* text, std::vector<T>& values, Read read_one) {
    values.clear();
    for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
      const T value = read_one(text, &end);
      if (end == text) {
        return;
      }
      values.push_back(value);
    }
  }

  std::string name_;
  std::string task_;
  int inputs_ = -1;
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_TEXT_H_
