// Instances: what a kernel keeps for each set of attributes, as PyTorch's dispatcher brings them.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_INSTANCES_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_INSTANCES_H_

#include <ATen/core/ivalue.h>
#include <aten_bridge/call/instance_cache.h>
#include <aten_bridge/hosts/pytorch/schema.h>
#include <aten_bridge/interface/kernel_base.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The attributes of a call: arguments of an operator, in the order of its schema.
class StackAttributes final : public Attributes {
 public:
  StackAttributes(const std::vector<SchemaAttribute>& attributes, const c10::IValue* values)
      : attributes_(attributes), values_(values) {}

  bool has(const char* name) const override {
    const c10::IValue* value = find(name).first;
    return value != nullptr && !value->isNone();
  }
  std::string advice(const char* name) const override {
    return join({"pass ", name, "= in the call"});
  }

 private:
  [[gnu::cold]] std::pair<const c10::IValue*, AttributeType> find(const char* name) const {
    for (std::size_t i = 0; i < attributes_.size(); ++i) {
      if (attributes_[i].name == name) {
        return {&values_[i], attributes_[i].type};
      }
    }
    return {nullptr, AttributeType::kBool};
  }

  [[gnu::cold]] bool get_as(AttributeType type, const char* name, void* value) const override {
    const auto [given, declared] = find(name);
    if (given == nullptr) {
      return false;
    }
    const c10::IValue& v = *given;
    if (declared == AttributeType::kDtype && type == AttributeType::kString && v.isInt()) {
      const int64_t number = v.toInt();  // PyTorch takes any int for a dtype
      if (number < 0 || number >= static_cast<int64_t>(at::ScalarType::NumOptions)) {
        return false;
      }
      *static_cast<std::string*>(value) = scalar_type_text(static_cast<at::ScalarType>(number));
      return true;
    }
    return visit_attribute_type(type, value, [&](auto* to) {
      const bool is_of_type = is_of(v, to);
      if (is_of_type) {
        *to = v.to<std::remove_pointer_t<decltype(to)>>();
      }
      return is_of_type;
    });
  }

  static bool is_of(const c10::IValue& v, const bool*) { return v.isBool(); }
  static bool is_of(const c10::IValue& v, const int64_t*) { return v.isInt(); }
  static bool is_of(const c10::IValue& v, const double*) { return v.isDouble(); }
  static bool is_of(const c10::IValue& v, const std::string*) { return v.isString(); }
  static bool is_of(const c10::IValue& v, const std::vector<bool>*) { return v.isBoolList(); }
  static bool is_of(const c10::IValue& v, const std::vector<int64_t>*) { return v.isIntList(); }
  static bool is_of(const c10::IValue& v, const std::vector<double>*) { return v.isDoubleList(); }
  template <class T>
  static bool is_of(const c10::IValue& v, const std::vector<T>*) {
    if (!v.isList()) {
      return false;
    }
    const auto& list = v.toListRef();
    return std::all_of(list.begin(), list.end(), [](const c10::IValue& element) {
      return is_of(element, static_cast<T*>(nullptr));
    });
  }

  const std::vector<SchemaAttribute>& attributes_;
  const c10::IValue* values_;
};

inline bool is_same_other(const c10::IValue& a, const c10::IValue& b);

/// Whether two values of an attribute are the same, floats to the bit.
[[gnu::always_inline]] inline bool is_same_value(const c10::IValue& a, const c10::IValue& b) {
  if (a.isDouble() && b.isDouble()) {
    const double x = a.toDouble();
    const double y = b.toDouble();
    return std::memcmp(&x, &y, sizeof(double)) == 0;  // NOLINT: to the bit
  }
  if (a.isInt() && b.isInt()) {
    return a.toInt() == b.toInt();
  }
  return is_same_other(a, b);
}

inline bool is_same_other(const c10::IValue& a, const c10::IValue& b) {
  if (a.isList() && b.isList()) {
    const auto& x = a.toListRef();
    const auto& y = b.toListRef();
    if (x.empty() && y.empty()) {  // a list of floats is not one of ints
      return *a.toList().elementType() == *b.toList().elementType();
    }
    // A lambda, since what is always inlined has no address for every optimisation to call.
    const auto is_same = [](const auto& one, const auto& other) {
      return is_same_value(one, other);
    };
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), is_same);
  }
  return a.tagKind() == b.tagKind() && (a.isNone() || a == b);
}

/// The values of one set of attributes, and what is kept for it.
struct PyTorchCacheEntry : InstanceCacheEntry<PyTorchCacheEntry> {
  std::vector<c10::IValue> values;

  [[gnu::always_inline]] bool is_of(const c10::IValue* others) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!is_same_value(values[i], others[i])) {
        return false;
      }
    }
    return true;
  }
};

/// An operator's instances.
class PyTorchInstances {
 public:
  /// The one for these attributes, of which `owner` has a share where it is not kept for good; of a
  /// kernel without attributes and state, null.
  [[gnu::always_inline]] Instance* of(const KernelBase& kernel,
                                      const std::vector<SchemaAttribute>& attributes,
                                      const c10::IValue* values,
                                      std::shared_ptr<const PyTorchCacheEntry>& owner) {
    if (!kernel.info.has_instance) {
      return nullptr;
    }
    const PyTorchCacheEntry* const kept = cache_.find(values);
    return kept != nullptr ? kept->instance.get() : make(kernel, attributes, values, owner);
  }

 private:
  [[gnu::cold, gnu::noinline]] Instance* make(const KernelBase& kernel,
                                              const std::vector<SchemaAttribute>& attributes,
                                              const c10::IValue* values,
                                              std::shared_ptr<const PyTorchCacheEntry>& owner) {
    owner = cache_.find_or_make(values, kernel.info.has_state, [&] {
      Report report(kernel.info.operator_name);
      PyTorchCacheEntry made;
      made.instance = kernel.make_instance(StackAttributes(attributes, values), report);
      report.raise_if_failed();
      for (std::size_t i = 0; i < attributes.size(); ++i) {
        // The caller may change its list.
        made.values.push_back(values[i].isList() ? values[i].deepcopy() : values[i]);
      }
      return made;
    });
    return owner->instance.get();
  }

  InstanceCache<PyTorchCacheEntry> cache_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_INSTANCES_H_
