// What MindSpore's ops.Custom keeps for an operator: its attributes, and the kernel's own.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_EXTRA_H_
#define ATEN_BRIDGE_TESTS_FUZZ_EXTRA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "operand.h"
#include "text.h"

namespace fuzz {

using Floats = std::vector<float>;
/// In the order of the Python module's numbers.
using Attribute = std::variant<bool, int64_t, float, std::string, Ints, Floats, std::vector<Ints>,
                               std::vector<Floats>, std::vector<bool>, std::vector<std::string>>;

struct AotExtra {  // by the order of its virtual functions, from MindSpore 2.10
  virtual ~AotExtra() = default;
  virtual bool has(std::string name) = 0;
  virtual bool get_bool(std::string name) = 0;
  virtual int64_t get_int(std::string name) = 0;
  virtual float get_float(std::string name) = 0;
  virtual std::string get_string(std::string name) = 0;
  virtual Ints get_ints(std::string name) = 0;
  virtual Floats get_floats(std::string name) = 0;
  virtual std::vector<Ints> get_int_lists(std::string name) = 0;
  virtual std::vector<Floats> get_float_lists(std::string name) = 0;
  std::vector<std::size_t> workspaces;
  void* kernel_data = nullptr;
};
struct KernelData {
  virtual ~KernelData() = default;
};

class Extra final : public AotExtra {
 public:
  // no_sanitize: its class is the kernel's.
  __attribute__((no_sanitize("vptr"))) ~Extra() override {
    delete static_cast<KernelData*>(kernel_data);
  }
  Extra() = default;
  Extra(const Extra&) = delete;
  Extra& operator=(const Extra&) = delete;

  std::map<std::string, Attribute> attributes;

  /// The attribute if it is there and of the type; null elsewhere.
  template <class T>
  const T* find(const std::string& name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? nullptr : std::get_if<T>(&found->second);
  }
  template <class T>
  T value_or(const std::string& name, T other) const {
    const T* found = find<T>(name);
    return found == nullptr ? other : *found;
  }
  /// Whether it is there with another type than T.
  template <class T>
  bool is_other(const std::string& name) const {
    return attributes.count(name) > 0 && find<T>(name) == nullptr;
  }

  bool has(std::string name) override { return attributes.count(name) > 0; }
  bool get_bool(std::string name) override { return of<bool>(name); }
  int64_t get_int(std::string name) override { return of<int64_t>(name); }
  float get_float(std::string name) override { return of<float>(name); }
  Floats get_floats(std::string name) override { return of<Floats>(name); }
  std::vector<Ints> get_int_lists(std::string name) override { return of<std::vector<Ints>>(name); }
  std::vector<Floats> get_float_lists(std::string name) override {
    return of<std::vector<Floats>>(name);
  }
  // MindSpore has no lists of bools or strings: the Python module makes others of them.
  Ints get_ints(std::string name) override {
    if (const auto* bools = find<std::vector<bool>>(name)) {
      return {bools->begin(), bools->end()};
    }
    return of<Ints>(name);
  }
  std::string get_string(std::string name) override {
    if (const auto* strings = find<std::vector<std::string>>(name)) {
      return list_text(*strings);
    }
    return of<std::string>(name);
  }

 private:
  template <class T>
  const T& of(const std::string& name) const {
    if (const T* found = find<T>(name)) {
      return *found;
    }
    throw std::runtime_error("no such attribute");
  }
};

}  // namespace fuzz

#endif  // ATEN_BRIDGE_TESTS_FUZZ_EXTRA_H_
