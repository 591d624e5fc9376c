// Options of a kernel: attr(), meta(), workspace(), state(), autograd(), data_dependent(),
// strided().
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_KERNEL_OPTIONS_H_
#define ATEN_BRIDGE_KERNEL_OPTIONS_H_

#include <aten_bridge/kernel/values.h>

#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What an option is about; kNone: it is no option.
enum class OptionKind : std::uint8_t {
  kNone,
  kAttribute,
  kMeta,
  kWorkspace,
  kCheck,
  kBody,      // how the function is called
  kOperator,  // set() says it in OperatorOptions
};

/// aten_bridge::meta(function) and aten_bridge::meta().
template <class F>
struct Meta {
  static constexpr OptionKind kKind = OptionKind::kMeta;
  F function;
};
struct MetaSelf {
  static constexpr OptionKind kKind = OptionKind::kMeta;
};

/// aten_bridge::autograd(), data_dependent() and strided().
struct BodyOption {
  static constexpr OptionKind kKind = OptionKind::kBody;
};
struct Autograd : BodyOption {};
struct DataDependent : BodyOption {};
struct Strided : BodyOption {};

struct OperatorOption {
  static constexpr OptionKind kKind = OptionKind::kOperator;
};

/// aten_bridge::name(text).
struct Name : OperatorOption {
  constexpr void set(OperatorOptions& options) const { options.name = text; }
  const char* text;
};

/// aten_bridge::composite().
struct Composite : OperatorOption {
  static constexpr void set(OperatorOptions& options) { options.is_composite = true; }
};

/// aten_bridge::private_use().
struct PrivateUse : OperatorOption {
  static constexpr void set(OperatorOptions& options) { options.is_private_use = true; }
};

/// aten_bridge::side_effect().
struct SideEffect : OperatorOption {
  static constexpr void set(OperatorOptions& options) { options.has_side_effect = true; }
};

/// aten_bridge::autocast(type).
struct Autocast : OperatorOption {
  constexpr void set(OperatorOptions& options) const {
    options.is_cast = true;
    options.cast_to = type;
  }
  at::ScalarType type;
};

/// aten_bridge::gradient(function).
template <class F>
struct GradientOf {
  F function;
};

/// aten_bridge::workspace(elements).
template <class F>
struct WorkspaceOption {
  static constexpr OptionKind kKind = OptionKind::kWorkspace;
  F elements;
};

struct ConstantElements {
  int64_t elements;
  int64_t operator()() const { return elements; }
};

template <class Option, class = OptionKind>
inline constexpr OptionKind kKindOf = OptionKind::kNone;
template <class Option>
inline constexpr OptionKind kKindOf<Option, std::decay_t<decltype(Option::kKind)>> = Option::kKind;
template <class Default>
inline constexpr OptionKind kKindOf<Attr<Default>> = OptionKind::kAttribute;
template <Role kRole>
inline constexpr OptionKind kKindOf<CheckOption<kRole>> = OptionKind::kCheck;

/// The option in a tuple if it is of this kind, else an empty one.
template <OptionKind kKind, class Option>
constexpr auto only([[maybe_unused]] const Option& option) {
  if constexpr (kKindOf<Option> == kKind) {
    return std::tuple<Option>(option);
  } else {
    return std::tuple<>();
  }
}

/// aten_bridge::state<T(P...)>(): a T that is made from P..., once for each instance.
template <class>
struct State;
template <class T, class... P>
struct State<T(P...)> {
  static_assert(std::is_constructible_v<T, P...>,
                "aten_bridge: state<T(P...)>() needs a T that can be made from P...: name the "
                "types of the constructor's parameters.");
  using Object = T;
};

}  // namespace aten_bridge::detail

namespace aten_bridge {

/// Option: the next of the kernel's parameters that is a value (not a tensor) is the attribute
/// `name` of the operator. Its type is the parameter's: bool, int64_t, double, std::string,
/// at::Scalar, at::ScalarType (the dtype's name, such as "float32"), a std::vector of int64_t,
/// double, bool or std::string, a std::vector of vectors of the first two, at::IntArrayRef, or
/// std::optional of these, which is empty where the operator has no such attribute. Nobody converts
/// anything: an int is an error where a float is expected. Where a host has floats as float32, the
/// kernel gets the double of the shortest decimal that names the float32: 0.01 for Python's 0.01.
inline constexpr detail::Attr<detail::NoDefault> attr(const char* name) { return {name, {}}; }

/// The same with a default, for operators that do not set it.
template <class T>
constexpr detail::Attr<T> attr(const char* name, T fallback) {
  return {name, std::move(fallback)};
}
template <class T>
auto attr(const char* name, std::initializer_list<T> fallback) {
  return detail::Attr<detail::DefaultList<T>>{
      name, detail::DefaultList<T>(fallback.begin(), fallback.end())};
}
template <class T>
auto attr(const char* name, std::initializer_list<std::initializer_list<T>> fallback) {
  std::vector<detail::DefaultList<T>> lists;
  for (const std::initializer_list<T>& list : fallback) {
    lists.emplace_back(list.begin(), list.end());
  }
  return detail::Attr<decltype(lists)>{name, std::move(lists)};
}
/// For `attr("name", {})`.
inline constexpr detail::Attr<detail::EmptyList> attr(const char* name, detail::EmptyList empty) {
  return {name, empty};
}

/// Option: `function` tells the shapes and dtypes of the outputs. It takes what the kernel takes,
/// without outputs and workspaces (parameters at the end may be left out), and returns what a
/// functional kernel would, but its tensors are meta tensors: they have a shape and a dtype, and
/// no data. A size that the host does not know yet is tried with several values.
template <class F>
constexpr detail::Meta<F> meta(F function) {
  return {std::move(function)};
}

/// Option: the kernel itself can be run on meta tensors. True for what is composed of ATen's
/// operators, false for what touches data. An output parameter starts as an empty tensor of the
/// dtype of the first input, for an _out function to resize.
constexpr detail::MetaSelf meta() { return {}; }

/// Option: operators in the kernel record a graph, so that the kernel can ask PyTorch's autograd
/// for gradients. Without it they run below autograd.
constexpr detail::Autograd autograd() { return {}; }

/// Option: the sizes of the results depend on the values of the inputs, as those of nonzero do. The
/// function returns its results, and has no meta function. A host that needs sizes first calls it
/// for them (call/result_form.h), or has memory for the largest.
constexpr detail::DataDependent data_dependent() { return {}; }

/// Option: inputs come as they lie in memory, with strides, where the host can give them so: in
/// PyTorch, and in MindSpore's PyNative mode by the native caller. Elements may overlap, as those
/// of an expanded tensor do. Elsewhere, and without the option, an input that is not row-major is
/// copied before the call. Outputs are row-major everywhere; composite() returns what it makes.
constexpr detail::Strided strided() { return {}; }

/// Option: what PyTorch calls the operator, instead of the kernel's name in snake_case. Other
/// hosts do without.
constexpr detail::Name name(const char* text) { return {{}, text}; }

/// Option: the body is made of PyTorch's operators and returns its results. Then PyTorch itself
/// differentiates, traces and fuses it, forward mode and functorch included, and needs no gradient
/// kernel. Inputs come as they lie in memory. Not for kernels with state or workspaces. Other hosts
/// do without.
constexpr detail::Composite composite() { return {}; }

/// Option: also for tensors of a device that is not PyTorch's own (PrivateUse1), by the body as it
/// is: one of PyTorch's operators works, one that touches data would touch the device's.
constexpr detail::PrivateUse private_use() { return {}; }

/// Option: a call does more than to compute its results from its inputs. It draws random numbers
/// from a generator that it was not given, prints, or counts. Hosts that compile programs then make
/// each call: two that are equal stay two, one in a loop stays there, and one whose results nobody
/// reads is made too. A function that neither returns nor writes a tensor of its own needs this
/// option, and no meta function: hosts get `true` from it. A state<T(P...)>() with an operator()
/// that is not const has one by itself.
constexpr detail::SideEffect side_effect() { return {}; }

/// Option: under torch.autocast inputs of floating point are cast to autocast's dtype, or to the
/// one that is named: at::kFloat for a kernel that needs the precision. Without it autocast changes
/// nothing. Other hosts do without.
constexpr detail::Autocast autocast(at::ScalarType type = at::ScalarType::Undefined) {
  return {{}, type};
}

/// In place of the function of ATEN_BRIDGE_EXPORT_GRAD: the gradient of `function`, for the
/// gradient of a gradient.
template <class F>
constexpr detail::GradientOf<std::decay_t<F>> gradient(F&& function) {
  return {std::forward<F>(function)};
}

/// Option: the next Workspace<T> parameter has as many elements as `elements` returns, which takes
/// what the kernel takes, without outputs and workspaces (parameters at the end may be left out),
/// or has always as many. It is asked before each call, and may be asked without data before the
/// first. The memory is the host's where it knew the size in time, else PyTorch's.
template <class F>
constexpr auto workspace(F elements) {
  if constexpr (std::is_integral_v<F>) {
    return detail::WorkspaceOption<detail::ConstantElements>{{elements}};
  } else {
    return detail::WorkspaceOption<F>{std::move(elements)};
  }
}

/// In place of the function: a kernel with state. `state<T(P...)>()` makes one T for each operator
/// of a network, in its first call, from P...: its attributes in the order of the attr options
/// and, where the last P is at::TensorList, the inputs of that first call as meta tensors, without
/// data; the list, not the tensors, ends with the constructor. T's operator() is the kernel. One
/// that is not const is called by one thread at a time.
///
/// What counts as one operator is the host's: a place of a graph, perhaps with the shapes of its
/// inputs, or a set of attributes. Later calls may have other shapes than the first. T is destroyed
/// at the latest when the program ends. A host that keeps nothing has a new T at each call.
template <class Signature>
constexpr detail::State<Signature> state() {
  return {};
}

}  // namespace aten_bridge

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_KERNEL_OPTIONS_H_
