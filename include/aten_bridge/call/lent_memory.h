// Lent memory: views of the host's memory end with the call. A kernel that keeps one meets an
// error.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_LENT_MEMORY_H_
#define ATEN_BRIDGE_CALL_LENT_MEMORY_H_

#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/interface/operands.h>
#include <aten_bridge/tensors/torch.h>

#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Whether anything but the operand refers to its view or to another tensor over the host's memory.
[[gnu::always_inline]] inline bool may_be_kept(const Operand& operand) {
  if (!operand.view.defined()) {
    return false;
  }
  const c10::Storage& storage = operand.view.unsafeGetTensorImpl()->unsafe_storage();
  // A storage of the kernel's own may have got the address of the operand's.
  return storage.unsafeGetStorageImpl() == operand.storage &&
         (operand.view.use_count() > 1 || storage.use_count() > 1) &&
         storage.data() == operand.data;
}

/// Drops the views of operands, and adds to the report, where there is one, those whose memory
/// others keep. These meet an error from now on, where PyTorch can raise one. What Python has seen
/// is not added: it may have references until it collects its garbage.
[[gnu::cold, gnu::noinline]] inline void drop_views(Operand* operands, int count, Report* report) {
  struct Suspect {
    const OperandName& name;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    bool is_of_python;
  };
  std::vector<Suspect> suspects;
  for (Operand* operand = operands; operand != operands + count; ++operand) {
    if (may_be_kept(*operand)) {
      c10::TensorImpl* const impl = operand->view.unsafeGetTensorImpl();
      suspects.push_back({operand->name, impl->unsafe_storage().getWeakStorageImpl(),
                          has_python_object(impl->pyobj_slot(), 0)});
    }
  }
  // One operand may have got the memory of another, and a view may have a Python object, which goes
  // with it.
  for (Operand* operand = operands; operand != operands + count; ++operand) {
    operand->view.reset();
    operand->state = ViewState::kUnknown;
  }
  for (const Suspect& suspect : suspects) {
    // Another thread may have done its work for the kernel, and be about to drop what it has: it
    // gets 0.2 s where the call would end in an error.
    const int most_waits = suspect.is_of_python ? 0 : report == nullptr ? 100 : 2000;
    for (int i = 0; i < most_waits && !suspect.storage.expired(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (const auto storage = suspect.storage.lock()) {
      forbid_data(storage.get(),
                  "expected a tensor of this call, got one that the kernel kept from an earlier "
                  "call, whose memory belongs to the host; keep a clone() instead",
                  0);
      if (report != nullptr && !suspect.is_of_python) {
        report->add(Status::kOutput, suspect.name,
                    {"no reference to this tensor after the call, because its memory belongs to ",
                     "the host", kGot, "one that the kernel keeps (the tensor or a view of it)",
                     kDo, "keep a clone() instead"});
      }
    }
  }
}

/// The same without a report, for destructors: where there is no memory for more, the views end.
[[gnu::cold, gnu::noinline]] inline void drop_views(Operand* operands, int count) noexcept {
  try {
    drop_views(operands, count, /*report=*/nullptr);
  } catch (const std::exception&) {
    for (Operand* operand = operands; operand != operands + count; ++operand) {
      operand->view.reset();
      operand->state = ViewState::kUnknown;
    }
  }
}

/// Throws an error that names the operands that the kernel keeps.
[[gnu::cold, gnu::noinline]] inline void refuse_kept(const Arguments& arguments) {
  Report report(arguments.kernel->operator_name);
  drop_views(arguments.operands, arguments.size(), &report);
  report.raise_if_failed();
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_LENT_MEMORY_H_
