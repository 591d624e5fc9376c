// Failures: from an exception to a text.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_FAILURE_H_
#define ATEN_BRIDGE_CALL_FAILURE_H_

#include <aten_bridge/interface/operands.h>
#include <aten_bridge/tensors/exceptions.h>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

/// What went wrong in a call, for its host.
struct Failure {
  Status status = Status::kOk;
  std::string text;
  Faults faults = {};  ///< with operands and attributes
};

}  // namespace aten_bridge

namespace aten_bridge::detail {

/// " (input 0: float32 [2, 2]; output 0: float32 [2, 2])": what a message of ATen's leaves out.
[[gnu::cold]] inline std::string operands_text(const Operand* operands, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text.append(i == 0 ? " (" : "; ")
        .append(operands[i].name.text())
        .append(": ")
        .append(operands[i].desc.text());
  }
  return count == 0 ? text : text + ")";
}

/// What the exception being handled says. Only an `Error` names its operator and operands itself.
[[gnu::cold]] inline Failure describe_failure(const char* operator_name,
                                              const std::string& operands) {
  Failure failure{Status::kUnknown, std::string(operator_name) + ": "};
  try {
    throw;
  } catch (const Error& error) {
    failure = {error.status(), error.what(), error.faults()};
  } catch (const c10::Error& error) {
    const std::string text = exception_text(error, /*may_have_backtrace=*/true);
    failure.status = is_of_cuda(text) ? Status::kCuda : Status::kAten;
    failure.text += text + operands;
    if (is_about_capture(text)) {
      failure.text +=
          "; while a CUDA stream is captured a kernel cannot wait for it: no .item(), no copy to "
          "the CPU, no result whose shape depends on values";
    }
  } catch (const std::exception& error) {
    failure.status = Status::kException;
    failure.text += exception_text(error) + operands;
  } catch (...) {
    failure.text += join({"the kernel threw an object of type ", exception_type_text(),
                          ", which is not a std::exception", operands});
  }
  return failure;
}

/// The last failures with faults, of all threads, for Python: hosts raise no more than the text,
/// and that perhaps later, in another thread.
class RecentFailures {
 public:
  void add(const Failure& failure) {
    if (failure.faults != nullptr && !failure.faults->empty()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      failures_[count_++ % kMost] = failure;
    }
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

  /// Calls the function with each, the newest first.
  template <class F>
  void for_each(const F& function) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = 1; i <= std::min(count_, kMost); ++i) {
      function(failures_[(count_ - i) % kMost]);
    }
  }

 private:
  static constexpr std::size_t kMost = 16;
  std::mutex mutex_;
  std::size_t count_ = 0;
  std::array<Failure, kMost> failures_;
};

/// Lives for ever: threads may fail while the process ends.
[[gnu::cold]] inline RecentFailures& recent_failures() {
  static auto* const failures = [] {
    // A process that is forked while another thread fails would have the mutex locked for ever.
    pthread_atfork([] { recent_failures().lock(); }, [] { recent_failures().unlock(); },
                   [] { recent_failures().unlock(); });
    return new RecentFailures;
  }();
  return *failures;
}

/// The same with the operands of the call, and `more`, in UTF-8, and recorded for
/// aten_bridge_last_error(). Does not throw: without memory for the text there is none.
[[gnu::cold, gnu::noinline]] inline Failure record_failure(const char* operator_name,
                                                           const Operand* operands, int count,
                                                           const std::string& more = {}) noexcept {
  try {
    Failure failure = describe_failure(operator_name, operands_text(operands, count));
    failure.text = for_people(as_utf8(failure.text + more));
    last_error_text() = failure.text;
    recent_failures().add(failure);
    return failure;
  } catch (...) {
    last_error_text().clear();
    return {Status::kUnknown, {}};
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_FAILURE_H_
