// The kernel that a text means.
//
// SPDX-License-Identifier: Apache-2.0

#include "kernel_cache.h"

#include "operator_kernels.h"
#include "program_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;
using detail::raise;

/// What has been made, for each text of a host. Never destroyed: hosts keep what points to kernels,
/// and end in any order.
struct KernelCache {
  struct CacheEntry {
    const KernelBase* kernel;
    std::uint64_t epoch;
  };

  std::mutex mutex;
  std::map<std::string, std::unique_ptr<OperatorKernels>> kernels;  // by Operator::key()
  std::map<std::pair<std::string, int>, CacheEntry> entries;        // by text and number of inputs

  static KernelCache& get() {
    static auto* const cache = new KernelCache;
    return *cache;
  }
};

const KernelBase& make_kernel(KernelCache& cache, const TextAttributes& attributes, int inputs) {
  const auto handle = find_overload(attributes.name());
  if (!handle.has_value()) {
    raise(Status::kAttribute, {attributes.name(), ": expected an operator that is registered with ",
                               "PyTorch, got an unknown name; import the library that has it"});
  }
  const bool is_gradient = std::strtol(attributes.task().c_str(), nullptr, 10) > 0;
  if (is_gradient && inputs < 0) {
    raise(Status::kAttribute, {attributes.name(), ": expected the number of inputs of a ",
                               "gradient, such as \"1/2\", got \"", attributes.task(), "\""});
  }
  const Operator op(*handle, attributes, inputs);
  if (is_gradient && op.bindings().empty()) {  // it would have no outputs
    raise(Status::kAttribute,
          {attributes.name(), ": expected a gradient of one input or more, got the ", "task \"",
           attributes.task(), "\" for 0 inputs"});
  }
  std::unique_ptr<OperatorKernels>& kernels = cache.kernels[op.key()];
  if (kernels == nullptr) {
    kernels = make_kernels(*handle, attributes, inputs);
  }
  const KernelBase* kernel = kernels->find(attributes.task());
  if (kernel == nullptr) {
    raise(Status::kAttribute, {attributes.name(), ": expected a task, such as \"0\", ", "got \"",
                               attributes.task(), "\""});
  }
  return *kernel;
}

}  // namespace

const KernelBase& find_kernel(const std::string& text) { return find_kernel(text, -1); }

const KernelBase& find_kernel(const std::string& text, int inputs) {
  constexpr std::size_t kMostTexts = 10000;
  KernelCache& cache = KernelCache::get();
  const std::lock_guard<std::mutex> lock(cache.mutex);
  watch_dispatcher();
  const std::uint64_t epoch = dispatcher_epoch();
  const auto known = cache.entries.find({text, inputs});
  if (known != cache.entries.end() && known->second.epoch == epoch) {
    return *known->second.kernel;
  }
  const TextAttributes attributes(text);
  const KernelBase* kernel = find_program(attributes);
  if (kernel != nullptr) {
    return *kernel;
  }
  kernel = &make_kernel(cache, attributes, attributes.inputs());
  const detail::KernelDescriptor& info = kernel->info;
  if (attributes.inputs() < 0 && info.list_begin < 0 && inputs >= 0 && inputs < info.inputs) {
    kernel = &make_kernel(cache, attributes, inputs);
  }
  if (cache.entries.size() >= kMostTexts) {
    cache.entries.clear();
  }
  cache.entries.insert_or_assign({text, inputs}, KernelCache::CacheEntry{kernel, epoch});
  return *kernel;
}

const KernelBase& find_kernel(OperatorInstance& instance, int operands) {
  const KernelBase* last = instance.kernel.load(std::memory_order_acquire);
  const detail::KernelDescriptor& info = last->info;
  if (info.is_gradient || info.list_begin >= 0 || info.inputs + info.outputs == operands) {
    return *last;
  }
  last = &find_kernel(instance.text, std::max(operands, info.outputs) - info.outputs);
  instance.kernel.store(last, std::memory_order_release);
  return *last;
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
