// Operands from values of PyTorch's dispatcher.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_OPERANDS_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_OPERANDS_H_

#include <ATen/core/ivalue.h>
#include <aten_bridge/operands.h>
#include <aten_bridge/torch.h>

#include <cstddef>
#include <cstring>
#include <iterator>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The bridge's name of PyTorch's dtype; kNone for one that it has not.
inline DType dtype_of(at::ScalarType type) {
  for (std::size_t i = 1; i < std::size(kScalarTypes); ++i) {
    if (kScalarTypes[i] == type) {
      return static_cast<DType>(i);
    }
  }
  return DType::kNone;
}

/// A number of the dispatcher's as the operand that a kernel reads it from.
inline void take_number(Operand& operand, const c10::IValue& value) {
  Slot& slot = operand.slot;
  const auto put = [&](auto number, DType dtype) {
    std::memcpy(operand.number, &number, sizeof(number));
    slot.dtype = dtype;
  };
  slot.data = operand.number;
  slot.numel = 1;
  if (value.isBool()) {
    put(value.toBool(), DType::kBool);
  } else if (value.isInt()) {
    put(value.toInt(), DType::kInt64);
  } else if (value.isDouble()) {
    put(value.toDouble(), DType::kFloat64);
  } else if (value.isComplexDouble()) {
    put(value.toComplexDouble(), DType::kComplex128);
  } else {
    slot.numel = 0;
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_OPERANDS_H_
