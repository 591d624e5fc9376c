// The calling thread's state, set aside around a kernel's body.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TENSORS_SCOPE_H_
#define ATEN_BRIDGE_TENSORS_SCOPE_H_

#include <ATen/Parallel.h>
#include <aten_bridge/core/arithmetic.h>
#include <aten_bridge/tensors/torch.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Around the body of a kernel. Inside, operators run below autograd (no graph, 2 dispatches fewer
/// for each operator) or, where the kernel `records` one, as in a thread of its own; without
/// autocast and not in inference mode, whatever the calling thread had set. Afterwards autograd's
/// modes, dispatch keys, thread count and, on x86-64 and AArch64, rounding and the treatment of
/// denormals are the thread's own again, also where the kernel changed them or threw. Settings of
/// the whole process are left as they are: other threads may be at them.
class KernelScope {
 public:
  [[gnu::always_inline]] explicit KernelScope(bool records = false) {
    if (records) {
      set_aside();
    } else {
      keys_.set_included(keys_before_.included().add(c10::DispatchKey::ADInplaceOrView));
      keys_.set_excluded(keys_before_.excluded() |
                         c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                         c10::autocast_dispatch_keyset);
      if (before_.is_inference) {
        Modes().set(autograd_);
      }
    }
  }

  [[gnu::always_inline]] ~KernelScope() {
    if (whole_before_.has_value()) {
      put_back();
    }
    before_.set(autograd_);
    keys_ = keys_before_;
    if (at::get_num_threads() != thread_count_) {
      at::set_num_threads(thread_count_);
    }
    arithmetic_.restore();
  }

  bool was_in_inference_mode() const { return before_.is_inference; }

  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  /// What a body can change of autograd's state. To copy all of it takes longer than the rest here.
  struct Modes {
    bool is_recording = true;
    bool is_inference = false;
    bool is_forward = true;
    bool is_multithreaded = true;
    bool replays_views = false;

    void set(c10::AutogradState& state) const {
      state.set_grad_mode(is_recording);
      state.set_inference_mode(is_inference);
      state.set_fw_grad_mode(is_forward);
      state.set_multithreading_enabled(is_multithreaded);
      state.set_view_replay_enabled(replays_views);
    }
  };

  /// Makes the state that of a thread of its own.
  [[gnu::noinline]] void set_aside() {
    whole_before_.emplace(autograd_);
    autograd_ = {/*grad_mode=*/true, /*inference_mode=*/false, /*fw_grad_mode=*/true,
                 /*multithreading_enabled=*/true};
    keys_ = {};
  }
  [[gnu::noinline]] void put_back() {
    autograd_ = *whole_before_;
    whole_before_.reset();
  }

  Arithmetic arithmetic_;                                               // when the body begins
  c10::AutogradState& autograd_ = c10::AutogradState::get_tls_state();  // the thread's own
  Modes before_ = {autograd_.get_grad_mode(), autograd_.get_inference_mode(),
                   autograd_.get_fw_grad_mode(), autograd_.get_multithreading_enabled(),
                   autograd_.get_view_replay_enabled()};
  std::optional<c10::AutogradState> whole_before_;  // where the kernel records
  // Itself, found once: PyTorch's functions look for it at each read and write.
  c10::impl::PODLocalDispatchKeySet& keys_ = c10::impl::raw_local_dispatch_key_set;
  c10::impl::PODLocalDispatchKeySet keys_before_ = keys_;
  int thread_count_ = at::get_num_threads();
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_TENSORS_SCOPE_H_
