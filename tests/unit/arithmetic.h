// How a thread computes, which a kernel must not change, as the C library has it.
#ifndef ATEN_BRIDGE_TESTS_UNIT_ARITHMETIC_H_
#define ATEN_BRIDGE_TESTS_UNIT_ARITHMETIC_H_

#include <cfenv>

/// The settings of this thread when the object was made: rounding, denormal numbers and the like.
class ThreadArithmetic {
 public:
  ThreadArithmetic() { std::fegetenv(&environment_); }

  /// Sets this thread, which from then on takes denormal numbers for zeros if `flushes`.
  void set(bool flushes) const {
    std::fenv_t environment = environment_;
#if defined(__x86_64__)
    constexpr unsigned int kFlushes = 0x8040;
    environment.__mxcsr =
        flushes ? environment.__mxcsr | kFlushes : environment.__mxcsr & ~kFlushes;
#elif defined(__aarch64__)
    constexpr unsigned int kFlushes = 1U << 24;
    environment.__fpcr = flushes ? environment.__fpcr | kFlushes : environment.__fpcr & ~kFlushes;
#endif
    std::fesetenv(&environment);
  }

  bool operator==(const ThreadArithmetic& other) const {
#if defined(__x86_64__)
    constexpr unsigned int kHappened = 0x3f;  // is no setting
    return ((environment_.__mxcsr ^ other.environment_.__mxcsr) & ~kHappened) == 0 &&
           environment_.__control_word == other.environment_.__control_word;
#elif defined(__aarch64__)
    return environment_.__fpcr == other.environment_.__fpcr;
#else
    return true;
#endif
  }
  bool operator!=(const ThreadArithmetic& other) const { return !(*this == other); }

 private:
  std::fenv_t environment_;
};

#endif  // ATEN_BRIDGE_TESTS_UNIT_ARITHMETIC_H_
