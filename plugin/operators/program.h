// A PyTorch module as a program of operators, which the dispatcher runs one after the other.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_H_

#include "generator.h"
#include "overload.h"
#include "program_text.h"

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// A program that can run. Its calls see no change of the inputs: operators that write are refused.
class Program {
 public:
  /// Throws `Error` where the text is no program, or names an operator that is not there. With
  /// `wanted`, some of its outputs, only these are results, and what they do not need does not run.
  explicit Program(const std::string& text, const std::vector<std::size_t>& wanted = {});

  /// The results, which may be views of inputs. Throws `Error` before anything runs if the inputs
  /// do not have the program's sizes and dtypes. Uniquely owned inputs are freed like other
  /// values, once their last readers have run. `places`, where the host wants the results, if it
  /// has memory for them: large ones are moved there as soon as they are computed.
  std::vector<at::Tensor> operator()(std::vector<at::Tensor> inputs,
                                     const std::vector<at::Tensor>& places = {}) const;

  /// Whether the dispatcher has the operators that it calls.
  bool is_current() const;

  std::size_t input_count() const { return inputs_.size(); }
  int result_count() const { return static_cast<int>(results_.size()); }

  /// The results as meta tensors. Throws `Error` if their sizes depend on values.
  std::vector<at::Tensor> infer(at::TensorList inputs) const;

 private:
  enum class Type : std::uint8_t { kInt, kFloat, kScalar, kTensor };

  /// An argument: a constant, a value, a number that depends on sizes, or a list of such.
  struct Source {
    enum class Form : std::uint8_t {
      kConstant,
      kValue,
      kNumber,
      kTensors,          // a list
      kOptionalTensors,  // with None among them
      kInts,
      kFloats,
    };

    Form form = Form::kConstant;
    c10::IValue constant;
    std::size_t value = 0;
    bool is_last_use = false;
    Type type = Type::kInt;  // the type that a number is given as
    Expression number;
    std::vector<Source> elements;
  };

  /// A symbol that is a size of a result.
  struct Size {
    std::size_t symbol = 0;
    std::size_t value = 0;
    int64_t dim = 0;
  };

  /// A value that is one of the program's results.
  struct Output {
    std::size_t value = 0;
    std::size_t result = 0;
  };

  /// A value that has to be True, or not, where a node runs.
  struct Condition {
    std::size_t value = 0;
    bool holds = true;
  };

  struct Node {
    std::shared_ptr<const RegisteredOperator> called;  // null: one of two arguments, by the first
    int line = 0;
    std::vector<Condition> conditions;  // the outer ones first
    std::vector<Source> arguments;
    bool unpacks = false;
    bool is_random = false;
    bool is_dropout = false;
    int generator = -1;               // the argument's number
    std::vector<int64_t> results;     // values; -1: nobody reads it
    std::vector<Output> outputs;      // those that are results, each once
    std::vector<std::size_t> unread;  // values that end with the call
    std::vector<Size> sizes;
  };

  class Builder;  // program_builder.h

  /// The number of a source.
  static c10::IValue value_of(const Source& source, const std::vector<int64_t>& symbols);

  void measure(const Node& node, const std::vector<c10::IValue>& values,
               std::vector<int64_t>& symbols) const;
  static bool runs(const Node& node, const std::vector<c10::IValue>& values);
  static void skip(const Node& node, std::vector<c10::IValue>& values);
  c10::IValue make(const Source& source, std::vector<c10::IValue>& values,
                   const std::vector<int64_t>& symbols) const;
  void run(const Node& node, std::vector<c10::IValue>& values, std::vector<int64_t>& symbols,
           std::vector<c10::IValue>& stack, RandomState* random) const;

  std::vector<Symbol> symbols_;
  std::vector<Guard> guards_;
  std::vector<Form> inputs_;
  std::vector<Form> outputs_;
  std::vector<std::size_t> results_;  // values
  std::vector<Node> nodes_;
  std::size_t value_count_ = 0;
};

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_H_
