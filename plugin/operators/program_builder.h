// The builder of a program: nodes from the lines of its text.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_OPERATORS_PROGRAM_BUILDER_H_
#define ATEN_BRIDGE_OPERATORS_PROGRAM_BUILDER_H_

#include "program.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

/// Makes a program of a text.
class Program::Builder {
 public:
  Builder(Program& program, ProgramText text) : program_(program), text_(std::move(text)) {}

  void build();

 private:
  /// Symbols that are a whole size of an input are known from the beginning.
  void know_inputs();

  /// Which symbols the call may read: those that lines told which run wherever it runs.
  void know_sizes_for(const Call& call);

  std::size_t add_value(int line, const std::string& name, bool is_list);
  std::size_t find_value(int line, const std::string& name, bool is_list) const;
  Node choice_of(const Call& call);
  Node node_of(const Call& call);
  void add_sizes(const Call& call, Node& node);

  /// Refuses symbols that nothing before has told.
  void check_known(int line, const std::vector<Expression>& numbers) const;

  void add_results(const Call& call, const c10::FunctionSchema& schema, Node& node);

  void mark_outputs();

  /// The last line that reads a value hands it on: its memory ends there.
  void mark_last_uses();
  static void mark(Source& source, std::vector<bool>& is_read);

  // Sources of arguments, in program_arguments.cpp.
  static Source default_of(const Call& call, const c10::Argument& argument);
  static Source constant(c10::IValue value);
  Source value(int line, const std::string& name, bool is_list) const;
  [[noreturn]] static void refuse(const Call& call, const c10::Argument& argument);
  Source source_of(const Call& call, const c10::Argument& argument, const Literal& literal) const;
  Source single(const Call& call, const c10::Argument& argument, const c10::TypePtr& type,
                const Literal& literal) const;
  Source number(int line, const Literal& literal, Type type) const;
  Source list_of(const Call& call, const c10::Argument& argument, const c10::TypePtr& type,
                 const Literal& literal) const;

  Program& program_;
  ProgramText text_;
  std::map<std::string, std::size_t> names_;
  std::vector<bool> is_list_;
  std::vector<int64_t> is_known_;       // by symbol: 0; -1 before the line that tells its size
  std::vector<int64_t> is_known_here_;  // and where that line need not have run
  std::map<std::size_t, std::vector<operators::Condition>> told_under_;  // by symbol
};

}  // namespace aten_bridge::operators

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_OPERATORS_PROGRAM_BUILDER_H_
