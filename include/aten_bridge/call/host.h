// The seam: what a host has to be, for who writes the adapter of another one.
//
// A host is one class, whose object is one call. It has no virtual functions, since `run()` takes
// it as a template argument, and is made of the operator's name and of whatever the host's C
// function gets:
//
//   class MyHost : public HostCallDefaults {
//    public:
//     using Result = int;                       // what the host's C function returns
//     static constexpr HostMessages kMessages = {...};    // what the host calls things, for error
//     texts template <class K> struct Requirements {};                   // static_asserts on
//     kernels that it cannot call
//
//     MyHost(const char* operator_name, ...);   // throws Error
//
//     int size() const;                         // inputs and outputs together
//     void* stream() const;                     // null on the CPU
//     // Reads operand `i`; false, with the report, if it is wrong.
//     bool read(int i, const OperandName& name, OperandDesc& desc, Report& report) const;
//     // Whether it is row-major, and of that dtype and those sizes.
//     bool matches_cached(int i, DType dtype, const int64_t* sizes, int ndim) const;
//     void* data(int i) const;            // its memory and sizes, which outlive the object
//     const int64_t* sizes(int i) const;
//
//     static Result succeed();            // what the C function returns
//     static Result fail(const Failure& failure, ErrorMode mode);  // or throws
//   };
//
// and of what HostCallDefaults has, where it differs. `ATEN_BRIDGE_EXPORT` makes the C function of
// it: `Exported::call(...)` passes its arguments to the constructor.
//
// tests/kernels/toy_host.h is such an adapter, in fewer than a hundred lines. A source for a host
// of its own defines ATEN_BRIDGE_HOST and ATEN_BRIDGE_ENTRY(Name) before it includes aten_bridge.h,
// and is built with HEADER_ONLY. PyTorch as a host is none of these: it has tensors already, and
// its rooms fill the arguments of a kernel with them.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_HOST_H_
#define ATEN_BRIDGE_CALL_HOST_H_

#include <aten_bridge/interface/kernel_base.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

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

/// What a host is that says nothing else.
class HostCallDefaults {
 public:
  static constexpr bool kCountsInputs = false;   ///< has `int input_count() const`
  static constexpr bool kCountsOutputs = false;  ///< and all others are the kernel's outputs
  static constexpr bool kStridesInputs = false;  ///< inputs need not be row-major
  static constexpr bool kWritesInputs = false;   ///< a kernel without outputs writes its inputs
  static constexpr bool kSizesAfterRun = false;  ///< has `void publish_sizes()`

  /// What is known of a kernel; for hosts with words of their own, in the place of the library's
  /// first one.
  template <class... HostArgument>
  static const KernelDescriptor& info(const KernelBase& kernel,
                                      const HostArgument&... /*host_arguments*/) {
    return kernel.info;
  }

  /// A number for each place of a network that calls a kernel: the views of its last call are kept.
  /// `count` operands are those of the kernel; there may be no others to look at.
  static std::uint64_t call_site(int /*count*/) { return 0; }

  /// The attributes, and what the host keeps of them over its calls; null: nothing.
  static NoAttributes attributes() { return {}; }
  static Instance* instance() { return nullptr; }

  /// Workspaces that the host has memory for.
  static int workspace_count() { return 0; }
  static HostMemory host_workspace(int /*index*/) { return {}; }

  /// Completes an input that a number is read from.
  static void refine(int /*input*/, const ParameterInfo& /*binding*/, Operand& /*operand*/) {}

  /// Where the sizes go that are known after the run only; null: nobody asks for them.
  static std::vector<std::vector<int64_t>>* result_sizes() { return nullptr; }

  /// Calls the kernel's function.
  static void invoke(const KernelBase& kernel, const Arguments& arguments) {
    kernel.invoke(arguments);
  }

  /// What an error's text ends with.
  static const char* advice() { return ""; }

  /// The call as a kernel can take it that does with it what it likes, on its device.
  template <class Device>
  static const void* make_frame(Device& /*device*/) {
    return nullptr;
  }
};

/// One call of a kernel, as ordinary code (run.h); `of_host` is what the host's C function got, and
/// `call_sites()` are kept between the calls.
template <class Device, class HostCall, class... HostArgument>
typename HostCall::Result run(const KernelBase& kernel, CallSiteCache& (*call_sites)(),
                              HostArgument... host_arguments);

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_HOST_H_
