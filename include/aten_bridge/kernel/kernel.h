// A kernel: a function with its options, behind KernelBase.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_KERNEL_KERNEL_H_
#define ATEN_BRIDGE_KERNEL_KERNEL_H_

#include <aten_bridge/interface/kernel_base.h>
#include <aten_bridge/kernel/no_result.h>
#include <aten_bridge/kernel/options.h>
#include <aten_bridge/kernel/signature.h>
#include <aten_bridge/tensors/exceptions.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What the host keeps for a kernel with attributes or state.
template <class AttributeTuple, class Object>
class KernelInstance final : public Instance {
 public:
  explicit KernelInstance(AttributeTuple values) : Instance(&values_), values_(std::move(values)) {}

  std::optional<Object> object;      // the state, made before the first call
  std::atomic<bool> is_made{false};  // it may be used without the mutex where it is const

 private:
  AttributeTuple values_;
};

/// How many of the checks are for inputs, or for outputs.
template <Role kRole, class CheckTuple>
inline constexpr int kCheckCount = 0;
template <Role kRole, Role... kRoles>
inline constexpr int kCheckCount<kRole, std::tuple<CheckOption<kRoles>...>> =
    (0 + ... + (kRoles == kRole ? 1 : 0));

/// A kernel as ATEN_BRIDGE_EXPORT makes it.
template <class F, class AttrTuple, class MetaTuple, class WorkspaceTuple, class CheckTuple,
          bool kRecords, bool kDataDependent, bool kStrided>
class Kernel final : public KernelBase {
  using Function = typename Body<F>::Function;
  using ParameterPackType = typename Function::ParameterPackType;
  using AttributePack = typename Body<F>::AttributePack;
  using ResultType = typename Function::ResultType;

  static constexpr bool kHasState = Body<F>::kHasState;
  static constexpr int kAttributes = static_cast<int>(std::tuple_size_v<AttrTuple>);
  static_assert(kAttributes <= AttributePack::count(ParameterKind::kValue),
                "aten_bridge: there are more aten_bridge::attr options than parameters of types "
                "that attributes have.");
  static_assert(!kHasState || kAttributes == AttributePack::count(ParameterKind::kValue),
                "aten_bridge: each value that the state is made from is an attribute: add an "
                "aten_bridge::attr option for it.");
  using AttributeTuple = First<typename AttributePack::Values, std::tuple_size_v<AttrTuple>>;
  using FunctionAttributes = std::conditional_t<kHasState, std::tuple<>, AttributeTuple>;
  using InstanceType = KernelInstance<AttributeTuple, typename Body<F>::Object>;

  static constexpr std::size_t kChecks = std::tuple_size_v<CheckTuple>;

  static constexpr bool kIsRaw = ParameterPackType::count(ParameterKind::kFrame) > 0;
  static constexpr int kInputs = ParameterPackType::inputs(std::tuple_size_v<FunctionAttributes>);
  static constexpr int kResults = Result<ResultType>::kCount;
  static constexpr int kOutputs = ParameterPackType::count(ParameterKind::kOutput) + kResults;
  static constexpr int kWorkspaces = ParameterPackType::count(ParameterKind::kWorkspace);

  static_assert(!kIsRaw || ParameterPackType::kParameters == 1,
                "aten_bridge: a kernel over a CallFrame has no other parameter.");
  static_assert(!kIsRaw || std::is_void_v<ResultType>,
                "aten_bridge: a kernel over a CallFrame returns void.");
  static_assert(!kIsRaw || (std::tuple_size_v<AttrTuple> + std::tuple_size_v<MetaTuple> +
                            std::tuple_size_v<WorkspaceTuple> + kChecks + kStrided) == 0,
                "aten_bridge: a kernel over a CallFrame has no options.");
  static_assert(kResults == 0 || kOutputs == kResults,
                "aten_bridge: a kernel either writes its at::Tensor& parameters or returns its "
                "results, not both.");
  static_assert(!kDataDependent || (kResults > 0 && std::tuple_size_v<MetaTuple> == 0),
                "aten_bridge: a kernel with aten_bridge::data_dependent() returns its results, and "
                "has no meta function: nobody knows their sizes before it has run.");
  static_assert(ParameterPackType::count(ParameterKind::kTensorList) <= 1,
                "aten_bridge: a kernel has at most one at::TensorList: nothing says where one ends "
                "and the next begins.");
  static_assert(kWorkspaces == std::tuple_size_v<WorkspaceTuple>,
                "aten_bridge: each Workspace parameter needs an aten_bridge::workspace option, and "
                "each option a parameter.");
  static_assert(std::tuple_size_v<MetaTuple> <= 1,
                "aten_bridge: a kernel has at most one aten_bridge::meta option.");
  static_assert(kIsRaw || kCheckCount<Role::kInput, CheckTuple> <= kInputs,
                "aten_bridge: there are more aten_bridge::input options than inputs.");
  static_assert(kIsRaw || kCheckCount<Role::kOutput, CheckTuple> <= kOutputs,
                "aten_bridge: there are more aten_bridge::output options than outputs.");

 public:
  static constexpr auto kBindings =
      ParameterPackType::template bindings<kInputs>(std::tuple_size_v<FunctionAttributes>);
  static constexpr KernelTraits kTraits = [] {
    KernelTraits traits;
    traits.bindings = kBindings.data();
    traits.check_count = static_cast<int>(kChecks);
    traits.inputs = kInputs;
    traits.outputs = kOutputs;
    traits.list_begin = ParameterPackType::list_begin(std::tuple_size_v<FunctionAttributes>);
    traits.workspaces = kWorkspaces;
    traits.is_raw = kIsRaw;
    traits.has_instance = kHasState || kAttributes > 0;
    traits.has_meta = std::tuple_size_v<MetaTuple> != 0;
    traits.records = kRecords;
    traits.is_data_dependent = kDataDependent;
    traits.is_strided = kStrided;
    traits.returns_results = kResults > 0;
    traits.is_own_meta = std::is_same_v<MetaTuple, std::tuple<MetaSelf>>;
    traits.returns_row_major = kStrided || (kResults > 0 && !traits.is_own_meta);
    traits.has_state = kHasState;
    traits.changes_state = Body<F>::kChanges;
    return traits;
  }();

  constexpr Kernel(const OperatorDescriptor& descriptor, F function, AttrTuple attrs,
                   MetaTuple meta, WorkspaceTuple workspaces, const CheckTuple& checks)
      : KernelBase(KernelDescriptor{descriptor, kTraits}),
        function_(std::move(function)),
        attrs_(std::move(attrs)),
        meta_(std::move(meta)),
        workspaces_(std::move(workspaces)),
        checks_(std::apply(
            [](const auto&... check) { return std::array<OperandCheck, kChecks>{check...}; },
            checks)) {
    info.checks = checks_.data();
  }

  void invoke(const Arguments& arguments) const override {
    with_function(arguments, [&](auto& function) {
      if constexpr (std::is_void_v<ResultType>) {
        Function::template call<FunctionAttributes>(function, arguments);
      } else if constexpr (kResults == 0) {
        const auto returned =
            address_array(Function::template call<FunctionAttributes>(function, arguments));
        check_returned(arguments, returned.data(), static_cast<int>(returned.size()));
      } else {
        auto results =
            result_array(Function::template call<FunctionAttributes>(function, arguments));
        arguments.results->take(arguments, results.data(), kResults);
      }
    });
  }

  /// What the function returns.
  std::vector<at::Tensor> results(const Arguments& arguments) const {
    std::vector<at::Tensor> results;
    with_function(arguments, [&](auto& function) {
      auto array = result_array(Function::template call<FunctionAttributes>(function, arguments));
      results.assign(array.begin(), array.end());
    });
    return results;
  }

  [[gnu::cold]] std::unique_ptr<Instance> make_instance(
      [[maybe_unused]] const Attributes& attributes,
      [[maybe_unused]] Report& report) const override {
    return make_instance(attributes, report, std::make_index_sequence<std::size_t{kAttributes}>());
  }

  Tensors infer([[maybe_unused]] const Arguments& arguments) const override {
    if constexpr (kTraits.is_own_meta) {
      static_assert(!kHasState && kWorkspaces == 0,
                    "aten_bridge: a kernel with state or workspaces touches data, so that "
                    "aten_bridge::meta() needs a function: aten_bridge::meta(function).");
      if constexpr (kResults == 0) {
        Function::template call<FunctionAttributes>(function_, arguments);
        return output_views(arguments);
      } else {
        return to_tensors(
            result_array(Function::template call<FunctionAttributes>(function_, arguments)));
      }
    } else if constexpr (std::tuple_size_v<MetaTuple> != 0) {
      return infer_by(std::get<0>(meta_).function, arguments);
    } else if constexpr (kDataDependent) {
      raise(Status::kValues, {info.operator_name, kDependsOnValues});
    } else {
      raise(Status::kShape,
            {info.operator_name, ": expected ", arguments.messages->results,
             " where the operator is made, or a kernel with a meta function, got "
             "neither; add aten_bridge::meta(function) or aten_bridge::meta() to the "
             "kernel's export"});
    }
  }

  void measure_workspaces([[maybe_unused]] const Arguments& arguments,
                          [[maybe_unused]] int64_t* elements,
                          [[maybe_unused]] ElementLayout* layouts) const override {
    if constexpr (kWorkspaces > 0) {
      constexpr auto kLayouts = ParameterPackType::template element_layouts<kWorkspaces>();
      std::copy(kLayouts.begin(), kLayouts.end(), layouts);
      std::apply(
          [&](const auto&... option) {
            ((*elements++ = measure(option.elements, arguments)), ...);
          },
          workspaces_);
    }
  }

  [[gnu::cold]] void visit_attributes([[maybe_unused]] AttributeVisitor& visitor) const override {
    visit_attributes(visitor, std::make_index_sequence<std::size_t{kAttributes}>());
  }

 private:
  /// Calls `use` with the function, or with the state, which the first call makes.
  template <class Use>
  void with_function(const Arguments& arguments, const Use& use) const {
    if constexpr (kHasState) {
      auto& instance = static_cast<InstanceType&>(*arguments.instance);
      if (Function::kConst && instance.is_made.load(std::memory_order_acquire)) {
        use(*instance.object);
        return;
      }
      std::unique_lock<std::recursive_mutex> lock(instance.mutex);
      if (!instance.object.has_value()) {
        arguments.around_state(info.operator_name, arguments.stream, /*is_made=*/false);
        Tensors metas = meta_inputs(arguments);
        Arguments first;
        first.kernel = &info;
        first.instance = &instance;
        first.list = &metas;
        try {
          Body<F>::template make<AttributeTuple>(instance.object, first);
        } catch (const std::exception& error) {
          rethrow_state_error(info.operator_name, error);
        }
        arguments.around_state(info.operator_name, arguments.stream, /*is_made=*/true);
        instance.is_made.store(true, std::memory_order_release);
      }
      if constexpr (Function::kConst) {
        lock.unlock();
      }
      use(*instance.object);
    } else {
      use(function_);
    }
  }

  template <std::size_t... I>
  std::unique_ptr<Instance> make_instance([[maybe_unused]] const Attributes& attributes,
                                          [[maybe_unused]] Report& report,
                                          std::index_sequence<I...> /*indices*/) const {
    return std::make_unique<InstanceType>(
        AttributeTuple{read_attribute<std::tuple_element_t<I, AttributeTuple>>(
            attributes, std::get<I>(attrs_), report)...});
  }

  template <std::size_t... I>
  void visit_attributes([[maybe_unused]] AttributeVisitor& visitor,
                        std::index_sequence<I...> /*indices*/) const {
    (visit_attribute<std::tuple_element_t<I, AttributeTuple>>(std::get<I>(attrs_), visitor), ...);
  }

  /// Whether a meta function, or one for a workspace, takes what this kernel takes.
  template <class G>
  static constexpr bool takes_the_same() {
    using Other = typename Signature<G>::ParameterPackType;
    constexpr std::size_t kValues = std::min<std::size_t>(std::tuple_size_v<typename Other::Values>,
                                                          std::tuple_size_v<AttributeTuple>);
    constexpr int kOtherInputs = Other::inputs(kAttributes);
    if constexpr (Other::count(ParameterKind::kOutput) + Other::count(ParameterKind::kWorkspace) +
                          Other::count(ParameterKind::kFrame) ==
                      0 &&
                  kOtherInputs <= kInputs &&
                  std::is_same_v<First<typename Other::Values, kValues>,
                                 First<AttributeTuple, kValues>>) {
      constexpr auto kOther = Other::template bindings<kOtherInputs>(kAttributes);
      for (int i = 0; i < kOtherInputs; ++i) {
        if (kOther[static_cast<std::size_t>(i)] != kBindings[static_cast<std::size_t>(i)]) {
          return false;
        }
      }
      return true;
    }
    return false;
  }

  template <class G>
  static Tensors infer_by(const G& function, const Arguments& arguments) {
    static_assert(takes_the_same<G>(),
                  "aten_bridge: a meta function takes the inputs and attributes that its kernel "
                  "takes, with the same types and in the same order, and no outputs.");
    static_assert(Result<typename Signature<G>::ResultType>::kCount == kOutputs,
                  "aten_bridge: a meta function returns one at::Tensor for each output of its "
                  "kernel, several in a std::tuple.");
    return to_tensors(
        result_array(Signature<G>::template call<AttributeTuple>(function, arguments)));
  }

  template <class G>
  static int64_t measure(const G& function, const Arguments& arguments) {
    static_assert(takes_the_same<G>(),
                  "aten_bridge: the function of a workspace takes the inputs and attributes that "
                  "its kernel takes, with the same types and in the same order, and no outputs.");
    static_assert(std::is_integral_v<typename Signature<G>::ResultType>,
                  "aten_bridge: the function of a workspace returns its number of elements.");
    return static_cast<int64_t>(Signature<G>::template call<AttributeTuple>(function, arguments));
  }

  template <std::size_t N>
  static Tensors to_tensors(std::array<at::Tensor, N> from) {
    Tensors tensors;
    for (at::Tensor& tensor : from) {
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  F function_;
  AttrTuple attrs_;
  MetaTuple meta_;
  WorkspaceTuple workspaces_;
  std::array<OperandCheck, kChecks> checks_;
};

/// Whether the options have one of this type.
template <class Wanted, class... Option>
inline constexpr bool kHasOption = (false || ... || std::is_same_v<Option, Wanted>);

/// The descriptor with what the options say of the operator; not all say something.
template <class... Option>
constexpr OperatorDescriptor with_options(OperatorDescriptor descriptor, const Option&... options) {
  [[maybe_unused]] const auto set = [&descriptor](const auto& option) {
    if constexpr (kKindOf<std::decay_t<decltype(option)>> == OptionKind::kOperator) {
      option.set(descriptor.options);
    }
  };
  (set(options), ...);
  return descriptor;
}

template <class F, class... Option>
constexpr auto make_kernel(const OperatorDescriptor& descriptor, F&& function,
                           const Option&... options) {
  auto attrs = std::tuple_cat(only<OptionKind::kAttribute>(options)...);
  auto metas = std::tuple_cat(only<OptionKind::kMeta>(options)...);
  auto workspaces = std::tuple_cat(only<OptionKind::kWorkspace>(options)...);
  auto checks = std::tuple_cat(only<OptionKind::kCheck>(options)...);
  static_assert((true && ... && (kKindOf<Option> != OptionKind::kNone)),
                "aten_bridge: after the function of a kernel come options: aten_bridge::attr, "
                "meta, workspace, input, output, data_dependent, strided, autograd, name, "
                "composite, private_use, autocast and side_effect.");
  if constexpr (kHasOption<Composite, Option...>) {
    static_assert(
        Result<typename Body<std::decay_t<F>>::Function::ResultType>::kCount > 0 &&
            !Body<std::decay_t<F>>::kHasState && std::tuple_size_v<decltype(workspaces)> == 0,
        "aten_bridge: a kernel with aten_bridge::composite() returns its results, and has "
        "neither state nor workspaces: nothing but operators is traced.");
  }
  if constexpr (kHasOption<SideEffect, Option...> && has_no_result<std::decay_t<F>>()) {
    using Function = std::decay_t<F>;
    using Parameters = typename Body<Function>::Function::ParameterPackType;
    return make_kernel(descriptor, WithResult<Function, Parameters>(std::forward<F>(function)),
                       options..., Meta<at::Tensor (*)()>{&meta_of_no_result});
  } else {
    return Kernel<std::decay_t<F>, decltype(attrs), decltype(metas), decltype(workspaces),
                  decltype(checks), kHasOption<Autograd, Option...>,
                  kHasOption<DataDependent, Option...>, kHasOption<Strided, Option...>>(
        with_options(descriptor, options...), std::forward<F>(function), attrs, metas, workspaces,
        checks);
  }
}

/// Whether no input is read as a list or a dtype.
template <std::size_t N>
constexpr bool reads_numbers_only(const std::array<ParameterInfo, N>& bindings) {
  for (const ParameterInfo& binding : bindings) {  // NOLINT: std::all_of is not constexpr in C++17
    if (!is_one_number(binding.number) && binding.kind == ParameterKind::kNumber) {
      return false;
    }
  }
  return true;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_KERNEL_KERNEL_H_
