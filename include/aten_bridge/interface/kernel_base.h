// The kernel interface: all that ordinary code knows of a kernel.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_INTERFACE_KERNEL_BASE_H_
#define ATEN_BRIDGE_INTERFACE_KERNEL_BASE_H_

#include <aten_bridge/core/attributes.h>
#include <aten_bridge/interface/checks.h>
#include <aten_bridge/interface/operands.h>

#include <cstdint>
#include <memory>

#pragma GCC visibility push(hidden)

namespace aten_bridge {

/// What a host calls things, for error texts.
struct HostMessages {
  const char* results;        ///< what says how large results are: "out_shape and out_dtype"
  const char* resized;        ///< the cure where a kernel resized its output
  const char* changed_dtype;  ///< the cure where it changed its dtype
  const char* operands;       ///< what to compare with the kernel where the count is another
};

}  // namespace aten_bridge

namespace aten_bridge::detail {

/// For errors with Status::kValues. What to do differs between hosts, which add it.
inline constexpr const char* kDependsOnValues =
    ": expected an operator whose results have sizes that follow from those of its inputs, got one "
    "whose sizes depend on values";

/// What a kernel's author says of its operator, for hosts that have operators of their own names,
/// transformations and devices.
struct OperatorOptions {
  const char* name = nullptr;    // null: made of the kernel's
  bool is_composite = false;     // the host's own operators are all that it is made of
  bool is_private_use = false;   // also for a device that is not PyTorch's own
  bool has_side_effect = false;  // no call may be merged with an equal one, or left out
  bool is_cast = false;          // under autocast its floating-point inputs are
  at::ScalarType cast_to = at::ScalarType::Undefined;  // Undefined: autocast's own dtype
};

/// The operator that a kernel implements.
struct OperatorDescriptor {
  const char* operator_name = nullptr;
  ErrorMode error_mode = ErrorMode::kThrow;
  OperatorOptions options = {};
};

/// What a kernel's type says of it.
struct KernelTraits {
  const ParameterInfo* bindings = nullptr;  // one for each input parameter
  int check_count = 0;
  int inputs = 0;  // parameters; an at::TensorList counts as one
  int outputs = 0;
  int list_begin = -1;         // which of the inputs is the at::TensorList; -1: there is none
  bool lists_outputs = false;  // there is an output more for each tensor of the list
  int workspaces = 0;
  bool is_raw = false;        // the kernel gets the host's call as it is, and there are no bindings
  bool has_instance = false;  // attributes or state
  bool has_meta = false;
  bool is_gradient = false;        // the outputs are the gradients of the inputs that are tensors
  bool records = false;            // a graph for autograd
  bool is_data_dependent = false;  // the sizes of the results are known after the call
  bool is_strided = false;         // inputs need not be row-major
  bool returns_results = false;    // instead of writing outputs
  bool outputs_are_sizes = false;  // a table, which no error text describes
  bool is_own_meta = false;        // the function itself tells shapes and dtypes
  // Results are row-major also for hosts that take strides. PyTorch takes them to be so where a
  // meta function tells their sizes, or the inputs whose gradients they are. A kernel that is its
  // own meta function tells strides too, of row-major inputs.
  bool returns_row_major = false;
  bool has_state = false;
  bool changes_state = false;  // operator() of the state is not const

  constexpr bool has_several_outputs() const { return outputs > 1 || lists_outputs; }
};

/// What ordinary code needs to know about a kernel.
struct KernelDescriptor : OperatorDescriptor, KernelTraits {
  const OperandCheck* checks = nullptr;  // for some of its inputs and outputs

  /// Whether a host must make each call: also one that equals another, and one whose results are
  /// not read.
  constexpr bool has_side_effect() const { return options.has_side_effect || changes_state; }
};

/// The check of a parameter; null if there is none.
inline const OperandCheck* find_check(const KernelDescriptor& kernel, Role role, int parameter) {
  if (kernel.is_gradient && role == Role::kOutput) {
    return nullptr;  // the checks are those of the forward kernel
  }
  for (int i = 0; i < kernel.check_count; ++i) {
    if (kernel.checks[i].role() == role && parameter-- == 0) {
      return &kernel.checks[i];
    }
  }
  return nullptr;
}

inline OperandName operand_name(const OperandCheck* check, Role role, int index) {
  return {role, index, check == nullptr ? nullptr : check->name()};
}

/// The same of an operand of a call: all tensors of an at::TensorList have the check of their
/// parameter.
[[gnu::cold]] inline const OperandCheck* find_check(const Arguments& arguments, int i) {
  return i < arguments.inputs
             ? find_check(*arguments.kernel, Role::kInput, input_parameter(arguments, i))
             : find_check(*arguments.kernel, Role::kOutput, i - arguments.inputs);
}
[[gnu::cold]] inline OperandName operand_name(const Arguments& arguments, int i) {
  const bool is_input = i < arguments.inputs;
  return operand_name(find_check(arguments, i), is_input ? Role::kInput : Role::kOutput,
                      is_input ? i : i - arguments.inputs);
}

/// An attribute of a kernel.
struct AttributeInfo {
  const char* name;
  const char* text;  // what error texts call its type, such as "a list of ints"
  AttributeType type;
  bool is_optional;      // a std::optional
  bool is_required;      // without a default
  const void* fallback;  // the default, of the type; null: none, or that of no value
};

/// Sees a kernel's attributes, one by one.
class AttributeVisitor {
 public:
  AttributeVisitor() = default;
  AttributeVisitor(const AttributeVisitor&) = delete;
  AttributeVisitor& operator=(const AttributeVisitor&) = delete;

  virtual void visit(const AttributeInfo& attribute) = 0;

 protected:
  ~AttributeVisitor() = default;
};

/// A kernel whatever its function. It stays where it is made: `info` points into it.
class KernelBase {
 public:
  KernelBase(const KernelBase&) = delete;
  KernelBase& operator=(const KernelBase&) = delete;

  KernelDescriptor info;

  /// Calls the kernel's function.
  virtual void invoke(const Arguments& arguments) const = 0;

  /// Reads the attributes, each once; adds those that are wrong to the report.
  virtual std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                                  Report& report) const = 0;

  /// The outputs as meta tensors, from inputs and outputs that are meta tensors.
  virtual Tensors infer(const Arguments& arguments) const = 0;

  /// Writes how many elements the workspaces have, and how large one of them is.
  virtual void measure_workspaces(const Arguments& arguments, int64_t* elements,
                                  ElementLayout* layouts) const = 0;

  virtual void visit_attributes(AttributeVisitor& visitor) const = 0;

 protected:
  explicit constexpr KernelBase(const KernelDescriptor& kernel_info) : info(kernel_info) {}
  ~KernelBase() = default;  // nobody deletes a kernel
};

/// What a kernel returns by reference is one of its output parameters; anything else would be lost.
[[gnu::noinline]] inline void check_returned(const Arguments& arguments,
                                             const at::Tensor* const* returned, int count) {
  for (int i = 0; i < count; ++i) {
    bool is_output = false;
    for (int k = 0; k < arguments.outputs; ++k) {
      is_output = is_output || &arguments.output(k).view == returned[i];
    }
    if (!is_output) {
      raise(Status::kOutput,
            {arguments.kernel->operator_name,
             ": expected the kernel to return its output parameter, got a reference to "
             "another tensor; return at::Tensor by value, or write the parameter"});
    }
  }
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_INTERFACE_KERNEL_BASE_H_
