// Instances: what a kernel keeps for each set of attributes, as XLA brings them.
//
// By their values, and not in a state of XLA's INSTANTIATE stage, whose functions have other
// arguments in jaxlib 0.6 than in 0.10. It costs 10 ns for an attribute.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_JAX_INSTANCES_H_
#define ATEN_BRIDGE_HOSTS_JAX_INSTANCES_H_

#include <aten_bridge/hosts/jax/attributes.h>
#include <aten_bridge/interface/kernel_base.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

inline constexpr HostMessages kJaxMessages = {"out", "let out tell the shape of the result",
                                              "let out tell the dtype of the result",
                                              "the arguments of the call with the kernel"};

/// What is kept for one set of attributes.
struct JaxCacheEntry {
  struct Value {
    std::string name;
    int type;
    int dtype;
    std::string bytes;
  };

  std::vector<Value> values;
  std::vector<int64_t> nones;  // which inputs are None, in order
  std::shared_ptr<Instance> instance;
  const JaxCacheEntry* before = nullptr;

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
    const auto is_own = [](const Value& value) { return value.name != kNoneAttribute; };
    std::size_t found = 0;
    for (const Value& value : values) {
      found += is_own(value) &&
               std::any_of(other.values.begin(), other.values.end(), [&](const Value& its) {
                 return its.name == value.name && its.type == value.type &&
                        its.dtype == value.dtype && its.bytes == value.bytes;
               });
    }
    const auto count = [&](const JaxCacheEntry& kept) {
      return static_cast<std::size_t>(
          std::count_if(kept.values.begin(), kept.values.end(), is_own));
    };
    return found == count(*this) && found == count(other);
  }

 private:
  static bool is_same(const Value& own, const JaxValue& value) {
    return value.type == own.type && value.dtype == own.dtype && value.bytes == own.bytes.size() &&
           (value.bytes == 0 || std::memcmp(value.data, own.bytes.data(), value.bytes) == 0);
  }
};

/// A kernel's instances. Threads may ask at once; only where one is new do they wait.
class JaxInstances {
 public:
  explicit JaxInstances(const KernelBase& kernel) : info(kernel.info), kernel_(kernel) {
    info.messages = &kJaxMessages;
  }

  KernelDescriptor info;  // the kernel's, with the words of this host

  /// Throws `Error` with all that is wrong with the attributes.
  std::shared_ptr<const JaxCacheEntry> of(const xla::Attributes& attributes) {
    const JaxCacheEntry* kept = find(attributes);
    return kept != nullptr ? borrow(*kept) : find_or_make(attributes);
  }

 private:
  // As in PyTorch: programs have a few sets of attributes, which are kept for good; further ones
  // replace each other. A state is kept for good: a call with the same attributes meets it again.
  static constexpr std::size_t kMost = 64;

  /// Of one that is kept for good: nobody counts its owners.
  static std::shared_ptr<const JaxCacheEntry> borrow(const JaxCacheEntry& kept) {
    return {std::shared_ptr<const JaxCacheEntry>(), &kept};
  }

  const JaxCacheEntry* find(const xla::Attributes& attributes) const {
    const JaxCacheEntry* kept = last_.load(std::memory_order_acquire);
    while (kept != nullptr && !kept->is_of(attributes)) {
      kept = kept->before;
    }
    return kept;
  }

  [[gnu::cold, gnu::noinline]] std::shared_ptr<const JaxCacheEntry> find_or_make(
      const xla::Attributes& attributes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const JaxCacheEntry* kept = find(attributes)) {  // another thread was first
      return borrow(*kept);
    }
    for (const auto& kept : further_) {
      if (kept->is_of(attributes)) {
        return kept;
      }
    }
    auto made = std::make_shared<JaxCacheEntry>(read(attributes));
    made->instance = instance_of(*made, attributes);
    if (kept_.size() < kMost || info.has_state) {
      made->before = last_.load(std::memory_order_relaxed);
      kept_.push_back(made);
      last_.store(made.get(), std::memory_order_release);
      return made;
    }
    if (further_.size() >= kMost) {
      further_.pop_front();
    }
    further_.push_back(made);
    return made;
  }

  /// The attributes as they are kept; throws `Error` for what is none.
  [[gnu::cold]] JaxCacheEntry read(const xla::Attributes& attributes) const {
    Report report(info.operator_name);
    JaxCacheEntry kept;
    for (int64_t i = 0; i < attributes.size; ++i) {
      const std::string name(name_of(attributes, i));
      JaxValue value;
      if (!read_value(attributes, i, value)) {
        report.add(Status::kAttribute,
                   {"attribute '", name, "': expected a bool, an int, a float, a str or a list of ",
                    "these, got something else"});
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
      report.add(Status::kAttribute, {"attribute '", kNoneAttribute, "': expected which inputs ",
                                      "are None, in their order, got something else"});
    }
    report.raise_if_failed();
    return kept;
  }

  static bool is_ascending(const std::vector<int64_t>& numbers) {
    int64_t before = -1;
    for (const int64_t number : numbers) {
      if (number <= before) {
        return false;
      }
      before = number;
    }
    return true;
  }

  [[gnu::cold]] std::shared_ptr<Instance> instance_of(const JaxCacheEntry& made,
                                                      const xla::Attributes& attributes) const {
    if (!info.has_instance) {
      return nullptr;
    }
    for (const std::deque<std::shared_ptr<JaxCacheEntry>>* list : {&kept_, &further_}) {
      for (const auto& kept : *list) {
        if (kept->has_attributes_of(made)) {
          return kept->instance;
        }
      }
    }
    Report report(info.operator_name);
    std::shared_ptr<Instance> instance = kernel_.make_instance(JaxAttributes(attributes), report);
    report.raise_if_failed();
    return instance;
  }

  const KernelBase& kernel_;
  std::atomic<const JaxCacheEntry*> last_{nullptr};  // of `kept_`
  std::mutex mutex_;                                 // of what follows
  std::deque<std::shared_ptr<JaxCacheEntry>> kept_;
  std::deque<std::shared_ptr<JaxCacheEntry>> further_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_JAX_INSTANCES_H_
