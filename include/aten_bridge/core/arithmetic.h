// How the calling thread computes with floating-point numbers: rounding, denormal numbers.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CORE_ARITHMETIC_H_
#define ATEN_BRIDGE_CORE_ARITHMETIC_H_

#include <cstdint>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

#if defined(__SSE__)

/// The thread's settings when the object was made. Reading a register takes a few cycles and
/// writing it some dozens, so it is written only where it differs. What has happened so far, such
/// as an overflow, is no setting.
class Arithmetic {
 public:
  [[gnu::always_inline]] void restore() const {
    constexpr unsigned int kHappened = 0x3f;
    const unsigned int mxcsr = __builtin_ia32_stmxcsr();
    if (((mxcsr ^ mxcsr_) & ~kHappened) != 0) {
      __builtin_ia32_ldmxcsr((mxcsr & kHappened) | (mxcsr_ & ~kHappened));
    }
    if (read_x87() != x87_) {
      __asm__ volatile("fldcw %0" : : "m"(x87_));
    }
  }

  /// Computes with denormal numbers from now on, where they were taken for zeros.
  static void keep_denormals() {
    constexpr unsigned int kFlushes = 0x8040;  // flush to zero, denormals are zeros
    const unsigned int mxcsr = __builtin_ia32_stmxcsr();
    if ((mxcsr & kFlushes) != 0) {
      __builtin_ia32_ldmxcsr(mxcsr & ~kFlushes);
    }
  }

 private:
  // The rounding of long double, which fesetround() and fegetround() are about too.
  static std::uint16_t read_x87() {
    std::uint16_t word = 0;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return word;
  }

  unsigned int mxcsr_ = __builtin_ia32_stmxcsr();
  std::uint16_t x87_ = read_x87();
};

#elif defined(__aarch64__)

/// The same. FPCR has nothing but settings; what has happened is in FPSR.
class Arithmetic {
 public:
  [[gnu::always_inline]] void restore() const {
    if (read() != fpcr_) {
      write(fpcr_);
    }
  }

  static void keep_denormals() {
    // Bits FZ, FZ16 (of float16) and FIZ (of inputs).
    constexpr std::uint64_t kFlushes = 1U << 24 | 1U << 19 | 1U << 0;
    const std::uint64_t fpcr = read();
    if ((fpcr & kFlushes) != 0) {
      write(fpcr & ~kFlushes);
    }
  }

 private:
  static std::uint64_t read() {
    std::uint64_t fpcr = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
  }
  static void write(std::uint64_t fpcr) { __asm__ volatile("msr fpcr, %0" : : "r"(fpcr)); }

  std::uint64_t fpcr_ = read();
};

#else

/// Nothing is known of other processors, and nothing is done.
class Arithmetic {
 public:
  void restore() const {}
  static void keep_denormals() {}
};

#endif

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CORE_ARITHMETIC_H_
