// One call of a kernel, from one of a host.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_RUN_H_
#define ATEN_BRIDGE_CALL_RUN_H_

#include <aten_bridge/call/bind.h>
#include <aten_bridge/call/failure.h>
#include <aten_bridge/call/host.h>
#include <aten_bridge/call/lent_memory.h>
#include <aten_bridge/call/outputs.h>
#include <aten_bridge/call/workspaces.h>
#include <aten_bridge/tensors/scope.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Takes the operands for a call, and gives them back, without their views unless these are kept.
class OperandsInUse {
 public:
  OperandsInUse(OperandCache& kept, Arguments& arguments) : kept_(kept), arguments_(arguments) {
    kept_.in_use = true;
    if (has_list()) {
      arguments_.list = std::move(kept_.list);  // with its memory
    }
  }
  ~OperandsInUse() {
    if (has_list()) {
      arguments_.list.clear();
      kept_.list = std::move(arguments_.list);
    }
    if (!keeps_views_ && arguments_.operands != nullptr) {
      drop_views(arguments_.operands, arguments_.size());
    }
    kept_.in_use = false;
  }
  OperandsInUse(const OperandsInUse&) = delete;
  OperandsInUse& operator=(const OperandsInUse&) = delete;

  void keep_views() { keeps_views_ = true; }

 private:
  bool has_list() const { return arguments_.list_begin >= 0; }

  OperandCache& kept_;
  Arguments& arguments_;
  bool keeps_views_ = false;
};

/// A kernel without outputs writes its inputs: the host's outputs must be these.
template <class HostCall>
[[gnu::cold]] void check_in_place(const KernelDescriptor& kernel, const HostCall& host,
                                  int inputs) {
  Report report(kernel.operator_name);
  for (int i = inputs; i < host.size(); ++i) {
    bool is_input = false;
    for (int j = 0; j < inputs; ++j) {
      is_input = is_input || host.data(i) == host.data(j);
    }
    if (!is_input) {
      report.add(Status::kOutput, {OperandName{Role::kOutput, i - inputs}.text(),
                                   ": expected the memory of an input, which the kernel writes ",
                                   "in place, got other memory"});
    }
  }
  report.raise_if_failed();
}

/// Gives a kernel that writes its first input the others as they were before, where these lie in
/// the same memory: ATen cannot see it, since each view has a storage of its own.
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
    if (begin(other) != begin(first) || other.view.sizes() != first.view.sizes() ||
        other.view.strides() != first.view.strides()) {
      other.view = other.view.clone();
    }
  }
}

/// Takes the numbers of inputs and outputs as the host tells them.
template <class HostCall>
bool take_operands(const KernelDescriptor& kernel, const HostCall& host, Arguments& arguments,
                   Report& report) {
  if constexpr (HostCall::kCountsOutputs) {
    return count_exact_operands(kernel, host.input_count(), host.size(), arguments, report);
  } else if constexpr (HostCall::kCountsInputs) {
    const int inputs = host.input_count();
    return count_told_operands(kernel, inputs, host.size() - inputs, arguments, report);
  } else {
    return count_operands(kernel, host.size(), arguments, report);
  }
}

/// What the host keeps for this kernel, or, where it keeps nothing, or could not make it, the same
/// for this call alone.
template <class HostCall>
Instance* find_instance(const KernelBase& kernel, const HostCall& host,
                        std::unique_ptr<Instance>& temporary, Report& report) {
  if (!kernel.info.has_instance) {
    return nullptr;
  }
  if (Instance* kept = host.instance()) {
    return kept;
  }
  temporary = kernel.make_instance(host.attributes(), report);
  return temporary.get();
}

/// After the body: checks the outputs, that the kernel keeps no operand, and settles the operands,
/// whose views are kept unless the kernel records a graph.
[[gnu::always_inline]] inline void check_operands_after(const KernelDescriptor& kernel,
                                                        Arguments& arguments) {
  if (arguments.list_begin >= 0) {
    arguments.list.clear();  // which has the views of its tensors
  }
  const Operand* const outputs = arguments.operands + arguments.inputs;
  const Operand* const end = arguments.operands + arguments.size();
  bool are_kept = false;
  for (Operand* operand = arguments.operands; operand != end; ++operand) {
    const bool is_reusable = !kernel.records && mark_reusable(*operand);
    if (!is_reusable) {
      if (operand >= outputs && !output_is_intact(*operand)) {
        refuse_outputs(kernel, arguments);
      }
      are_kept = are_kept || may_be_kept(*operand);
    }
  }
  if (are_kept) {
    refuse_kept(kernel, arguments);
  }
}

template <class Device, class HostCall, class... HostArgument>
[[gnu::hot]] typename HostCall::Result run(const KernelBase& kernel, CallSiteCache& (*call_sites)(),
                                           HostArgument... host_arguments) {
  const KernelDescriptor& info = HostCall::info(kernel, host_arguments...);
  std::unique_ptr<OperandCache> nested;
  Arguments arguments;
  int bound = 0;
  try {
    check_pytorch(info.operator_name);
    HostCall host(info.operator_name, host_arguments...);
    const KernelScope scope(info.records);
    Device device(info.operator_name, host.stream(), info.records);
    arguments.kernel = &info;
    arguments.stream = host.stream();
    arguments.around_state = &Device::around_state;
    std::unique_ptr<Instance> temporary;
    Report report(info.operator_name);
    if (!info.is_raw) {
      arguments.instance = find_instance(kernel, host, temporary, report);
      if (!take_operands(info, host, arguments, report)) {
        report.raise_if_failed();
      }
    }
    OperandCache* kept_of_place =
        &call_sites().of(info.is_raw ? 0 : host.call_site(arguments.size()));
    if (kept_of_place->in_use) {  // by a kernel that calls itself, or another of its type
      nested = std::make_unique<OperandCache>();
      kept_of_place = nested.get();
    }
    OperandCache& kept = *kept_of_place;
    OperandsInUse in_use(kept, arguments);
    if (info.is_raw) {
      arguments.frame = host.make_frame(device);
    } else {
      if constexpr (HostCall::kWritesInputs) {
        if (info.outputs == 0) {
          check_in_place(info, host, arguments.inputs);
        }
      }
      if (kept.kernel != &info || kept.count != arguments.size()) {  // as a rule not
        prepare(info, arguments, kept);
      }
      arguments.operands = kept.operands.data();
      bind_operands(info, host, device, arguments, report);
      bound = arguments.size();
      if constexpr (HostCall::kWritesInputs) {
        if (info.outputs == 0 && arguments.inputs > 1) {
          separate_from_first(arguments);
        }
      }
    }
    arguments.result_sizes = host.result_sizes();
    if (info.workspaces > 0) {
      invoke_with_workspaces(kernel, device, host, arguments);
    } else {
      HostCall::invoke(kernel, arguments);
    }
    device.finish();
    check_operands_after(info, arguments);
    if (!info.records) {  // what autograd records is over when the call is
      in_use.keep_views();
    }
    if (arguments.copies != nullptr) {
      flush_aligned_copies(arguments.copies.get());
    }
    if constexpr (HostCall::kSizesAfterRun) {
      if (info.is_data_dependent) {
        host.publish_sizes();
      }
    }
    return HostCall::succeed();
  } catch (...) {
    return HostCall::fail(record_failure(info.operator_name, arguments.operands, bound,
                                         Device::leftover() + HostCall::advice()),
                          info.error_mode);
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_RUN_H_
