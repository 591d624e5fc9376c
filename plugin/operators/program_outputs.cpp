// Leaves of a program's text the outputs that are wanted, and the calls that they need.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_outputs.h"

#include "program_operator.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

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

}  // namespace

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

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
