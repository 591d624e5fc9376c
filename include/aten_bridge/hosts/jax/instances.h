// Instances: what a kernel keeps for each set of attributes, as XLA brings them.
//
// By their values, and not in a state of XLA's INSTANTIATE stage, whose functions have other
// arguments in jaxlib 0.6 than in 0.10. It costs 10 ns for an attribute.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_JAX_INSTANCES_H_
#define ATEN_BRIDGE_HOSTS_JAX_INSTANCES_H_

#include <aten_bridge/call/instance_cache.h>
#include <aten_bridge/hosts/jax/attributes.h>
#include <aten_bridge/interface/kernel_base.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What is kept for one set of attributes.
struct JaxCacheEntry : InstanceCacheEntry<JaxCacheEntry> {
  struct Value {
    std::string name;
    int type;
    int dtype;
    std::string bytes;
  };

  std::vector<Value> values;
  std::vector<int64_t> nones;  // which inputs are None, in order

  bool is_of(const xla::Attributes& attributes) const {
    if (attributes.size != static_cast<int64_t>(values.size())) {
      return false;
    }
    JaxValue value;
    for (int64_t i = 0; i < attributes.size; ++i) {
      const Value& own = values[static_cast<std::size_t>(i)];
      if (name_of(attributes, i) != own.name || !read_value(attributes, i, value) ||
          !is_same(own, value)) {
        return false;
      }
    }
    return true;
  }

  /// Whether the kernel's own attributes are the same, whatever the module adds of None.
  bool has_attributes_of(const JaxCacheEntry& other) const {
    return includes(other) && other.includes(*this);
  }

 private:
  bool includes(const JaxCacheEntry& other) const {
    return std::all_of(other.values.begin(), other.values.end(), [&](const Value& its) {
      return its.name == kNoneAttribute ||
             std::any_of(values.begin(), values.end(), [&](const Value& own) {
               return own.name == its.name && own.type == its.type && own.dtype == its.dtype &&
                      own.bytes == its.bytes;
             });
    });
  }

  static bool is_same(const Value& own, const JaxValue& value) {
    return value.type == own.type && value.dtype == own.dtype && value.bytes == own.bytes.size() &&
           (value.bytes == 0 || std::memcmp(value.data, own.bytes.data(), value.bytes) == 0);
  }
};

/// A kernel's instances.
class JaxInstances : private InstanceCache<JaxCacheEntry> {
 public:
  /// Throws `Error` with all that is wrong with the attributes.
  std::shared_ptr<const JaxCacheEntry> of(const KernelBase& kernel,
                                          const xla::Attributes& attributes) {
    if (const JaxCacheEntry* entry = find(attributes)) {
      return borrow(*entry);
    }
    return find_or_make(attributes, kernel.info.has_state, [&] {
      JaxCacheEntry made = read(kernel.info.operator_name, attributes);
      made.instance = instance_of(kernel, made, attributes);
      return made;
    });
  }

 private:
  /// The attributes as they are kept; throws `Error` for anything else.
  [[gnu::cold]] static JaxCacheEntry read(const char* operator_name,
                                          const xla::Attributes& attributes) {
    Report report(operator_name);
    JaxCacheEntry kept;
    for (int64_t i = 0; i < attributes.size; ++i) {
      const std::string name(name_of(attributes, i));
      JaxValue value;
      if (!read_value(attributes, i, value)) {
        report.add_attribute(name.c_str(), {"a bool, an int, a float, a str or a list of these",
                                            kGot, "something else"});
        continue;
      }
      kept.values.push_back({name, value.type, value.dtype, {}});
      if (value.bytes != 0) {
        kept.values.back().bytes.assign(static_cast<const char*>(value.data), value.bytes);
      }
    }
    const JaxAttributes given(attributes);
    if (given.find(kNoneAttribute) >= 0 &&
        (!given.ints(kNoneAttribute, kept.nones) || !is_ascending(kept.nones))) {
      report.add_attribute(kNoneAttribute.data(),
                           {"which inputs are None, in their order", kGot, "something else"});
    }
    report.raise_if_failed();
    return kept;
  }

  static bool is_ascending(const std::vector<int64_t>& numbers) {
    return (numbers.empty() || numbers.front() >= 0) &&
           std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
               numbers.end();
  }

  [[gnu::cold]] std::shared_ptr<Instance> instance_of(const KernelBase& kernel,
                                                      const JaxCacheEntry& made,
                                                      const xla::Attributes& attributes) const {
    if (!kernel.info.has_instance) {
      return nullptr;
    }
    std::shared_ptr<Instance> instance =
        instance_where([&](const JaxCacheEntry& entry) { return entry.has_attributes_of(made); });
    if (instance == nullptr) {
      Report report(kernel.info.operator_name);
      instance = kernel.make_instance(JaxAttributes(attributes), report);
      report.raise_if_failed();
    }
    return instance;
  }
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_JAX_INSTANCES_H_
