// What kernels of the fuzzer's do with values: they write them to an output as a text.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_PRINT_H_
#define ATEN_BRIDGE_TESTS_FUZZ_PRINT_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <optional>
#include <string>

#include "text.h"

namespace fuzz {

inline std::string text_of(at::ScalarType type) { return std::to_string(static_cast<int>(type)); }
inline std::string text_of(const at::Scalar& number) {
  if (number.isComplex()) {
    const c10::complex<double> value = number.toComplexDouble();
    return value_text(value.real()) + "+" + value_text(value.imag()) + "j";
  }
  return number.isBoolean()         ? value_text(number.toBool())
         : number.isIntegral(false) ? value_text(number.toLong())
                                    : value_text(number.toDouble());
}
template <class T>
std::string text_of(const T& value) {
  return value_text(value);
}
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "none";
}

template <class... T>
void print(at::Tensor& y, const T&... values) {
  TORCH_CHECK(y.scalar_type() == at::kByte && y.sizes() == at::IntArrayRef(kTextBytes),
              "expected room for a text");
  std::string text;
  (text.append(text_of(values)).append(1, ';'), ...);
  text.resize(static_cast<std::size_t>(kTextBytes));
  y.copy_(at::from_blob(text.data(), y.sizes(), at::kByte));
}
}  // namespace fuzz

#endif  // ATEN_BRIDGE_TESTS_FUZZ_PRINT_H_
