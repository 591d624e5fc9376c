// The two programs of a step, and what the first keeps for the second.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_STEP_H_
#define ATEN_BRIDGE_CALLER_STEP_H_

#include "interpreter.h"

#include <include/utils/pynative/grad_state.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace aten_bridge::caller {

inline bool is_recording_gradients() {
  return mindspore::pynative::GradState::Get().RequiresGrad();
}

class Caller;

/// A forward and a backward program. The library itself keeps what the second needs of the first.
struct Step {
  void (*set_kept)(void**, int) = nullptr;
  void (*free_kept)(void*) = nullptr;
  std::vector<std::size_t> written;    // inputs in whose memory the first outputs are
  bool gives_tuple = false;            // also of one output
  std::vector<std::size_t> inputs;     // what the backward program reads of the forward one's
  std::vector<std::size_t> tangents;   // results whose gradients it reads
  std::vector<std::size_t> gradients;  // inputs whose gradients it computes
  std::size_t weight_count = 0;        // inputs before the module's own
  std::shared_ptr<Caller> of_weights;  // computes the gradients of weights alone
  std::shared_ptr<Caller> of_all;
  Reference differentiate_again;  // Python's, for gradients of these gradients; None: has none
  std::string no_gradient;        // what is said there

  /// How many of the gradients are those of weights.
  std::size_t weight_gradients() const {
    return static_cast<std::size_t>(
        std::lower_bound(gradients.begin(), gradients.end(), weight_count) - gradients.begin());
  }
};

/// What the forward program of one call has kept, in the library.
class Kept {
 public:
  explicit Kept(std::shared_ptr<const Step> step) : step_(std::move(step)) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    if (values_ != nullptr) {
      step_->free_kept(values_);
    }
  }

  /// Lets this thread's programs know of it while this lives.
  class Scope {
   public:
    explicit Scope(Kept* kept) : kept_(kept) { set(kept == nullptr ? nullptr : &kept->values_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { set(nullptr); }

   private:
    void set(void** place) {
      if (kept_ != nullptr) {
        // A gradient that is itself differentiated leaves what it reads to that.
        kept_->step_->set_kept(place, is_recording_gradients() ? 0 : 1);
      }
    }

    Kept* kept_;
  };

 private:
  std::shared_ptr<const Step> step_;
  void* values_ = nullptr;
};

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_STEP_H_
