// What a kernel returns is compared with what PyTorch's compilers are told: they allocate and index
// by the meta function alone, and would read behind a result that is smaller.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_TOLD_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_TOLD_H_

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty_strided.h>
#include <aten_bridge/call/steps.h>
#include <aten_bridge/hosts/pytorch/call.h>
#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/tensors/scope.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// A number for the dtypes and sizes of a call's inputs and results, and for what its numbers are.
class CallDigest {
 public:
  explicit CallDigest(const void* instance) { add(reinterpret_cast<std::uintptr_t>(instance)); }

  void add(const at::Tensor& tensor) {
    const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
    const at::IntArrayRef sizes = impl->sizes();
    add(static_cast<std::uint64_t>(c10::typeMetaToScalarType(impl->dtype())) << 32U | sizes.size());
    for (const int64_t size : sizes) {
      add(static_cast<std::uint64_t>(size));
    }
  }

  void add(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) {
      add(value.toTensor());
    } else {
      add_other(value);
    }
  }

  std::uint64_t value() const { return value_; }

 private:
  void add(std::uint64_t number) { value_ = (value_ ^ number) * 0x9e3779b97f4a7c15; }

  [[gnu::noinline]] void add_other(const c10::IValue& value) {
    if (value.isList()) {
      const auto elements = value.toListRef();
      add(elements.size());
      for (const c10::IValue& element : elements) {
        add(element);
      }
    } else if (value.isScalar()) {
      const c10::complex<double> number = value.toScalar().toComplexDouble();
      std::uint64_t bits[2];
      static_assert(sizeof(bits) == sizeof(number));
      std::memcpy(bits, &number, sizeof(bits));
      add(bits[0]);
      add(bits[1]);
      add(static_cast<std::uint64_t>(value.isInt()) + 2);
    } else if (value.isString()) {
      add(std::hash<std::string_view>()(value.toStringRef()));
    } else {
      add(~std::uint64_t{0});
    }
  }

  std::uint64_t value_ = 1;
};

/// The calls of an operator whose results are known to be what is told. Each set of dtypes, sizes
/// and attributes is looked at once, as long as there are not too many of them at a time.
class ToldResults {
 public:
  explicit ToldResults(const PyTorchKernel& kernel) : kernel_(kernel) {}

  /// Whether there are calls of the kernel to be compared: it returns results that a function tells
  /// beforehand, of its own or, of one that may be a gradient, its inputs. The body itself, where
  /// that is the function, is not run once more: it may draw random numbers.
  [[gnu::cold]] static bool is_for(const KernelDescriptor& kernel, bool may_be_gradient) {
    return kernel.returns_results && !kernel.options.is_composite && !kernel.is_gradient &&
           (kernel.has_meta ? !kernel.is_own_meta : may_be_gradient);
  }

  /// Throws `Error` if the results of a call with so many arguments differ from what its inputs
  /// tell. `is_kept`: the instance is kept for good, and is known by its address.
  [[gnu::always_inline]] void compare(const c10::IValue* arguments, std::size_t count,
                                      Instance* instance, bool is_kept, const Tensors& results,
                                      bool is_gradient) {
    CallDigest digest(is_kept ? instance : nullptr);
    const std::size_t told =
        is_kept ? static_cast<std::size_t>(kernel_.kernel->info.inputs) : count;
    for (std::size_t i = 0; i < told; ++i) {
      digest.add(arguments[i]);
    }
    for (const at::Tensor& result : results) {
      digest.add(result);
    }
    std::atomic<std::uint64_t>& last = seen_[digest.value() >> (64 - kBits)];
    if (last.load(std::memory_order_relaxed) != digest.value()) {
      compare_again(arguments, instance, results, is_gradient);
      last.store(digest.value(), std::memory_order_relaxed);
    }
  }

 private:
  // An operator of a network has a few sets of sizes. If there are more, some share an entry, and
  // a call of theirs takes longer by one call of the meta function.
  static constexpr int kBits = 6;

  [[gnu::cold, gnu::noinline]] void compare_again(const c10::IValue* inputs, Instance* instance,
                                                  const Tensors& results, bool is_gradient) const {
    const KernelDescriptor& info = kernel_.kernel->info;
    Tensors told;
    try {
      const KernelScope scope;
      std::vector<c10::IValue> meta;
      for (int i = 0; i < info.inputs; ++i) {
        meta.push_back(as_meta(inputs[i]));  // NOLINT
      }
      PyTorchCall call(kernel_, CallMode::kMeta, is_gradient, meta.data(), /*outs=*/nullptr);
      call.set_instance(instance);
      take_steps(call);
      told = std::move(call.results());
    } catch (const std::exception&) {
      return;  // a caller that asks for the shapes meets this error
    }
    Report report(info.operator_name);
    for (std::size_t i = 0; i < results.size() && i < told.size(); ++i) {
      const bool is_of_none = is_gradient && told[i].numel() == 0;
      if (!is_of_none && (told[i].scalar_type() != results[i].scalar_type() ||
                          told[i].sizes() != results[i].sizes())) {
        report.add(Status::kOutput, output_name(info, i),
                   {tensor_text(told[i]), " as the ",
                    is_gradient ? "input whose gradient it is" : "meta function says", kGot,
                    tensor_text(results[i]), " from the kernel", kDo, "let the two agree"});
      }
    }
    report.raise_if_failed();
  }

  /// The same without data.
  static c10::IValue as_meta(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) {
      const at::Tensor& tensor = value.toTensor();
      return at::empty_strided(tensor.sizes(), tensor.strides(),
                               tensor.options().device(at::kMeta));
    }
    if (!value.isList()) {
      return value;
    }
    c10::List<c10::IValue> list = value.toList().copy();
    for (std::size_t i = 0; i < list.size(); ++i) {
      list.set(i, as_meta(list.get(i)));
    }
    return list;
  }

  const PyTorchKernel& kernel_;
  std::array<std::atomic<std::uint64_t>, std::size_t{1} << kBits> seen_ = {};
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_TOLD_H_
