// PyTorch as a host: tensors as a caller may have them, and boxed calls of operators, as Python
// makes them.
#ifndef ATEN_BRIDGE_TESTS_FUZZ_PYTORCH_HOST_H_
#define ATEN_BRIDGE_TESTS_FUZZ_PYTORCH_HOST_H_

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../unit/arithmetic.h"
#include "memory.h"
#include "operand.h"

namespace fuzz::pytorch {

using Tensors = std::vector<at::Tensor>;

/// Autocast of the CPU, in this thread.
class AutocastGuard {
 public:
  AutocastGuard() { enable(true); }
  ~AutocastGuard() {
    at::autocast::clear_cache();
    enable(false);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  static void enable(bool is_enabled) {
#if PYTORCH_MINOR >= 4
    at::autocast::set_autocast_enabled(at::kCPU, is_enabled);
#else
    at::autocast::set_cpu_enabled(is_enabled);
#endif
  }
};

//===--- tensors ---===//

inline at::ScalarType scalar_type(Type type) {
  return static_cast<at::ScalarType>(info(type).scalar_type);
}

/// Where the elements of a tensor lie, counted in elements.
struct Layout {
  Ints strides;
  int64_t offset = 0;
  bool is_negated = false;  // PyTorch negates it where it is used

  std::size_t place(const Ints& sizes, int64_t index) const {
    int64_t at = offset;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      at += index % sizes[i] * strides[i];
      index /= sizes[i];
    }
    return static_cast<std::size_t>(at);
  }
};

inline Layout row_major(const Ints& sizes) {
  Layout layout;
  layout.strides.assign(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) {
    layout.strides[i - 1] = layout.strides[i] * std::max<int64_t>(sizes[i], 1);
  }
  return layout;
}

/// Row-major, transposed, stepped, with an offset, repeated, or with elements that overlap.
inline Layout choose_layout(Choices& choices, const Ints& sizes) {
  Layout layout;
  layout.strides.resize(sizes.size());
  const int how = choices.below(8);
  const int64_t step = how == 1 ? 1 + choices.below(3) : 1;
  layout.offset = how == 2 || how == 1 ? choices.below(4) : 0;
  layout.is_negated = how == 7;
  int64_t stride = step;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t axis = how == 3 ? i : sizes.size() - 1 - i;
    layout.strides[axis] = stride;
    stride *= std::max<int64_t>(sizes[axis], 1);
  }
  if (!sizes.empty() && how == 4) {
    layout.strides[0] = 0;
  } else if (how == 5) {
    layout.strides.assign(sizes.size(), 1);
  }
  return layout;
}

/// A tensor of the operand's values, in memory that ends at a guard or in PyTorch's own. Where
/// elements share memory the operand gets the values that are there.
inline at::Tensor place(Operand& operand, const Layout& layout, Memory* memory) {
  const std::size_t itemsize = info(operand.type).size;
  const auto options = at::TensorOptions(scalar_type(operand.type));
  const bool is_negated = layout.is_negated && is_float(operand.type);
  std::size_t end = operand.numel() == 0 ? 0 : static_cast<std::size_t>(layout.offset);
  for (int64_t i = 0; i < operand.numel(); ++i) {
    end = std::max(end, layout.place(operand.sizes, i) + 1);
  }
  Bytes bytes(end * itemsize, 0);
  for (int64_t i = 0; i < operand.numel(); ++i) {
    std::memcpy(bytes.data() + layout.place(operand.sizes, i) * itemsize,
                operand.bytes.data() + static_cast<std::size_t>(i) * itemsize, itemsize);
  }
  for (int64_t i = 0; i < operand.numel(); ++i) {
    std::memcpy(operand.bytes.data() + static_cast<std::size_t>(i) * itemsize,
                bytes.data() + layout.place(operand.sizes, i) * itemsize, itemsize);
  }
  at::Tensor flat;
  if (memory != nullptr) {
    flat = at::from_blob(memory->take(bytes.data(), bytes.size()), {static_cast<int64_t>(end)},
                         options);
  } else {
    flat = at::empty({static_cast<int64_t>(end)}, options);
    if (!bytes.empty()) {
      std::memcpy(flat.mutable_data_ptr(), bytes.data(), bytes.size());
    }
  }
  const at::Tensor view =
      flat.as_strided(operand.sizes, layout.strides, end == 0 ? 0 : layout.offset);
  if (!is_negated) {
    return view;
  }
  view.copy_(view.neg());
  return at::_neg_view(view);
}

/// Whether a tensor has the operand's dtype, sizes and values.
inline bool is_equal(const at::Tensor& tensor, const Operand& operand) {
  return tensor.defined() && tensor.device().is_cpu() &&
         tensor.scalar_type() == scalar_type(operand.type) && tensor.sizes() == operand.sizes &&
         has_values(tensor.detach().resolve_neg().resolve_conj().contiguous().const_data_ptr(),
                    operand);
}

/// What a caller's tensor is, which a call must leave as it is.
class Before {
 public:
  explicit Before(at::Tensor tensor)
      : tensor_(std::move(tensor)),
        impl_sizes_(tensor_.sizes().vec()),
        strides_(tensor_.strides().vec()),
        needs_gradient_(tensor_.requires_grad()),
        version_(tensor_.is_inference() ? 0 : tensor_._version()) {
    bytes_.assign(data(), data() + size());
  }

  bool is_in_memory_of(const at::Tensor& other) const {
    return other.defined() && other.has_storage() && tensor_.storage().is_alias_of(other.storage());
  }

  void check() const {
    if (tensor_.sizes() != impl_sizes_ || tensor_.strides() != strides_ ||
        tensor_.requires_grad() != needs_gradient_) {
      fail("an input was changed");
    }
    if (size() != bytes_.size() || !std::equal(bytes_.begin(), bytes_.end(), data()) ||
        (!tensor_.is_inference() && tensor_._version() != version_)) {
      fail("an input was written");
    }
  }

 private:
  const unsigned char* data() const {
    return static_cast<const unsigned char*>(tensor_.storage().data());
  }
  std::size_t size() const { return data() == nullptr ? 0 : tensor_.storage().nbytes(); }

  at::Tensor tensor_;
  Ints impl_sizes_;
  Ints strides_;
  bool needs_gradient_;
  std::uint32_t version_;
  Bytes bytes_;
};

/// The tensors among values, also those of lists.
inline void add_tensors(const c10::IValue& value, Tensors& tensors) {
  if (value.isTensorList()) {
    for (const c10::IValue& element : value.toListRef()) {
      tensors.push_back(element.toTensor());
    }
  } else if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  }
}

//===--- calls ---===//

/// How this thread is set.
struct ThreadState {
  ThreadArithmetic arithmetic;
  bool has_grad_mode = c10::AutogradState::get_tls_state().get_grad_mode();
  bool has_inference_mode = c10::AutogradState::get_tls_state().get_inference_mode();
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  int threads = at::get_num_threads();

  void check() const {
    const ThreadState now;
    if (arithmetic != now.arithmetic || has_grad_mode != now.has_grad_mode ||
        has_inference_mode != now.has_inference_mode || threads != now.threads ||
        keys.included_ != now.keys.included_ || keys.excluded_ != now.keys.excluded_) {
      fail("the thread is set in another way");
    }
  }
};

/// PyTorch warns on stderr where an output is resized.
class Quiet final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

/// What came of something.
struct Answer {
  std::optional<std::string> error;
  Tensors results;
};

/// Calls `f`, which returns tensors. What it throws is an error of PyTorch's, or, where
/// `may_be_any`, another std::exception.
template <class F>
Answer answer_of(const F& f, bool may_be_any = false) {
  const ThreadState before;
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  Answer answer;
  try {
    answer.results = f();
  } catch (const c10::Error& error) {
    answer.error = error.what_without_backtrace();
  } catch (const std::exception& error) {
    if (!may_be_any) {
      fail("an exception that is not PyTorch's:", error.what());
    }
    answer.error = error.what();
  } catch (...) {
    fail("an exception that is not PyTorch's");
  }
  before.check();
  return answer;
}

inline c10::OperatorHandle find_operator(const std::string& name, const std::string& overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(("fuzz::" + name).c_str(),
                                                        overload.c_str());
}
inline bool has_operator(const std::string& name, const std::string& overload) {
  return c10::Dispatcher::singleton().findSchema({"fuzz::" + name, overload}).has_value();
}

inline Tensors call_boxed(const c10::OperatorHandle& handle, c10::Stack stack) {
  handle.callBoxed(&stack);
  Tensors results;
  for (const c10::IValue& value : stack) {
    if (!value.isTensor() && !value.isTensorList()) {
      fail("a result that is no tensor");
    }
    add_tensors(value, results);
  }
  return results;
}

/// Whether a result has the memory of an input, or of another result.
inline void check_memory(const Tensors& results, const Tensors& inputs) {
  const auto is_in_memory_of = [](const at::Tensor& a, const at::Tensor& b) {
    return a.defined() && b.defined() && a.has_storage() && b.has_storage() &&
           a.storage().is_alias_of(b.storage());
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (const at::Tensor& input : inputs) {
      if (is_in_memory_of(results[i], input)) {
        fail("a result in the memory of an input");
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (is_in_memory_of(results[i], results[j])) {
        fail("two results in the same memory");
      }
    }
  }
}

/// A call of a kernel whose results PyTorch's own operators tell.
void call_with_reference(Memory& memory, Choices& choices);

}  // namespace fuzz::pytorch

#endif  // ATEN_BRIDGE_TESTS_FUZZ_PYTORCH_HOST_H_
