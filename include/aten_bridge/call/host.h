// What a host has to be, for contributors who add one.
//
// A host is one class, whose object is one call. It is made of the operator's name and of what the
// host's C function gets:
//
//   class MyCall : public aten_bridge::HostCallDefaults {
//    public:
//     using Result = int;  // what the host's C function returns
//     static constexpr aten_bridge::HostMessages kMessages = {...};  // its names for things
//
//     MyCall(const char* operator_name, ...);  // throws Error
//
//     int size() const;  // inputs and outputs together
//     void describe(aten_bridge::OperandDescs operands) const;  // all of them, once
//
//     static Result succeed();  // what the C function returns, and after an error, or throws
//     static Result fail(const aten_bridge::Failure& failure, aten_bridge::ErrorMode mode);
//   };
//
// and of what HostCallDefaults has, where it differs. tests/kernels/toy_host.h is such an adapter,
// in fewer than a hundred lines. A source that has it
//
//   beside MindSpore, PyTorch and JAX defines ATEN_BRIDGE_ENTRY_BESIDE(Name) as the host's C
//     function, which calls `aten_bridge_kernel_##Name.call<MyCall>(...)`;
//   as the only host defines ATEN_BRIDGE_HOST as MyCall, and ATEN_BRIDGE_ENTRY(Name) likewise,
//
// before it includes aten_bridge.h, and is built with HEADER_ONLY. PyTorch as a host is
// not such a class: it has tensors already, and fills the arguments of a kernel with them.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_HOST_H_
#define ATEN_BRIDGE_CALL_HOST_H_

#include <aten_bridge/call/failure.h>
#include <aten_bridge/interface/kernel_base.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

/// Memory for a workspace that the host has.
struct HostMemory {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// No attributes, for hosts that have none.
class NoAttributes final : public Attributes {
 public:
  bool has(const char* /*name*/) const override { return false; }
  std::string advice(const char* /*name*/) const override { return "this host has no attributes"; }

 private:
  bool get_as(AttributeType /*type*/, const char* /*name*/, void* /*value*/) const override {
    return false;
  }
};

/// The operands of a call, which its host describes: each memory, dtype and sizes, or None, and
/// strides where it has any. `numel` is not the host's. Until then each is as its host has
/// described it in the last call from this site. The sizes outlive the host's C function.
class OperandDescs {
 public:
  /// Why an operand is refused.
  struct Refusal {
    Refusal(int refused, const char* operator_name) : operand(refused), report(operator_name) {}
    [[gnu::cold, gnu::noinline]] ~Refusal() = default;  // inlined, it would be in each call

    int operand;
    Report report;
    std::unique_ptr<Refusal> next;
  };
  using Refusals = std::unique_ptr<Refusal>;

  OperandDescs(const detail::Arguments& arguments, Refusals& refusals)
      : operands_(arguments.operands),
        size_(arguments.size()),
        operator_name_(arguments.kernel->operator_name),
        refusals_(refusals) {}

  int size() const { return size_; }
  OperandDesc& operator[](int i) const { return operands_[i].desc; }

  void set(int i, void* data, DType dtype, const int64_t* sizes, int ndim) const {
    OperandDesc& desc = operands_[i].desc;
    desc.data = data;
    desc.dtype = dtype;
    desc.sizes = sizes;
    desc.ndim = ndim;
  }
  void set_none(int i) const { set(i, nullptr, DType::kNone, nullptr, 0); }

  const OperandName& name(int i) const { return operands_[i].name; }

  /// Refuses an operand that cannot be described; what is wrong with it goes to the report.
  [[gnu::cold, gnu::noinline]] Report& refuse(int i) const {
    operands_[i].desc = {};
    Refusals* end = &refusals_;
    while (*end != nullptr) {
      end = &(*end)->next;
    }
    *end = std::make_unique<Refusal>(i, operator_name_);
    return (*end)->report;
  }

 private:
  detail::Operand* operands_;
  int size_;
  const char* operator_name_;
  Refusals& refusals_;
};

/// The number of a call site, mixed with the sizes of an operand.
[[gnu::always_inline]] inline std::uint64_t with_sizes(std::uint64_t call_site,
                                                       const int64_t* sizes, int64_t ndim) {
  for (int64_t d = 0; sizes != nullptr && ndim <= detail::kMaxNdim && d < ndim; ++d) {
    call_site = 31 * call_site + static_cast<std::uint64_t>(sizes[d]);
  }
  return call_site;
}

/// The base class of a host's calls, with defaults for what a host need not define.
class HostCallDefaults {
 public:
  // What the members have to do with. Here, they meet no names of a kernel's source.
  using Arguments = detail::Arguments;
  using Instance = detail::Instance;
  using KernelBase = detail::KernelBase;
  using Operand = detail::Operand;
  using ParameterInfo = detail::ParameterInfo;
  using ScalarInputType = detail::ScalarInputType;

  static constexpr bool kStridesInputs = false;  ///< inputs need not be row-major
  static constexpr bool kWritesInputs = false;   ///< a kernel without outputs does; has `data(int)`
  static constexpr bool kMayHaveMore = false;    ///< and more outputs than the kernel's may come

  /// static_asserts on kernels that the host cannot call.
  template <class Kernel>
  struct Requirements {};

  /// The host's stream; null on the CPU.
  static void* stream() { return nullptr; }

  /// How many of the operands are inputs; -1: the host does not tell.
  static int input_count() { return -1; }

  /// A number for each call site in a network: the views of its last call are kept.
  /// `count` operands are those of the kernel; there may be no others to look at.
  static std::uint64_t call_site(int /*count*/) { return 0; }

  /// The attributes, and what the host keeps of them over its calls; null: nothing.
  static NoAttributes attributes() { return {}; }
  static Instance* instance() { return nullptr; }

  /// The host's memory for a workspace of the kernel, which may have more than the host knows:
  /// none for those.
  static HostMemory host_workspace(int /*index*/) { return {}; }

  /// Completes an input that a number is read from.
  static void refine(int /*input*/, const ParameterInfo& /*binding*/, Operand& /*operand*/) {}

  /// Where the sizes of results go that are known after the run only, if the host has memory for
  /// the largest.
  static std::vector<std::vector<int64_t>>* result_sizes() { return nullptr; }

  /// Hands these sizes to the host.
  static void publish_sizes() {}

  /// Calls the kernel's function.
  static void invoke(const KernelBase& kernel, const Arguments& arguments) {
    kernel.invoke(arguments);
  }

  /// What an error's text ends with.
  static const char* advice() { return ""; }
};

}  // namespace aten_bridge

namespace aten_bridge::detail {

/// Whether a host has a member of the right form, for which `Member` names a type.
template <template <class> class Member, class H, class = void>
inline constexpr bool kHas = false;
template <template <class> class Member, class H>
inline constexpr bool kHas<Member, H, std::void_t<Member<H>>> = true;

template <class H>
using MessagesOf = decltype(HostMessages(H::kMessages));
template <class H>
using DataOf = decltype(static_cast<const void*>(std::declval<const H&>().data(0)));
template <class H>
using SizeOf = decltype(int{std::declval<const H&>().size()});
template <class H>
using DescribeOf = decltype(std::declval<const H&>().describe(std::declval<OperandDescs>()));
template <class H>
using SuccessOf = decltype(typename H::Result(H::succeed()));
template <class H>
using FailureOf =
    decltype(typename H::Result(H::fail(std::declval<const Failure&>(), ErrorMode::kThrow)));

/// Says what is missing of a host.
template <class H>
constexpr void check_host() {
  static_assert(std::is_base_of_v<HostCallDefaults, H>,
                "aten_bridge: a host's class derives from aten_bridge::HostCallDefaults.");
  static_assert(kHas<MessagesOf, H>,
                "aten_bridge: a host's class has `static constexpr aten_bridge::HostMessages "
                "kMessages`.");
  static_assert(kHas<SizeOf, H>,
                "aten_bridge: a host's class has `int size() const`, the number of its operands.");
  static_assert(
      kHas<DescribeOf, H>,
      "aten_bridge: a host's class has `void describe(aten_bridge::OperandDescs operands) "
      "const`.");
  static_assert(!H::kWritesInputs || kHas<DataOf, H>,
                "aten_bridge: a host's class with `kWritesInputs` has `void* data(int operand) "
                "const`.");
  static_assert(kHas<SuccessOf, H> && kHas<FailureOf, H>,
                "aten_bridge: a host's class has a type `Result`, and returns it from `static "
                "Result succeed()` and `static Result fail(const aten_bridge::Failure&, "
                "aten_bridge::ErrorMode)`.");
}

/// Says that a host's calls are made of what its C function gets.
template <class H, class... HostArgument>
constexpr void check_construction() {
  static_assert(std::is_constructible_v<H, const char*, HostArgument&...>,
                "aten_bridge: a host's class has a constructor of the operator's name, a `const "
                "char*`, and of what the host's C function gets.");
}

/// One call of a kernel, as ordinary code (run.h); `host_arguments` is what the host's C function
/// got, and `call_sites()` are kept between the calls.
template <class Device, class HostCall, class... HostArgument>
typename HostCall::Result run(const KernelBase& kernel, CallSiteCache& (*call_sites)(),
                              HostArgument... host_arguments);

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_HOST_H_
