// Keeps the process from growing with each large program that runs.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROCESS_MEMORY_H_
#define ATEN_BRIDGE_OPERATORS_PROCESS_MEMORY_H_

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <fstream>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// Counts the bytes of values that programs make. Now and then gives the system back what is free,
/// where the process has grown.
///
/// glibc's heap (2.36) keeps the memory of large values below small ones that are in use, and may
/// take new memory for the next ones: training steps then grow by a value each.
inline void note_made([[maybe_unused]] std::size_t bytes) {
#ifdef __GLIBC__
  constexpr std::size_t kMuch = std::size_t{1} << 26;
  static std::atomic<std::size_t> made{0};
  static std::atomic<std::size_t> least_pages{0};  // that the process had since the last look
  if ((made += bytes) < kMuch) {
    return;
  }
  made = 0;
  const auto resident_pages = [] {
    std::size_t size = 0;
    std::size_t resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident;
  };
  static const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = resident_pages();
  if (pages > least_pages + kMuch / kPage) {
    malloc_trim(0);
    least_pages = resident_pages();
  } else {
    least_pages = std::min<std::size_t>(pages, least_pages);
  }
#endif
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROCESS_MEMORY_H_
