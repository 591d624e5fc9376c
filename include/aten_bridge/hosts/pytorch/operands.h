// Operands from values of PyTorch's dispatcher, and tensors for results.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_OPERANDS_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_OPERANDS_H_

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <aten_bridge/call/results.h>
#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/interface/operands.h>
#include <aten_bridge/tensors/torch.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What a call is for.
enum class CallMode : std::uint8_t {
  kExecute,
  kMeta,   // shapes and dtypes alone: tensors are without data, and sizes may be symbols
  kTrace,  // the body's operators, by PyTorch
};

/// Whether a tensor's values are not yet conjugated or negated in its memory.
[[gnu::always_inline]] inline bool is_pending(const at::Tensor& tensor) {
  return tensor.key_set().has_any(
      c10::DispatchKeySet({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}));
}

/// Whether a tensor's memory is what loops over data need.
[[gnu::always_inline]] inline bool is_row_major_dense(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !is_pending(tensor);
}

/// The same elements in such memory.
inline at::Tensor to_row_major_dense(const at::Tensor& tensor) {
  return tensor.resolve_conj().resolve_neg().contiguous();
}

/// The same elements as the kernel takes them, which may be in the same memory.
inline at::Tensor to_input(const KernelDescriptor& kernel, CallMode mode,
                           const at::Tensor& tensor) {
  const bool takes_strides =
      kernel.is_strided && mode == CallMode::kExecute && tensor.layout() == at::kStrided;
  return takes_strides ? tensor.resolve_conj().resolve_neg() : to_row_major_dense(tensor);
}

/// A number of the dispatcher's as the operand that a kernel reads it from.
inline void take_number(Operand& operand, const c10::IValue& value) {
  OperandDesc& desc = operand.desc;
  const auto put = [&](auto number, DType dtype) {
    std::memcpy(operand.number, &number, sizeof(number));
    desc.dtype = dtype;
  };
  desc.data = operand.number;
  desc.numel = 1;
  if (value.isBool()) {
    put(value.toBool(), DType::kBool);
  } else if (value.isInt()) {
    put(value.toInt(), DType::kInt64);
  } else if (value.isDouble()) {
    put(value.toDouble(), DType::kFloat64);
  } else if (value.isComplexDouble()) {
    put(value.toComplexDouble(), DType::kComplex128);
  } else {
    TORCH_CHECK(value.isNone(), operand.name.text(), ": expected a number, got ", value.tagKind());
    desc.numel = 0;
  }
}

/// Makes numbers of the symbols among a call's arguments, by PyTorch's guards: a compiled program
/// is made again for other numbers.
[[gnu::cold, gnu::noinline]] inline void make_numbers(c10::IValue* begin, c10::IValue* end) {
  for (c10::IValue* value = begin; value != end; ++value) {
    if (value->isSymInt()) {
      *value = value->toSymInt().guard_int(__FILE__, __LINE__);
    } else if (value->isSymFloat()) {
      *value = value->toSymFloat().guard_float(__FILE__, __LINE__);
    } else if (value->isSymBool()) {
      *value = value->toSymBool().guard_bool(__FILE__, __LINE__);
    }
  }
}

/// The first input that is a tensor; null if there is none.
inline const at::Tensor* first_tensor(const Arguments& arguments) {
  for (int i = 0; i < arguments.inputs; ++i) {
    if (arguments.operands[i].view.defined()) {
      return &arguments.operands[i].view;
    }
  }
  return nullptr;
}

/// The options of a new tensor: those of the first input, or, where there is none, of `device`.
inline at::TensorOptions options_of_first(const Arguments& arguments, c10::Device device) {
  const at::Tensor* const first = first_tensor(arguments);
  return first == nullptr ? at::TensorOptions(device) : first->options();
}

/// As many of the first inputs that are tensors as there are outputs: what those of a gradient are
/// like.
inline Tensors first_inputs(const Arguments& arguments, c10::Device device) {
  Tensors like;
  for (int i = 0; i < arguments.inputs && like.size() < static_cast<std::size_t>(arguments.outputs);
       ++i) {
    const int parameter = input_parameter(arguments, i);
    if (arguments.kernel->bindings[parameter].kind != ParameterKind::kNumber) {
      const at::Tensor& input = arguments.operands[i].view;
      like.push_back(input.defined() ? input : at::empty({0}, options_of_first(arguments, device)));
    }
  }
  return like;
}

/// Whether both are, or may be, in the same memory.
[[gnu::always_inline]] inline bool shares_memory(const at::Tensor& a, const at::Tensor& b) {
  const c10::Storage& storage = a.unsafeGetTensorImpl()->unsafe_storage();
  const c10::Storage& other = b.unsafeGetTensorImpl()->unsafe_storage();
  return a.is_same(b) || (storage && other && storage.is_alias_of(other));
}

/// Fills in what checks and error texts know of an operand, with its data.
[[gnu::always_inline]] inline void describe(Operand& operand, bool has_data, KeptSizes& kept) {
  describe(operand.desc, operand.view, kept);
  if (has_data) {
    operand.desc.data = const_cast<void*>(first_element(operand.view));  // NOLINT: as a view's
  }
}

/// Makes the caller's tensor an operand's, without a share in it.
[[gnu::always_inline]] inline void borrow(Operand& operand, const at::Tensor& tensor) {
  c10::MaybeOwnedTraits<at::Tensor>::assignBorrow(operand.view, tensor);
  operand.is_borrowed = true;
}

[[gnu::always_inline]] inline void give_back(Operand& operand) {
  if (operand.is_borrowed) {
    c10::MaybeOwnedTraits<at::Tensor>::destroyBorrow(operand.view);
    operand.is_borrowed = false;
  }
}

[[gnu::always_inline]] inline void give_back(Operand* begin, const Operand* end) {
  for (; begin != end; ++begin) {
    give_back(*begin);
  }
}

/// Makes a tensor the operand's own.
inline void own(Operand& operand, at::Tensor tensor) {
  give_back(operand);
  operand.view = std::move(tensor);
}

/// Gives the inputs sizes that are numbers, by PyTorch's guards; false if all have such.
[[gnu::cold, gnu::noinline]] inline bool make_sizes_numbers(Arguments& arguments, KeptSizes& kept) {
  bool is_any = false;
  for (int i = 0; i < arguments.inputs; ++i) {
    Operand& operand = arguments.operands[i];
    if (!operand.view.defined() ||
        !operand.view.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
      continue;
    }
    is_any = true;
    std::vector<int64_t> sizes;
    for (const c10::SymInt& size : operand.view.sym_sizes()) {
      sizes.push_back(size.guard_int(__FILE__, __LINE__));
    }
    own(operand, at::empty(sizes, operand.view.options()));
    describe(operand, /*has_data=*/false, kept);
  }
  fill_list(arguments);
  return is_any;
}

/// Copies the sizes of the outputs to where no body changes them.
inline void keep_sizes(const Arguments& arguments, c10::SmallVectorImpl<int64_t>& kept) {
  for (int i = 0; i < arguments.outputs; ++i) {
    const OperandDesc& desc = arguments.output(i).desc;
    kept.append(desc.sizes, desc.sizes + desc.ndim);
  }
  const int64_t* sizes = kept.data();
  for (int i = 0; i < arguments.outputs; ++i) {
    OperandDesc& desc = arguments.output(i).desc;
    desc.sizes = sizes;
    sizes += desc.ndim;
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_OPERANDS_H_
