// Parameters: from the types of a function's parameters to the operands of a call.
//
// Templates only list what a signature asks for (`Parameter`, `ParameterPack`) and spread what a
// call brings over the arguments (`argument`). Decoding, checking and reporting is ordinary code
// for all kernels, so that a library with many kernels stays small.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_KERNEL_PARAMETERS_H_
#define ATEN_BRIDGE_KERNEL_PARAMETERS_H_

#include <aten_bridge/interface/numbers.h>
#include <aten_bridge/interface/operands.h>
#include <aten_bridge/kernel/values.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// How a parameter of type P binds. For instance `const at::Tensor&` takes the next input, and what
/// it gets is that input's view.
template <class P>
struct Parameter {
  static constexpr ParameterKind kKind = ParameterKind::kValue;
};

template <>
struct Parameter<const at::Tensor&> {
  static constexpr ParameterKind kKind = ParameterKind::kTensor;
  static const at::Tensor& get(const Arguments& arguments, int index) {
    return arguments.input(index).view;
  }
};
template <>
struct Parameter<at::Tensor> : Parameter<const at::Tensor&> {};

template <class Optional>
struct OptionalInput {
  static constexpr ParameterKind kKind = ParameterKind::kOptionalTensor;
  static Optional get(const Arguments& arguments, int index) {
    const at::Tensor& view = arguments.input(index).view;
    return view.defined() ? Optional(view) : Optional();
  }
};
template <>
struct Parameter<const std::optional<at::Tensor>&> : OptionalInput<std::optional<at::Tensor>> {};
template <>
struct Parameter<std::optional<at::Tensor>> : OptionalInput<std::optional<at::Tensor>> {};

template <>
struct Parameter<at::TensorList> {
  static constexpr ParameterKind kKind = ParameterKind::kTensorList;
  static at::TensorList get(const Arguments& arguments, int /*index*/) { return *arguments.list; }
};

template <>
struct Parameter<at::Tensor&> {
  static constexpr ParameterKind kKind = ParameterKind::kOutput;
  static at::Tensor& get(const Arguments& arguments, int index) {
    return arguments.output(index).view;
  }
};

template <class T>
inline constexpr ElementLayout kElementLayout = {};
// All hosts align their memory for plain numbers (MindSpore 2.10 to 16 bytes).
template <class T>
inline constexpr ElementLayout kElementLayout<Workspace<T>> = {
    sizeof(T), alignof(T) > alignof(std::max_align_t) ? alignof(T) - 1 : 0};

template <class T>
struct Parameter<Workspace<T>> {
  static constexpr ParameterKind kKind = ParameterKind::kWorkspace;
  static Workspace<T> get(const Arguments& arguments, int index) {
    const Memory& memory = arguments.workspaces[index];
    constexpr ElementLayout kLayout = kElementLayout<Workspace<T>>;
    void* data = memory.data;
    std::size_t bytes = memory.bytes;
    if (kLayout.slack > 0) {
      data = std::align(alignof(T), bytes - kLayout.slack, data, bytes);
    }
    return {data, (memory.bytes - kLayout.slack) / sizeof(T)};
  }
};
template <class T>
struct Parameter<const Workspace<T>&> : Parameter<Workspace<T>> {};

/// What a std::optional or a std::vector is made of.
template <class T>
struct ElementOf {
  using Type = T;
};
template <class T>
struct ElementOf<std::optional<T>> : ElementOf<T> {};
template <class T>
struct ElementOf<std::vector<T>> : ElementOf<T> {};

/// One parameter of a kernel, so that what a compiler says of it names its number and its type.
template <std::size_t kNumber, class P>
struct KernelParameter {
  using Element = typename ElementOf<Plain<P>>::Type;
  static constexpr bool kIsInteger = std::is_integral_v<Element> &&
                                     !std::is_same_v<Element, int64_t> &&
                                     !std::is_same_v<Element, bool>;
  static constexpr bool kIsFloat = std::is_same_v<Element, float>;

  static_assert(
      !kIsInteger,
      "aten_bridge: the integers of a kernel are int64_t, its parameter number kNumber of "
      "KernelParameter<kNumber, type> has another one; write int64_t.");
  static_assert(!kIsFloat,
                "aten_bridge: the floating-point numbers of a kernel are double, its parameter "
                "number kNumber of KernelParameter<kNumber, type> is a float; write double.");
  static_assert(kIsInteger || kIsFloat || Parameter<P>::kKind != ParameterKind::kValue ||
                    (Value<Plain<P>>::kSupported &&
                     (!std::is_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>)),
                "aten_bridge: a kernel's parameters are const at::Tensor& or at::Tensor for an "
                "input, const std::optional<at::Tensor>& for an input that may be None, "
                "at::TensorList for any number of inputs, at::Tensor& for an output, "
                "aten_bridge::Workspace<T> for a workspace, and for attributes and numbers bool, "
                "int64_t (not int), double (not float), at::Scalar, at::ScalarType, std::string, "
                "std::vector of int64_t, double, bool or std::string, std::vector of the first two "
                "of these, at::IntArrayRef, and std::optional of these; or const "
                "aten_bridge::CallFrame& alone.");
};

template <class Indices, class... P>
struct KernelParameters;
template <std::size_t... I, class... P>
struct KernelParameters<std::index_sequence<I...>, P...> : KernelParameter<I + 1, P>... {};

/// Where the argument of a parameter comes from: its kind, and its number within that kind.
struct ArgumentSource {
  ParameterKind kind = ParameterKind::kFrame;
  int index = 0;
};

/// What a list of parameters takes from a call when the first `attributes` of its values are
/// attributes. Numbers are inputs.
template <class... P>
struct ParameterPack : KernelParameters<std::index_sequence_for<P...>, P...> {
  static constexpr int kParameters = sizeof...(P);

  static constexpr int count([[maybe_unused]] ParameterKind kind) {
    return (0 + ... + (Parameter<P>::kKind == kind ? 1 : 0));
  }

  static constexpr std::array<ArgumentSource, sizeof...(P)> sources(int attributes) {
    constexpr ParameterKind kKinds[] = {Parameter<P>::kKind..., ParameterKind::kFrame};
    std::array<ArgumentSource, sizeof...(P)> sources = {};
    int inputs = 0;
    int outputs = 0;
    int values = 0;
    int workspaces = 0;
    for (std::size_t i = 0; i < kParameters; ++i) {
      switch (kKinds[i]) {
        case ParameterKind::kValue:
          sources[i] = values < attributes ? ArgumentSource{ParameterKind::kAttribute, values}
                                           : ArgumentSource{ParameterKind::kNumber, inputs++};
          ++values;
          break;
        case ParameterKind::kOutput:
          sources[i] = {kKinds[i], outputs++};
          break;
        case ParameterKind::kWorkspace:
          sources[i] = {kKinds[i], workspaces++};
          break;
        case ParameterKind::kFrame:
          break;
        default:
          sources[i] = {kKinds[i], inputs++};
      }
    }
    return sources;
  }

  /// How many inputs there are; an at::TensorList is one.
  static constexpr int inputs(int attributes) {
    const int numbers = count(ParameterKind::kValue) - attributes;
    return count(ParameterKind::kTensor) + count(ParameterKind::kOptionalTensor) +
           count(ParameterKind::kTensorList) + (numbers > 0 ? numbers : 0);
  }

  /// Which of the inputs is the at::TensorList; -1: none.
  static constexpr int list_begin(int attributes) {
    for (const ArgumentSource& source : sources(attributes)) {
      if (source.kind == ParameterKind::kTensorList) {
        return source.index;
      }
    }
    return -1;
  }

  /// What the inputs are, in their order. `N` is their number.
  template <std::size_t N>
  static constexpr std::array<ParameterInfo, N> bindings(int attributes) {
    constexpr ScalarInputType kNumbers[] = {Value<Plain<P>>::kNumber..., ScalarInputType::kNone};
    constexpr bool kOptional[] = {kIsOptional<Plain<P>>..., false};
    const auto from = sources(attributes);
    std::array<ParameterInfo, N> bindings = {};
    for (std::size_t i = 0, input = 0; i < kParameters; ++i) {
      const ParameterKind kind = from[i].kind;
      if (kind == ParameterKind::kTensor || kind == ParameterKind::kOptionalTensor ||
          kind == ParameterKind::kTensorList || kind == ParameterKind::kNumber) {
        bindings[input++] = {kind, kNumbers[i], kOptional[i]};
      }
    }
    return bindings;
  }

  /// How the elements of each workspace lie. `N` is the number of workspaces.
  template <std::size_t N>
  static constexpr std::array<ElementLayout, N> element_layouts() {
    constexpr ElementLayout kLayouts[] = {kElementLayout<Plain<P>>..., ElementLayout()};
    std::array<ElementLayout, N> layouts = {};
    std::size_t count = 0;
    for (const ElementLayout& layout : kLayouts) {
      if (layout.size > 0) {
        layouts[count++] = layout;
      }
    }
    return layouts;
  }

  /// std::tuple of how the values are kept, in their order.
  using Values = decltype(std::tuple_cat(
      std::declval<
          std::conditional_t<Parameter<P>::kKind == ParameterKind::kValue,
                             std::tuple<typename Value<Plain<P>>::Stored>, std::tuple<>>>()...));
};

/// The first N types of a std::tuple.
template <class Tuple, class Indices>
struct FirstOf;
template <class Tuple, std::size_t... I>
struct FirstOf<Tuple, std::index_sequence<I...>> {
  using Type = std::tuple<std::tuple_element_t<I, Tuple>...>;
};
template <class Tuple, std::size_t N>
using First = typename FirstOf<Tuple, std::make_index_sequence<N>>::Type;

/// The list in an input for a parameter that only refers to it: lives as long as the call. Up to
/// eight elements need no memory of the heap's.
template <class View, class Element>
struct ListCaster {
  explicit ListCaster(const OperandDesc& desc)
      : is_none(desc.is_none()), stored(is_none ? Stored() : list_as<Stored>(desc)) {}
  operator View() const {  // NOLINT(*-explicit-*)
    return is_none ? View() : View(at::ArrayRef<Element>(stored));
  }

  using Stored = c10::SmallVector<Element, 8>;
  bool is_none;
  Stored stored;
};

/// The same of a number: PyTorch before 2.2 has an optional of its own.
template <class View>
struct NumberCaster {
  explicit NumberCaster(const OperandDesc& desc) {
    if constexpr (kIsOptional<View>) {
      if (!desc.is_none()) {
        stored = number_as<typename Stored::value_type>(desc);
      }
    } else {
      stored = number_as<Stored>(desc);
    }
  }
  operator View() const { return Value<View>::get(stored); }  // NOLINT(*-explicit-*)

  using Stored = typename Value<View>::Stored;
  Stored stored{};
};

/// The argument for a parameter of type P; `AttributeTuple` is what the call's instance keeps.
template <class P, class AttributeTuple, ParameterKind kind, int index>
decltype(auto) argument(const Arguments& arguments) {
  if constexpr (kind == ParameterKind::kAttribute) {
    return Value<Plain<P>>::get(
        std::get<index>(*static_cast<const AttributeTuple*>(arguments.instance->attributes())));
  } else if constexpr (kind == ParameterKind::kNumber) {
    static_assert(Value<Plain<P>>::kNumber != ScalarInputType::kNone,
                  "aten_bridge: only bool, int64_t, double, at::Scalar and std::optional of these "
                  "are read from an input; a parameter of another type takes an attribute: add "
                  "aten_bridge::attr(\"name\") for it.");
    using Stored = typename Value<Plain<P>>::Stored;
    const OperandDesc& desc = arguments.input(index).desc;
    if constexpr (std::is_constructible_v<Plain<P>, at::IntArrayRef>) {
      return ListCaster<Plain<P>, int64_t>{desc};
    } else if constexpr (std::is_constructible_v<Plain<P>, at::ArrayRef<double>>) {
      return ListCaster<Plain<P>, double>{desc};
    } else if constexpr (!std::is_same_v<Stored, Plain<P>>) {  // a view of the value
      return NumberCaster<Plain<P>>{desc};
    } else if constexpr (kIsOptional<Plain<P>>) {
      return desc.is_none() ? Stored() : Stored(number_as<typename Stored::value_type>(desc));
    } else {
      return number_as<Stored>(desc);
    }
  } else {
    return Parameter<P>::get(arguments, index);
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_KERNEL_PARAMETERS_H_
