// One overload of an operator of PyTorch's: its inputs, and a call of it.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_OVERLOAD_H_
#define ATEN_BRIDGE_OPERATORS_OVERLOAD_H_

#include "operator_schema.h"
#include "operator_text.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <aten_bridge/interface/kernel_base.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
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

/// What gradients, and questions before sizes are known, get instead of an undefined result.
at::Tensor defined(const at::Tensor& result);
std::vector<at::Tensor> defined(at::TensorList results);

/// How often operators were taken away from the dispatcher: what is kept of one holds while this
/// stays.
std::uint64_t dispatcher_epoch() noexcept;

/// Has the same effect, where something that is kept of operators is made again.
void end_dispatcher_epoch() noexcept;

/// Has the dispatcher count that. Once is enough.
void watch_dispatcher();

/// What the dispatcher has of an operator, as long as nobody takes it away.
struct ResolvedOperator {
  c10::OperatorHandle handle;
  std::optional<c10::OperatorHandle> out;  // the overload that writes outputs, where it is right
  std::uint64_t epoch = 0;                 // the dispatcher's
};

/// An operator as the dispatcher had it when what calls it was made.
class RegisteredOperator {
 public:
  explicit RegisteredOperator(const c10::OperatorHandle& handle);
  RegisteredOperator(const RegisteredOperator&) = delete;
  RegisteredOperator& operator=(const RegisteredOperator&) = delete;

  const std::string& name() const { return name_; }      // "aten::max.dim"
  const std::string& schema() const { return schema_; }  // tells it from another of the name

  /// Throws `Error` where the dispatcher has another one of the name by now, or none.
  const ResolvedOperator& resolved() const;
  bool is_current() const;

 private:
  std::string name_;
  std::string schema_;
  // All that there were: a call may still have one that was replaced.
  mutable std::vector<std::unique_ptr<const ResolvedOperator>> all_;
  mutable std::atomic<const ResolvedOperator*> resolved_;  // the last
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

  std::unique_ptr<Instance> make_instance(const Attributes& attributes, Report& report) const;
  void visit_attributes(detail::AttributeVisitor& visitor) const;

 private:
  void push_arguments(const Arguments& arguments, std::vector<c10::IValue>& stack) const;

  RegisteredOperator registered_;
  bool depends_on_values_;
  Schema schema_;
  std::vector<int> lengths_;             // for each argument that is a list; -1: any length
  std::vector<ParameterInfo> bindings_;  // for its inputs
  std::vector<OperandCheck> checks_;     // their names
  int list_begin_ = -1;
};

/// What is kept for one operator of a host: the attributes' values.
class OperatorInstance final : public Instance {
 public:
  OperatorInstance(std::string name, std::vector<c10::IValue> values)
      : Instance(&values_), text(std::move(name)), values_(std::move(values)) {}

  const std::vector<c10::IValue>& values() const { return values_; }  // one for each argument

  const std::string text;  // as kOperatorAttribute has it
  /// That of MindSpore's last call, or of its Init, before which nothing calls it.
  std::atomic<const KernelBase*> kernel = nullptr;

 private:
  std::vector<c10::IValue> values_;
};

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_OVERLOAD_H_
