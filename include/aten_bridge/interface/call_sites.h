// What is kept between the calls of a kernel: the operands, by the places that the calls come from.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_INTERFACE_CALL_SITES_H_
#define ATEN_BRIDGE_INTERFACE_CALL_SITES_H_

#include <aten_bridge/interface/operands.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The operands of a kernel's calls in one thread. Between the calls their views are kept, so that
/// the next one has only to point them at other memory.
struct OperandCache {
  [[gnu::noinline]] OperandCache() = default;
  [[gnu::noinline]] ~OperandCache() = default;
  OperandCache(const OperandCache&) = delete;
  OperandCache& operator=(const OperandCache&) = delete;

  std::uint64_t call_site = 0;               // the site whose calls they belong to
  const KernelDescriptor* kernel = nullptr;  // the last call's
  bool in_use = false;
  std::vector<Operand> operands;
  Tensors list;  // for an at::TensorList; empty between the calls
};

/// The operands of a thread's calls of a kernel, by a number for each call site of a network, which
/// has shapes of its own. Four call sites in one bucket keep theirs. A fifth takes over those of
/// the one whose call is the longest ago, and makes other views of them, which costs time alone.
class CallSiteCache {
 public:
  CallSiteCache() = default;
  CallSiteCache(const CallSiteCache&) = delete;
  CallSiteCache& operator=(const CallSiteCache&) = delete;

  OperandCache& of(std::uint64_t call_site) {
    constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
    const std::size_t index = call_site * kSpread >> (64 - kBits);
    OperandCache* const last = table_ == nullptr ? nullptr : (*table_)[index].front().get();
    return last != nullptr && last->call_site == call_site ? *last : find(index, call_site);
  }

 private:
  // Among 100 call sites at random addresses 68 are alone, and in 1 of 100 networks five share a
  // bucket.
  static constexpr int kBits = 8;
  using Bucket = std::array<std::unique_ptr<OperandCache>, 4>;  // the last one called in front
  using Table = std::array<Bucket, 1U << kBits>;

  [[gnu::noinline]] OperandCache& find(std::size_t index, std::uint64_t call_site) {
    if (table_ == nullptr) {
      table_ = std::make_unique<Table>();
    }
    Bucket& bucket = (*table_)[index];
    auto* found = bucket.begin();
    while (found != bucket.end() - 1 && *found != nullptr && (*found)->call_site != call_site) {
      ++found;
    }
    std::rotate(bucket.begin(), found, found + 1);
    std::unique_ptr<OperandCache>& kept = bucket.front();
    if (kept == nullptr) {
      kept = std::make_unique<OperandCache>();
    }
    kept->call_site = call_site;  // also of those that an outer call has in use, see run()
    return *kept;
  }

  std::unique_ptr<Table> table_;  // not in the thread's own memory, of which there is little
};

ATEN_BRIDGE_INLINE CallSites::CallSites() : cache(new CallSiteCache) {}
ATEN_BRIDGE_INLINE CallSites::~CallSites() { delete cache; }

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_INTERFACE_CALL_SITES_H_
