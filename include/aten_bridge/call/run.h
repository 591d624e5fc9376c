// One call of a kernel, from one of a host.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_RUN_H_
#define ATEN_BRIDGE_CALL_RUN_H_

#include <aten_bridge/call/bind.h>
#include <aten_bridge/call/failure.h>
#include <aten_bridge/call/host.h>
#include <aten_bridge/call/lent_memory.h>
#include <aten_bridge/call/results.h>
#include <aten_bridge/call/steps.h>
#include <aten_bridge/call/workspaces.h>
#include <aten_bridge/tensors/scope.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

[[gnu::cold, gnu::noinline]] inline OperandCache& made(std::unique_ptr<OperandCache>& own) {
  own = std::make_unique<OperandCache>();
  return *own;
}

/// The operands of a call, from the cache of its call site. A call inside another one of a kernel
/// of the same type has operands of its own, `own`. The destructor returns them to the cache, with
/// their views if `keep_views` was called.
class CachedOperands {
 public:
  [[gnu::always_inline]] CachedOperands(CallSiteCache& call_sites, std::uint64_t call_site,
                                        std::unique_ptr<OperandCache>& own, Arguments& arguments)
      : arguments_(arguments), cache_(&call_sites.of(call_site)) {
    if (cache_->in_use) {
      cache_ = &made(own);
    }
    if (cache_->kernel != arguments.kernel ||
        cache_->operands.size() != static_cast<std::size_t>(arguments.size())) {  // rare
      prepare(arguments, *cache_);
    }
    cache_->in_use = true;
    arguments_.operands = cache_->operands.data();
    arguments_.list = &cache_->list;
  }
  ~CachedOperands() {
    if (!cache_->list.empty()) {  // after an error
      cache_->list.clear();
    }
    if (!keeps_views_) {
      drop_views(arguments_.operands, arguments_.size());
    }
    cache_->in_use = false;
  }
  CachedOperands(const CachedOperands&) = delete;
  CachedOperands& operator=(const CachedOperands&) = delete;

  void keep_views() { keeps_views_ = true; }

 private:
  Arguments& arguments_;
  OperandCache* cache_;
  bool keeps_views_ = false;
};

/// A kernel without outputs writes its inputs, which the host's outputs must then be.
template <class HostCall>
[[gnu::cold]] void check_in_place(const HostCall& host, const Arguments& arguments) {
  const int inputs = arguments.inputs;
  Report report(arguments.kernel->operator_name);
  for (int i = inputs; i < host.size(); ++i) {
    const void* const output = host.data(i);
    const bool is_input =
        std::any_of(arguments.operands, arguments.operands + inputs,
                    [output](const Operand& input) { return input.desc.data == output; });
    if (!is_input) {
      report.add(
          Status::kOutput, OperandName{Role::kOutput, i - inputs},
          {"the memory of an input, which the kernel writes in place", kGot, "other memory"});
    }
  }
  report.raise_if_failed();
}

/// Copies the inputs that share memory with the first one, which the kernel writes, so that it
/// reads them as they were. ATen cannot see the overlap, since each view has a storage of its own.
[[gnu::noinline]] inline void separate_from_first(const Arguments& arguments) {
  const auto begin = [](const Operand& operand) {
    return reinterpret_cast<std::uintptr_t>(operand.desc.data) +
           static_cast<std::size_t>(operand.desc.offset) * dtype_itemsize(operand.desc.dtype);
  };
  const auto end = [](const Operand& operand) {
    return reinterpret_cast<std::uintptr_t>(operand.desc.data) + desc_bytes(operand.desc);
  };
  const Operand& first = arguments.operands[0];
  for (int i = 1; i < arguments.inputs; ++i) {
    Operand& other = arguments.operands[i];
    if (!first.view.defined() || !other.view.defined() || begin(other) >= end(first) ||
        begin(first) >= end(other)) {
      continue;
    }
    other.view = other.view.clone();
  }
  fill_list(arguments);
}

/// The instance that the host keeps for this kernel; if it keeps none, or could not make one, an
/// instance for this call alone.
template <class HostCall>
Instance* find_instance(const KernelBase& kernel, const HostCall& host,
                        std::unique_ptr<Instance>& own, Report& report) {
  if (!kernel.info.has_instance) {
    return nullptr;
  }
  if (Instance* kept = host.instance()) {
    return kept;
  }
  own = kernel.make_instance(host.attributes(), report);
  return own.get();
}

/// After the body: checks the outputs and that the kernel keeps no operand, and marks the views
/// that the next call can reuse.
[[gnu::always_inline]] inline void commit_operands(Arguments& arguments) {
  if (arguments.list_size > 0) {
    arguments.list->clear();  // it refers to the views of its tensors
  }
  const Operand* const end = arguments.operands + arguments.size();
  bool are_kept = false;
  for (Operand* operand = arguments.operands; operand != end; ++operand) {
    if (!mark_reusable(*operand)) {
      if (operand - arguments.operands >= arguments.inputs && !output_is_intact(*operand)) {
        check_outputs(arguments, output_is_intact);
      }
      are_kept = are_kept || may_be_kept(*operand);
    }
  }
  if (are_kept) {
    refuse_kept(arguments);
  }
  if (*arguments.copies != nullptr) {
    flush_aligned_copies(arguments.copies->get());
  }
}

/// The steps of a call whose host hands over memory.
template <class Device, class HostCall>
struct HostSteps {
  void describe() {
    host.describe(OperandDescs(arguments, refusals));
    if constexpr (HostCall::kWritesInputs) {
      if (kernel.info.outputs == 0 && refusals == nullptr) {
        check_in_place(host, arguments);
      }
    }
  }

  void bind() {
    bind_operands(host, device, refusals, arguments, report);
    arguments.bound = arguments.size();
    if constexpr (HostCall::kWritesInputs) {
      if (kernel.info.outputs == 0 && arguments.inputs > 1) {
        separate_from_first(arguments);
      }
    }
  }

  /// Calls the kernel's function, with workspaces where it has any.
  void invoke() {
    const WriteResults results(kernel.info.is_data_dependent ? host.result_sizes() : nullptr);
    arguments.results = &results;
    if (kernel.info.workspaces > 0) {
      invoke_with_workspaces(kernel, device, host, arguments);
    } else {
      HostCall::invoke(kernel, arguments);
    }
    device.finish();
  }

  void commit() {
    commit_operands(arguments);
    if (kernel.info.is_data_dependent) {
      host.publish_sizes();
    }
  }

  const KernelBase& kernel;
  HostCall& host;
  Device& device;
  Arguments& arguments;
  Report& report;
  OperandDescs::Refusals& refusals;
};

/// Ends a call with the exception being handled, as the host's, with the operands that are bound.
template <class Device, class HostCall>
[[gnu::cold, gnu::noinline]] typename HostCall::Result fail_call(const Arguments& arguments) {
  const KernelDescriptor& kernel = *arguments.kernel;
  const int described =
      kernel.outputs_are_sizes ? std::min(arguments.bound, arguments.inputs) : arguments.bound;
  return HostCall::fail(record_failure(kernel.operator_name, arguments.operands, described,
                                       Device::leftover() + HostCall::advice()),
                        kernel.error_mode);
}

template <class Device, class HostCall, class... HostArgument>
[[gnu::hot, gnu::flatten]] typename HostCall::Result run(const KernelBase& kernel,
                                                         CallSiteCache& (*call_sites)(),
                                                         HostArgument... host_arguments) {
  check_host<HostCall>();
  check_construction<HostCall, HostArgument...>();
  const KernelDescriptor& info = kernel.info;
  std::unique_ptr<AlignedCopy> copies;
  Arguments arguments;
  arguments.copies = &copies;
  arguments.kernel = &info;
  arguments.messages = &HostCall::kMessages;
  arguments.around_state = &Device::around_state;
  std::unique_ptr<OperandCache> own_operands;  // also read after the try block
  try {
    check_pytorch(info.operator_name);
    HostCall host(info.operator_name, host_arguments...);
    const KernelScope scope(info.records);
    Device device(info.operator_name, host.stream(), info.records);
    std::unique_ptr<Instance> own_instance;  // destroyed while its device is the current one
    arguments.stream = host.stream();
    Report report(info.operator_name);
    arguments.instance = find_instance(kernel, host, own_instance, report);
    if (!count_operands(host.input_count(), host.size(), HostCall::kMayHaveMore, arguments,
                        report)) {
      report.raise();
    }
    CachedOperands operands(call_sites(), host.call_site(arguments.size()), own_operands,
                            arguments);
    OperandDescs::Refusals refusals;
    HostSteps<Device, HostCall> steps{kernel, host, device, arguments, report, refusals};
    take_steps(steps);
    if (!info.records) {  // autograd's graph ends with the call, and its views with it
      operands.keep_views();
    }
    return HostCall::succeed();
  } catch (...) {
    return fail_call<Device, HostCall>(arguments);
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_RUN_H_
