// Makes the nodes of a program from the lines of its text.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_builder.h"

#include "program_operator.h"
#include "program_parser.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;
using detail::raise;

bool draws(const Call& call) {
  return !call.chooses() && find_operator(call).hasTag(at::Tag::nondeterministic_seeded);
}

void add_values(const Literal& literal, std::set<std::string>& values) {
  if (literal.kind == Literal::Kind::kValue) {
    values.insert(literal.text);
  }
  for (const Literal& element : literal.elements) {
    add_values(element, values);
  }
}

/// Tells an operator of several gradients, such as aten::convolution_backward, which of them
/// nobody reads.
void mask_results(Call& call, const std::set<std::string>& read) {
  if (call.chooses()) {
    return;
  }
  const auto handle = find_operator(call);
  const auto& arguments = handle.schema().arguments();
  for (std::size_t i = 0; i < call.arguments.size() && i < arguments.size(); ++i) {
    std::vector<Literal>& mask = call.arguments[i].elements;
    if (arguments[i].name() != "output_mask" || mask.size() != call.results.size()) {
      continue;
    }
    for (std::size_t j = 0; j < mask.size(); ++j) {
      mask[j].flag = mask[j].flag && read.count(call.results[j]) != 0;
    }
  }
}

/// Leaves the outputs that are wanted, and the calls that they need. A program with seeds has all
/// its random numbers: each that is drawn decides which come next.
void keep_wanted(ProgramText& program, const std::vector<std::size_t>& wanted) {
  std::vector<Form> outputs;
  std::set<std::string> read;
  for (const std::size_t i : wanted) {
    if (i >= program.outputs.size()) {
      raise(Status::kAttribute,
            {"AtenProgram: expected one of ", program.outputs.size(), " outputs, got output ", i});
    }
    outputs.push_back(program.outputs[i]);
    read.insert(outputs.back().value);
  }
  program.outputs = std::move(outputs);
  const bool has_seeds = std::any_of(program.inputs.begin(), program.inputs.end(),
                                     [](const Form& input) { return input.is_seed; });
  std::vector<Call> calls;
  for (auto call = program.calls.rbegin(); call != program.calls.rend(); ++call) {
    const auto is_read = [&](const std::string& name) { return read.count(name) != 0; };
    const bool is_needed = call->checks() || !call->sizes.empty() ||
                           std::any_of(call->results.begin(), call->results.end(), is_read) ||
                           (has_seeds && draws(*call));
    if (!is_needed) {
      continue;
    }
    for (const Condition& condition : call->conditions) {
      read.insert(condition.value);
    }
    for (const MeasuredSize& size : call->sizes) {
      read.insert(size.value);
    }
    mask_results(*call, read);
    for (const Literal& argument : call->arguments) {
      add_values(argument, read);
    }
    for (const auto& keyword : call->keywords) {
      add_values(keyword.second, read);
    }
    calls.push_back(std::move(*call));
  }
  std::reverse(calls.begin(), calls.end());
  program.calls = std::move(calls);
}

}  // namespace

void Program::Builder::build() {
  program_.symbols_ = text_.symbols;
  know_inputs();
  program_.guards_ = std::move(text_.guards);
  for (const Form& input : text_.inputs) {
    add_value(0, input.value, /*is_list=*/false);
  }
  program_.inputs_ = std::move(text_.inputs);
  for (const Call& call : text_.calls) {
    std::vector<Condition> conditions;
    for (const operators::Condition& condition : call.conditions) {
      conditions.push_back(
          {find_value(call.line, condition.value, /*is_list=*/false), condition.holds});
    }
    know_sizes_for(call);
    Node node = call.chooses() ? choice_of(call) : node_of(call);
    node.line = call.line;
    node.conditions = std::move(conditions);
    add_sizes(call, node);
    program_.nodes_.push_back(std::move(node));
  }
  for (const Form& output : text_.outputs) {
    check_known(0, output.sizes);
    program_.results_.push_back(find_value(0, output.value, /*is_list=*/false));
  }
  for (const Guard& guard : program_.guards_) {
    check_known(0, {guard.left, guard.right});
  }
  program_.outputs_ = std::move(text_.outputs);
  program_.value_count_ = is_list_.size();
  mark_outputs();
  mark_last_uses();
}

void Program::Builder::know_inputs() {
  is_known_.assign(text_.symbols.size(), -1);
  for (const Form& input : text_.inputs) {
    for (const Expression& size : input.sizes) {
      if (size.function == Expression::Function::kSymbol) {
        is_known_[static_cast<std::size_t>(size.symbol)] = 0;
      }
    }
  }
  for (const Form& input : text_.inputs) {
    check_known(0, input.sizes);
  }
}

void Program::Builder::know_sizes_for(const Call& call) {
  is_known_here_ = is_known_;
  for (const auto& [symbol, conditions] : told_under_) {
    const bool ran = std::all_of(
        conditions.begin(), conditions.end(), [&](const operators::Condition& condition) {
          return std::any_of(call.conditions.begin(), call.conditions.end(),
                             [&](const operators::Condition& known) {
                               return known.value == condition.value &&
                                      known.holds == condition.holds;
                             });
        });
    if (!ran) {
      is_known_here_[symbol] = -1;
    }
  }
}

std::size_t Program::Builder::add_value(int line, const std::string& name, bool is_list) {
  const auto [place, is_new] = names_.emplace(name, is_list_.size());
  if (!is_new) {
    raise_in_line(line, join({"expected a new name, got '%", name, "' again"}));
  }
  is_list_.push_back(is_list);
  return place->second;
}

std::size_t Program::Builder::find_value(int line, const std::string& name, bool is_list) const {
  const auto found = names_.find(name);
  if (found == names_.end()) {
    raise_in_line(line, join({"expected a value of a line before, got '%", name, "'"}));
  }
  if (is_list_[found->second] != is_list) {
    raise_in_line(line, join({"expected a ", is_list ? "list of tensors" : "tensor", ", got '%",
                              name, "', which is a ", is_list ? "tensor" : "list of tensors"}));
  }
  return found->second;
}

Program::Node Program::Builder::choice_of(const Call& call) {
  const bool has_values =
      std::all_of(call.arguments.begin(), call.arguments.end(),
                  [](const Literal& argument) { return argument.kind == Literal::Kind::kValue; });
  if (call.arguments.size() != 3 || !call.keywords.empty() || !has_values || call.unpacks ||
      call.results.size() != 1 || call.results[0].empty()) {
    raise_in_line(call.line,
                  "expected one result of choose, and three values: a condition, the result if "
                  "it holds and the result if not");
  }
  Node node;
  for (const Literal& argument : call.arguments) {
    node.arguments.push_back(value(call.line, argument.text, /*is_list=*/false));
  }
  node.results.push_back(
      static_cast<int64_t>(add_value(call.line, call.results[0], /*is_list=*/false)));
  return node;
}

Program::Node Program::Builder::node_of(const Call& call) {
  Node node;
  const c10::OperatorHandle handle = find_operator(call);
  node.called = std::make_shared<RegisteredOperator>(handle);
  node.unpacks = call.unpacks;
  node.is_random = handle.hasTag(at::Tag::nondeterministic_seeded);
  node.is_dropout = call.operator_name == "aten::native_dropout";
  const c10::FunctionSchema& schema = handle.schema();
  if (call.arguments.size() + call.keywords.size() > schema.arguments().size()) {
    raise_in_line(call.line, join({"expected at most ", schema.arguments().size(), " arguments of ",
                                   call.operator_name, ", got ",
                                   call.arguments.size() + call.keywords.size()}));
  }
  std::size_t used = call.arguments.size();
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) {
      raise_in_line(call.line,
                    join({"expected an operator that writes nothing, got ", call.operator_name,
                          ", which writes '", argument.name(), "'"}));
    }
    if (argument.real_type()->str() == "Generator?") {
      node.generator = static_cast<int>(i);
    }
    const Literal* literal = i < call.arguments.size() ? &call.arguments[i] : nullptr;
    for (const auto& [name, value] : call.keywords) {
      if (literal == nullptr && name == argument.name()) {
        literal = &value;
        ++used;
      }
    }
    node.arguments.push_back(literal == nullptr ? default_of(call, argument)
                                                : source_of(call, argument, *literal));
  }
  if (used != call.arguments.size() + call.keywords.size()) {
    raise_in_line(call.line, join({"expected arguments of ", call.operator_name,
                                   " by their names, each once, got one that it does not have"}));
  }
  add_results(call, schema, node);
  return node;
}

void Program::Builder::add_sizes(const Call& call, Node& node) {
  for (const MeasuredSize& size : call.sizes) {
    if (std::find(call.results.begin(), call.results.end(), size.value) == call.results.end()) {
      raise_in_line(call.line, join({"expected sizes of its results after it, got one of '%",
                                     size.value, "'"}));
    }
    if (is_known_[static_cast<std::size_t>(size.symbol)] == 0) {
      raise_in_line(call.line, "expected sizes after it that no input has, got one of an input");
    }
    node.sizes.push_back({static_cast<std::size_t>(size.symbol),
                          find_value(call.line, size.value, /*is_list=*/false), size.dim});
    is_known_[node.sizes.back().symbol] = 0;
    if (!call.conditions.empty()) {
      told_under_[node.sizes.back().symbol] = call.conditions;
    }
  }
}

void Program::Builder::check_known(int line, const std::vector<Expression>& numbers) const {
  for (const Expression& number : numbers) {
    if (!number.is_known(is_known_)) {
      raise_in_line(line, "expected sizes that lines before have, got one that they do not have");
    }
  }
}

void Program::Builder::add_results(const Call& call, const c10::FunctionSchema& schema,
                                   Node& node) {
  const auto& returns = schema.returns();
  const bool is_list = returns.size() == 1 && is_list_of_tensors(returns[0].type());
  for (const c10::Argument& result : returns) {
    if (!is_tensor(result.type()) && !is_list) {
      raise_in_line(call.line,
                    join({"expected an operator whose results are tensors, got ",
                          call.operator_name, ", which returns ", result.type()->str()}));
    }
  }
  const bool checks = returns.empty() && call.checks();
  if (call.unpacks ? !is_list : call.results.size() != returns.size() && !checks) {
    raise_in_line(call.line,
                  join({"expected the ", returns.size(), " results of ", call.operator_name,
                        ", got ", call.results.size(), call.unpacks ? " elements of a list" : ""}));
  }
  for (const std::string& name : call.results) {
    node.results.push_back(
        name.empty() ? -1
                     : static_cast<int64_t>(add_value(call.line, name, is_list && !call.unpacks)));
  }
}

void Program::Builder::mark_outputs() {
  const std::vector<std::size_t>& results = program_.results_;
  for (Node& node : program_.nodes_) {
    for (const int64_t made : node.results) {
      const auto value = static_cast<std::size_t>(made);
      if (made >= 0 && std::count(results.begin(), results.end(), value) == 1) {
        const auto found = std::find(results.begin(), results.end(), value);
        node.outputs.push_back({value, static_cast<std::size_t>(found - results.begin())});
      }
    }
  }
}

void Program::Builder::mark_last_uses() {
  std::vector<bool> is_read(is_list_.size(), false);
  for (const std::size_t result : program_.results_) {
    is_read[result] = true;
  }
  for (auto node = program_.nodes_.rbegin(); node != program_.nodes_.rend(); ++node) {
    for (const int64_t result : node->results) {
      if (result >= 0 && !is_read[static_cast<std::size_t>(result)]) {
        node->unread.push_back(static_cast<std::size_t>(result));
      }
    }
    for (const Condition& condition : node->conditions) {
      if (!is_read[condition.value]) {
        node->unread.push_back(condition.value);
        is_read[condition.value] = true;
      }
    }
    for (auto source = node->arguments.rbegin(); source != node->arguments.rend(); ++source) {
      mark(*source, is_read);
    }
  }
}

void Program::Builder::mark(Source& source, std::vector<bool>& is_read) {
  if (source.form == Source::Form::kValue) {
    source.is_last_use = !is_read[source.value];
    is_read[source.value] = true;
  }
  for (auto element = source.elements.rbegin(); element != source.elements.rend(); ++element) {
    mark(*element, is_read);
  }
}

Program::Program(const std::string& text, const std::vector<std::size_t>& wanted) {
  ProgramText parsed = parse_program(text);
  if (!wanted.empty()) {
    keep_wanted(parsed, wanted);
  }
  Builder(*this, std::move(parsed)).build();
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
