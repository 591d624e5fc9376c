// The schema of an operator of PyTorch's: which arguments are tensors, and which attributes.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_OPERATOR_SCHEMA_H_
#define ATEN_BRIDGE_OPERATORS_OPERATOR_SCHEMA_H_

#include <ATen/core/dispatch/Dispatcher.h>
#include <aten_bridge.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// An argument of a schema.
struct Argument {
  enum class Form : std::uint8_t {
    kTensor,
    kTensors,    // a list
    kAttribute,  //
    kDefault,    // no attribute has its type: it stays at its default
  };

  std::string name;
  Form form = Form::kDefault;
  bool is_optional = false;  // may be None; of a list, each of its tensors
  bool is_required = false;  // an attribute without a default
  bool is_written = false;   // the operator writes it, though its schema does not say so
  AttributeType type = AttributeType::kBool;
  const char* text = "";  // what error texts call the attribute's type
  int length = 0;         // 2 for an int[2], which an int may stand for; 0: any length
  c10::IValue fallback;
};

/// What the attribute of a list of tensors is, for errors.
inline constexpr const char* kLengthText = "the number of tensors in this list";

/// An overload, as far as the bridge can call it.
struct Schema {
  std::string name;         // "aten::max.dim"
  std::string fault;        // why it cannot be called; "" if it can
  bool is_writing = false;  // an argument: that is why
  bool is_factory = false;  // takes no tensor: that is why
  std::vector<Argument> arguments;
  int results = 0;
};

Schema read_schema(const c10::FunctionSchema& schema);

/// All overloads of a name such as "aten::max" that are in the dispatcher, the one without an
/// overload's name first.
std::vector<c10::OperatorHandle> find_overloads(const std::string& name);

/// The overload of a name such as "aten::max.dim".
std::optional<c10::OperatorHandle> find_overload(const std::string& name);

/// The overload that writes the same results into outputs.
std::optional<c10::OperatorHandle> find_out(const c10::FunctionSchema& schema);

/// Whether the sizes of its results depend on the values of its inputs, as PyTorch says.
bool depends_on_values(const c10::OperatorHandle& handle);

/// Whether its results are random numbers, or depend on such.
bool is_random(const c10::OperatorHandle& handle);

/// What the attributes say of an argument, and its default if they say nothing; adds to the report
/// what is wrong.
c10::IValue read_value(const Argument& argument, const Attributes& attributes, Report& report);

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_OPERATOR_SCHEMA_H_
