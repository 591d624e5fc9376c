// Gradient kernels, made of the kernels whose gradients they are.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_KERNEL_GRADIENT_H_
#define ATEN_BRIDGE_KERNEL_GRADIENT_H_

#include <aten_bridge/interface/gradient_base.h>
#include <aten_bridge/kernel/kernel.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

template <class Forward>
class GradientKernel final : public GradientBase {
  static_assert(Forward::kTraits.returns_results || Forward::kTraits.lists_outputs,
                "aten_bridge: a gradient is that of a function that returns its results; for one "
                "that writes its at::Tensor& parameters, write the gradient by hand and export it "
                "with ATEN_BRIDGE_EXPORT.");
  static_assert(!Forward::kTraits.changes_state,
                "aten_bridge: a state that changes from call to call has no gradient kernel by "
                "autograd, which would have a state of its own; make operator() const, or write "
                "the gradient by hand.");
  static_assert(!Forward::kTraits.lists_outputs,
                "aten_bridge: the gradient of a function of an at::TensorList has no gradient "
                "kernel; write one by hand.");

  static constexpr bool kHasList = Forward::kTraits.list_begin >= 0;

  static constexpr int tensors() {
    int count = 0;
    for (const ParameterInfo& binding : Forward::kBindings) {
      count +=
          binding.kind == ParameterKind::kTensor || binding.kind == ParameterKind::kOptionalTensor
              ? 1
              : 0;
    }
    return count;
  }
  static_assert(tensors() > 0 || kHasList,
                "aten_bridge: a gradient needs an input that is a tensor.");

  static constexpr int kInputs = Forward::kTraits.inputs + Forward::kTraits.outputs;

  static constexpr auto bindings() {
    constexpr std::size_t kForwardInputs = Forward::kTraits.inputs;
    std::array<ParameterInfo, static_cast<std::size_t>(kInputs)> all = {};
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = i < kForwardInputs ? Forward::kBindings[i]
                                  : ParameterInfo{ParameterKind::kTensor, ScalarInputType::kNone,
                                                  /*optional=*/true};
    }
    return all;
  }

 public:
  static constexpr auto kBindings = bindings();
  static constexpr KernelTraits kTraits = [] {
    KernelTraits traits = Forward::kTraits;
    traits.bindings = kBindings.data();
    traits.inputs = kInputs;
    traits.outputs = tensors();
    traits.lists_outputs = kHasList;
    traits.has_meta = true;
    traits.is_gradient = true;
    traits.is_data_dependent = false;
    traits.records = true;
    traits.returns_results = true;
    traits.is_own_meta = false;
    traits.returns_row_major = true;
    return traits;
  }();

  /// `make_forward` returns the kernel that is differentiated.
  template <class MakeForward>
  explicit constexpr GradientKernel(const MakeForward& make_forward)
      : GradientBase(KernelDescriptor{{}, kTraits}, Forward::kTraits.inputs,
                     /*of_function=*/!Forward::kTraits.is_gradient),
        forward_(make_forward()) {
    static_cast<OperatorDescriptor&>(info) = forward_.info;
    info.options.name = nullptr;  // the forward kernel has them
    info.options.is_composite = false;
    info.options.is_cast = false;
    info.checks = forward_.info.checks;
  }

  [[gnu::cold]] std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                                        Report& report) const override {
    return forward_.make_instance(attributes, report);
  }

  void measure_workspaces(const Arguments& arguments, int64_t* elements,
                          ElementLayout* layouts) const override {
    forward_.measure_workspaces(arguments, elements, layouts);
  }

  [[gnu::cold]] void visit_attributes(AttributeVisitor& visitor) const override {
    forward_.visit_attributes(visitor);
  }

 private:
  std::vector<at::Tensor> forward(const Arguments& arguments) const override {
    return forward_.results(arguments);
  }

  Forward forward_;
};

template <class F>
inline constexpr bool kIsGradient = false;
template <class F>
inline constexpr bool kIsGradient<GradientOf<F>> = true;

template <class F, class... Option>
constexpr auto make_gradient_kernel(const OperatorDescriptor& descriptor, F&& function,
                                    const Option&... options) {
  const auto make_forward = [&] {
    if constexpr (kIsGradient<std::decay_t<F>>) {
      return make_gradient_kernel(descriptor, std::forward<F>(function).function, options...);
    } else {
      return make_kernel(descriptor, std::forward<F>(function), options...);
    }
  };
  return GradientKernel<decltype(make_forward())>(make_forward);
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_KERNEL_GRADIENT_H_
