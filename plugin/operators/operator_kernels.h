// Kernels of PyTorch's operators, made when they are asked for: what ATEN_BRIDGE_EXPORT makes of a
// function's type is here made of an operator's schema.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_KERNELS_H_
#define ATEN_BRIDGE_OPERATORS_KERNELS_H_

#include "operator_schema.h"
#include "operator_text.h"

#include <aten_bridge/interface/gradient_base.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

using detail::Arguments;
using detail::Instance;
using detail::KernelBase;
using detail::ParameterInfo;
using detail::Tensors;

/// How often operators were taken away from the dispatcher: what is kept of one holds while this
/// stays.
std::uint64_t dispatcher_epoch() noexcept;

/// What is kept for one operator of a host: the kernel, and the attributes' values.
class OperatorInstance final : public Instance {
 public:
  OperatorInstance(const KernelBase* kernel, std::string text, std::vector<c10::IValue> values)
      : Instance(&values_), kernel_(kernel), text_(std::move(text)), values_(std::move(values)) {}

  /// The kernel for so many inputs and outputs.
  const KernelBase& kernel(int operands);
  const std::vector<c10::IValue>& values() const { return values_; }  // one for each argument

 private:
  std::atomic<const KernelBase*> kernel_;  // of the last call
  std::string text_;
  std::vector<c10::IValue> values_;
};

/// What the dispatcher has of an operator, as long as nobody takes it away.
struct Registered {
  c10::OperatorHandle handle;
  std::optional<c10::OperatorHandle> out;  // the overload that writes outputs, where it is right
  std::uint64_t epoch = 0;                 // of the dispatcher
};

/// An overload for so many inputs; -1: for any number that it takes. Fewer than all leave out the
/// last tensors, which may be None; with a number, the list of tensors has the length that is left.
class Operator {
 public:
  /// Throws `Error` if it cannot be called.
  Operator(const c10::OperatorHandle& handle, const TextAttributes& attributes, int inputs);

  const Schema& schema() const { return schema_; }
  /// What another one has that is not the same operator.
  std::string key() const;
  const std::vector<ParameterInfo>& bindings() const { return bindings_; }
  const std::vector<OperandCheck>& checks() const { return checks_; }
  int list_begin() const { return list_begin_; }

  /// Whether the sizes of its results depend on the values of its inputs, as PyTorch says.
  bool is_data_dependent() const;

  /// Its results, undefined ones among them.
  Tensors call(const Arguments& arguments) const;
  /// Writes its results into the outputs; false if there is no overload that does.
  bool call_out(const Arguments& arguments) const;

  std::unique_ptr<Instance> make_instance(const KernelBase& kernel, const Attributes& attributes,
                                          Report& report) const;
  void visit_attributes(detail::AttributeVisitor& visitor) const;

 private:
  void push_arguments(const Arguments& arguments, std::vector<c10::IValue>& stack) const;

  const Registered& registered() const;

  mutable std::atomic<const Registered*> registered_{nullptr};  // replaced, never destroyed
  std::string text_;                                            // of the schema
  bool depends_on_values_;
  Schema schema_;
  std::vector<int> lengths_;             // of each argument that is a list; -1: of any length
  std::vector<ParameterInfo> bindings_;  // of its inputs
  std::vector<OperandCheck> checks_;     // their names
  int list_begin_ = -1;
};

/// The kernel that such an attribute means; it lives for ever. Throws `Error` if there is none.
///
/// Tasks: "0" the operator; "1/n", "2/n" ... its gradient for n inputs, that of the gradient and so
/// on, which are gradient kernels as ATEN_BRIDGE_EXPORT_GRAD has them; "sizes" a row [dtype, rank,
/// sizes...] of 66 int64 for each of the results; "counted" the results in the begin of outputs
/// that have room for more, and behind them for each its sizes.
const KernelBase& find_kernel(const std::string& text);

/// The same for so many inputs, where the last tensors of the schema may be left out.
const KernelBase& find_kernel(const std::string& text, int inputs);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_KERNELS_H_
