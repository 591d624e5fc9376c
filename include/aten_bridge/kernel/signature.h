// Signatures: the parameters and the result of a kernel's function, and how it is called.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_KERNEL_SIGNATURE_H_
#define ATEN_BRIDGE_KERNEL_SIGNATURE_H_

#include <aten_bridge/kernel/old_optional.h>
#include <aten_bridge/kernel/options.h>
#include <aten_bridge/kernel/parameters.h>

#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What a result of type `R` means: tensors to be copied to the outputs, or nothing.
template <class R>
struct Result {
  static_assert(kNever<R>,
                "aten_bridge: a kernel returns void and writes its at::Tensor& parameters, or "
                "returns at::Tensor or std::tuple<at::Tensor, ...>.");
  static constexpr int kCount = 1;
};

// What PyTorch's extensions return, whose callers count at run time.
template <class T, class Allocator>
struct Result<std::vector<T, Allocator>> {
  static_assert(kNever<T>,
                "aten_bridge: how many tensors a kernel returns has to be known when it is "
                "compiled: std::tuple<at::Tensor, ...> or std::array<at::Tensor, N>, not "
                "std::vector.");
  static constexpr int kCount = 1;
};

template <>
struct Result<void> {
  static constexpr int kCount = 0;
};

// ATen's own _out functions return their output parameters: nothing to be copied.
template <>
struct Result<at::Tensor&> : Result<void> {};

template <class... R>
struct Result<std::tuple<R...>> {
  static_assert((std::is_same_v<std::decay_t<R>, at::Tensor> && ...),
                "aten_bridge: a kernel that returns a std::tuple returns tensors only.");
  static_assert((std::is_reference_v<R> && ...) || (!std::is_reference_v<R> && ...),
                "aten_bridge: a kernel that returns a std::tuple returns at::Tensor& for none or "
                "for all of its elements.");
  static constexpr int kCount = (0 + ... + (std::is_reference_v<R> ? 0 : 1));
};

template <class First, class Second>
struct Result<std::pair<First, Second>> : Result<std::tuple<First, Second>> {};

template <std::size_t kSize>
struct Result<std::array<at::Tensor, kSize>> {
  static constexpr int kCount = static_cast<int>(kSize);
};

template <>
struct Result<at::Tensor> {
  static constexpr int kCount = 1;
};

inline std::array<at::Tensor, 1> result_array(at::Tensor result) { return {std::move(result)}; }

template <class Results>
auto result_array(Results results) {
  return std::apply(
      [](auto&... result) {
        return std::array<at::Tensor, sizeof...(result)>{std::move(result)...};
      },
      results);
}

inline std::array<const at::Tensor*, 1> address_array(at::Tensor& result) { return {&result}; }

template <class Results>
auto address_array(const Results& results) {
  return std::apply(
      [](auto&... result) { return std::array<const at::Tensor*, sizeof...(result)>{&result...}; },
      results);
}

/// The parameters and the result of anything that can be called in one way only.
template <class F, class = void>
struct Signature {
  static_assert(kNever<F>,
                "aten_bridge: a kernel is a function, a lambda, or an object with one operator() "
                "that is const.");
  using ResultType = at::Tensor;
  using ParameterPackType = ParameterPack<>;
  template <class AttributeTuple>
  static void call(const F& function, const Arguments& arguments);
};

template <class R, class... P>
struct FunctionSignature {
  using ResultType = R;
  using ParameterPackType = ParameterPack<P...>;

  /// Calls `function` with arguments of its own types.
  template <class AttributeTuple, class F>
  static R call(F& function, const Arguments& arguments) {
    return spread<AttributeTuple>(function, arguments, std::index_sequence_for<P...>());
  }

 private:
  template <class AttributeTuple, class F, std::size_t... I>
  static R spread(F& function, [[maybe_unused]] const Arguments& arguments,
                  std::index_sequence<I...> /*indices*/) {
    [[maybe_unused]] static constexpr auto kSources =
        ParameterPackType::sources(static_cast<int>(std::tuple_size_v<AttributeTuple>));
    return function(argument<P, AttributeTuple, kSources[I].kind, kSources[I].index>(arguments)...);
  }
};

template <class R, class... P>
struct Signature<R (*)(P...)> : FunctionSignature<R, P...> {};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : FunctionSignature<R, P...> {};

/// The same for the type of an operator().
template <class>
struct MemberSignature;
template <class C, class R, class... P>
struct MemberSignature<R (C::*)(P...) const> : FunctionSignature<R, P...> {
  static constexpr bool kConst = true;
};
template <class C, class R, class... P>
struct MemberSignature<R (C::*)(P...)> : FunctionSignature<R, P...> {
  static constexpr bool kConst = false;
};
template <class C, class R, class... P>
struct MemberSignature<R (C::*)(P...) const noexcept> : MemberSignature<R (C::*)(P...) const> {};
template <class C, class R, class... P>
struct MemberSignature<R (C::*)(P...) noexcept> : MemberSignature<R (C::*)(P...)> {};

template <class F>
struct Signature<F, std::void_t<decltype(&F::operator())>>
    : MemberSignature<decltype(&F::operator())> {
  static_assert(MemberSignature<decltype(&F::operator())>::kConst,
                "aten_bridge: the operator() of a kernel is const; for what changes from call to "
                "call use aten_bridge::state<T(P...)>().");
};

/// Where a kernel's attributes go: to the parameters of its function, or to what makes its state.
template <class F>
struct Body {
  static constexpr bool kChanges = false;  // whether it changes from call to call
  using Function = Signature<F>;
  using AttributePack = typename Function::ParameterPackType;
  using Object = char;
  static constexpr bool kHasState = false;
};
template <class T, class... P>
struct Body<State<T(P...)>> {
  using Function = MemberSignature<decltype(&T::operator())>;
  using AttributePack = ParameterPack<P...>;
  using Object = T;
  static constexpr bool kHasState = true;
  static constexpr bool kChanges = !Function::kConst;
  static_assert(AttributePack::count(ParameterKind::kValue) +
                        AttributePack::count(ParameterKind::kTensorList) ==
                    sizeof...(P),
                "aten_bridge: the P... of state<T(P...)>() are types of attributes, and "
                "at::TensorList for the inputs of the first call.");

  template <class AttributeTuple>
  static void make(std::optional<T>& object, const Arguments& arguments) {
    make<AttributeTuple>(object, arguments, std::index_sequence_for<P...>());
  }

 private:
  template <class AttributeTuple, std::size_t... I>
  static void make(std::optional<T>& object, [[maybe_unused]] const Arguments& arguments,
                   std::index_sequence<I...> /*indices*/) {
    [[maybe_unused]] static constexpr auto kSources = AttributePack::sources(sizeof...(P));
    object.emplace(argument<P, AttributeTuple, kSources[I].kind, kSources[I].index>(arguments)...);
  }
};

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_KERNEL_SIGNATURE_H_
