// What is known of inputs before a call, and what may be put instead of what is not.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_ABSTRACT_VALUES_H_
#define ATEN_BRIDGE_CALL_ABSTRACT_VALUES_H_

#include <aten_bridge/interface/numbers.h>
#include <aten_bridge/tensors/views.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

constexpr int64_t kUnknownSize = -1;
constexpr int64_t kUnknownRank = -2;  // a shape of this size alone (MindSpore 2.10)

/// Whether none of the sizes is unknown, nor the rank.
[[gnu::cold, gnu::noinline]] inline bool are_known(const std::vector<int64_t>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; });
}

/// What is known of an input before a call.
struct AbstractValue {
  alignas(16) std::array<double, 2> value = {};  // a number's, in the first bytes
  std::vector<int64_t> sizes = {kUnknownRank};
  DType dtype = DType::kNone;  // where `typed` is false, a guess or kNone
  bool typed = false;          // whether the dtype is known; with kNone it is Python's None
  bool has_value = false;
  bool is_number = false;  // whether the kernel reads a number from it

  bool is_none() const { return typed && dtype == DType::kNone; }
  bool has_rank() const { return sizes.size() != 1 || sizes[0] != kUnknownRank; }
  bool is_known() const {
    return is_none() || (typed && (!is_number || has_value) && are_known(sizes));
  }
};

/// Calls `attempt` with the inputs and with dtypes for those whose own is not known, the likeliest
/// first: what the checks say, a guess, float32, and indices, masks and complex numbers among them.
/// Stops at the first for which it returns true, and returns whether it did so.
template <class Attempt>
[[gnu::cold]] bool try_dtypes(std::vector<AbstractValue> inputs, const Attempt& attempt) {
  std::vector<int64_t> open;
  for (AbstractValue& input : inputs) {
    if (!input.typed) {
      const int64_t index = &input - inputs.data();
      open.push_back(index);
      input.dtype = input.dtype == DType::kNone ? DType::kFloat32 : input.dtype;
      input.typed = true;
    }
  }
  const auto attempt_with = [&](const int64_t* indices, std::size_t count, DType dtype) {
    std::vector<AbstractValue> tried = inputs;
    for (std::size_t i = 0; i < count; ++i) {
      tried[static_cast<std::size_t>(indices[i])].dtype = dtype;
    }
    return attempt(tried);
  };
  bool has_worked = attempt_with(nullptr, 0, DType::kNone);
  for (const DType dtype : {DType::kInt64, DType::kBool, DType::kComplex64}) {
    for (std::size_t i = 0; i < open.size() && !has_worked; ++i) {
      has_worked = attempt_with(&open[i], 1, dtype);
    }
    has_worked = has_worked || (open.size() > 1 && attempt_with(open.data(), open.size(), dtype));
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (std::size_t j = 0; j < i && !has_worked; ++j) {
      const int64_t pair[] = {open[i], open[j]};
      has_worked = attempt_with(pair, 2, DType::kInt64);
    }
  }
  return has_worked;
}

/// What may be put instead of what is not known, sizes and numbers: two that most operators
/// take and many numbers divide, small ones, and sizes of the other inputs, which may have to
/// agree. Not 0: meta functions divide by sizes.
[[gnu::cold]] inline std::vector<int64_t> size_candidates(
    const std::vector<AbstractValue>& inputs) {
  std::vector<int64_t> candidates = {60, 120, 1, 2, 3};
  for (const AbstractValue& input : inputs) {
    for (const int64_t size : input.sizes) {
      if (size > 0 && std::find(candidates.begin(), candidates.end(), size) == candidates.end()) {
        candidates.push_back(size);
      }
    }
  }
  return candidates;
}

/// Writes an integer as a number of the input's dtype.
[[gnu::cold]] inline void put_number(AbstractValue& input, int64_t value) {
  const at::Tensor number = make_tensor(input.value.data(), at::kCPU, sizeof(input.value),
                                        /*allocator=*/nullptr, scalar_type(input.dtype), {});
  number.fill_(value);
}

/// Puts `candidate` instead of all that is not known, and `another` instead of one: the
/// `place`th, counted from 0. False if there are not so many.
[[gnu::cold]] inline bool substitute_unknowns(std::vector<AbstractValue>& inputs, int64_t candidate,
                                              int place = -1, int64_t another = 0) {
  int count = 0;
  for (AbstractValue& input : inputs) {
    for (int64_t& size : input.sizes) {
      if (size == kUnknownSize) {
        size = count++ == place ? another : candidate;
      }
    }
    if (!input.is_known()) {
      put_number(input, count++ == place ? another : candidate);
      input.has_value = true;
    }
  }
  return place < count;
}

/// " (inferring from input 0: float32 [-1, 2]; input 1: None)".
[[gnu::cold]] inline std::string inputs_text(const std::vector<AbstractValue>& inputs) {
  std::string text;
  for (const AbstractValue& input : inputs) {
    const int index = static_cast<int>(&input - inputs.data());
    text.append(text.empty() ? " (inferring from " : "; ")
        .append(OperandName{Role::kInput, index}.text())
        .append(": ");
    if (input.is_none()) {
      text += "None";
      continue;
    }
    text.append(input.typed ? dtype_name(input.dtype) : "any dtype").append(1, ' ');
    text += input.has_value ? "number"
            : input.has_rank()
                ? shape_text(input.sizes.data(), static_cast<int>(input.sizes.size()))
                : "of any rank";
  }
  return text + (inputs.empty() ? "" : ")");
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_ABSTRACT_VALUES_H_
