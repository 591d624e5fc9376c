// The instances of a kernel: what it keeps for each set of attributes, found by the host's own
// values of them.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_INSTANCE_CACHE_H_
#define ATEN_BRIDGE_CALL_INSTANCE_CACHE_H_

#include <aten_bridge/interface/operands.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What each entry has besides the host's values. An `Entry` derives from it, and has
/// `bool is_of(given) const`, which compares these with the values of a call.
template <class Entry>
struct InstanceCacheEntry {
  std::shared_ptr<Instance> instance;  // null for a kernel that has none
  const Entry* before = nullptr;
};

/// Threads may ask at once; they wait only where a set of attributes is new.
template <class Entry>
class InstanceCache {
 public:
  /// The entry for these values if it is kept for good; else null.
  template <class Given>
  [[gnu::always_inline]] const Entry* find(const Given& given) const {
    const Entry* entry = last_.load(std::memory_order_acquire);
    while (entry != nullptr && !entry->is_of(given)) {
      entry = entry->before;
    }
    return entry;
  }

  /// The entry for these values; `make()` returns one that is not there yet. Programs have a few
  /// sets of attributes, which are kept for good; further ones replace each other: one that
  /// changes in each step would otherwise fill the memory. A state is kept for good, since a call
  /// with the same attributes must meet it again.
  template <class Given, class Make>
  [[gnu::cold, gnu::noinline]] std::shared_ptr<const Entry> find_or_make(const Given& given,
                                                                         bool has_state,
                                                                         const Make& make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const Entry* entry = find(given)) {  // another thread was first
      return borrow(*entry);
    }
    for (const auto& entry : further_) {
      if (entry->is_of(given)) {
        return entry;
      }
    }
    auto made = std::make_shared<Entry>(make());
    if (kept_.size() < kMost || has_state) {
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

  /// An entry that is kept for good, without a count of its owners.
  static std::shared_ptr<const Entry> borrow(const Entry& entry) {
    return {std::shared_ptr<const Entry>(), &entry};
  }

 protected:
  /// For `make()`: the instance of the first entry of which `is_same` is true; else null.
  template <class IsSame>
  std::shared_ptr<Instance> instance_where(const IsSame& is_same) const {
    for (const Entries* entries : {&kept_, &further_}) {
      for (const auto& entry : *entries) {
        if (is_same(*entry)) {
          return entry->instance;
        }
      }
    }
    return nullptr;
  }

 private:
  using Entries = std::deque<std::shared_ptr<Entry>>;

  static constexpr std::size_t kMost = 64;

  std::atomic<const Entry*> last_{nullptr};  // the last one found in `kept_`
  std::mutex mutex_;                         // guards what follows
  Entries kept_;
  Entries further_;
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_INSTANCE_CACHE_H_
