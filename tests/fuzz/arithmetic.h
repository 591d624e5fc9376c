// How a thread computes, which a kernel must not change: rounding and the like.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_ARITHMETIC_H_
#define ATEN_BRIDGE_TESTS_FUZZ_ARITHMETIC_H_

#include <fpu_control.h>

namespace fuzz {

struct Arithmetic {
  unsigned int mxcsr = __builtin_ia32_stmxcsr() & ~0x3fU;
  fpu_control_t x87 = read_x87();

  bool operator!=(const Arithmetic& other) const {
    return mxcsr != other.mxcsr || x87 != other.x87;
  }

 private:
  static fpu_control_t read_x87() {
    fpu_control_t word = 0;
    _FPU_GETCW(word);
    return word;
  }
};

}  // namespace fuzz

#endif  // ATEN_BRIDGE_TESTS_FUZZ_ARITHMETIC_H_
