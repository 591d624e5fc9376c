// Runs a program: one operator after the other, each if its conditions hold.
//
// SPDX-License-Identifier: Apache-2.0

#include "program.h"

#include "process_memory.h"
#include "program_sizes.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;
using detail::raise;

/// Whether a condition holds.
bool holds(const c10::IValue& condition) { return condition.toTensor().item().toBool(); }

/// A number as the dispatcher takes it.
c10::IValue as_value(const Number& number, bool is_float) {
  return is_float ? c10::IValue(number.as_double()) : c10::IValue(as_int(number));
}
at::Scalar as_scalar(const Number& number) {
  return number.is_int ? at::Scalar(number.integer) : at::Scalar(number.real);
}

/// A seed that depends on both. Seeds that are close give results far apart, by splitmix64's steps.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t element) {
  seed = seed * 0xbf58476d1ce4e5b9 + element * 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  return seed ^ (seed >> 31);
}

/// The first element of the seeds, where their others are 0; else a number that depends on all.
/// None where the program has no seeds.
std::optional<std::uint64_t> seed_of(at::TensorList inputs, const std::vector<Form>& forms) {
  std::optional<std::uint64_t> seed;
  bool is_first = true;
  for (std::size_t input = 0; input < forms.size(); ++input) {
    if (!forms[input].is_seed) {
      continue;
    }
    const at::Tensor elements = inputs[input].to(at::kLong).contiguous();
    seed = seed.value_or(0);
    for (int64_t i = 0; i < elements.numel(); ++i) {
      const auto element = static_cast<std::uint64_t>(elements.const_data_ptr<int64_t>()[i]);
      seed = is_first ? element : element == 0 ? *seed : mixed(*seed, element);
      is_first = false;
    }
  }
  return seed;
}

/// What aten::dropout of the CPU does, which draws in the order of the memory and takes no
/// generator: PyTorch (2.11) records it as aten::native_dropout, which draws in the order of the
/// dimensions. False where nothing is drawn.
bool drop_out(std::vector<c10::IValue>& stack, const std::optional<at::Generator>& generator) {
  const at::Tensor input = stack.at(0).toTensor();
  const double kept = 1 - stack.at(1).toDouble();
  if (input.numel() == 0 || !(stack.at(2).isNone() || stack.at(2).toBool())) {
    return false;
  }
  at::Tensor mask = at::empty_like(input, at::kBool);
  mask.bernoulli_(kept, generator);
  at::Tensor result = input.mul(mask).mul_(kept == 0 ? 0. : 1 / kept);
  stack.clear();
  stack.emplace_back(std::move(result));
  stack.emplace_back(std::move(mask));
  return true;
}

}  // namespace

c10::IValue Program::value_of(const Source& source, const std::vector<int64_t>& symbols) {
  const Number number = source.number.evaluate(symbols);
  switch (source.type) {
    case Type::kScalar:
      return as_scalar(number);
    case Type::kTensor:
      return at::native::wrapped_scalar_tensor(as_scalar(number));
    default:
      return as_value(number, source.type == Type::kFloat);
  }
}

/// Gives the symbols that are sizes of a call's results their values.
void Program::measure(const Node& node, const std::vector<c10::IValue>& values,
                      std::vector<int64_t>& symbols) const {
  Report report("AtenProgram");
  for (const Size& size : node.sizes) {
    const at::Tensor& tensor = values[size.value].toTensor();
    if (!tensor.defined() || size.dim >= tensor.dim()) {
      raise(Status::kShape, {"AtenProgram: line ", node.line, " of the program: expected a result ",
                             "with a dimension ", size.dim, ", got ", detail::tensor_text(tensor)});
    }
    symbols[size.symbol] = tensor.size(size.dim);
    check_range(symbols_[size.symbol], symbols[size.symbol], report);
  }
  report.raise_if_failed();
  check_guards(guards_, symbols_, symbols);
}

c10::IValue Program::make(const Source& source, std::vector<c10::IValue>& values,
                          const std::vector<int64_t>& symbols) const {
  switch (source.form) {
    case Source::Form::kConstant:
      return source.constant;
    case Source::Form::kValue:
      return source.is_last_use ? std::move(values[source.value]) : values[source.value];
    case Source::Form::kNumber:
      return value_of(source, symbols);
    case Source::Form::kTensors: {
      c10::List<at::Tensor> list;
      for (const Source& element : source.elements) {
        list.push_back(make(element, values, symbols).toTensor());
      }
      return list;
    }
    case Source::Form::kOptionalTensors: {
      c10::List<std::optional<at::Tensor>> list;
      for (const Source& element : source.elements) {
        const c10::IValue value = make(element, values, symbols);
        list.push_back(value.isNone() ? std::nullopt : std::optional<at::Tensor>(value.toTensor()));
      }
      return list;
    }
    case Source::Form::kInts: {
      c10::List<int64_t> list;
      for (const Source& element : source.elements) {
        list.push_back(make(element, values, symbols).toInt());
      }
      return list;
    }
    case Source::Form::kFloats: {
      c10::List<double> list;
      for (const Source& element : source.elements) {
        list.push_back(make(element, values, symbols).toDouble());
      }
      return list;
    }
  }
  return {};
}

bool Program::runs(const Node& node, const std::vector<c10::IValue>& values) {
  return std::all_of(node.conditions.begin(), node.conditions.end(),
                     [&](const Condition& condition) {
                       return operators::holds(values[condition.value]) == condition.holds;
                     });
}

/// Frees what a node that does not run would have been the last to read.
void Program::skip(const Node& node, std::vector<c10::IValue>& values) {
  const auto free_last = [&](const Source& source, const auto& self) -> void {
    if (source.is_last_use) {
      values[source.value] = {};
    }
    for (const Source& element : source.elements) {
      self(element, self);
    }
  };
  for (const Source& source : node.arguments) {
    free_last(source, free_last);
  }
  for (const std::size_t value : node.unread) {
    values[value] = {};
  }
}

void Program::run(const Node& node, std::vector<c10::IValue>& values, std::vector<int64_t>& symbols,
                  std::vector<c10::IValue>& stack, RandomState* random) const {
  for (const Source& source : node.arguments) {
    stack.push_back(make(source, values, symbols));
  }
  if (node.called == nullptr) {
    stack = {std::move(stack.at(holds(stack.at(0)) ? 1 : 2))};
  } else if (!node.is_random) {
    node.called->resolved().handle.callBoxed(&stack);
  } else if (random == nullptr) {
    const std::lock_guard<std::mutex> lock(generator_mutex());
    if (!node.is_dropout || !drop_out(stack, std::nullopt)) {
      node.called->resolved().handle.callBoxed(&stack);
    }
  } else if (node.generator >= 0) {
    stack[static_cast<std::size_t>(node.generator)] = random->generator();
    node.called->resolved().handle.callBoxed(&stack);
  } else if (!node.is_dropout || !drop_out(stack, random->generator())) {
    random->lend([&] { node.called->resolved().handle.callBoxed(&stack); });
  }
  if (node.unpacks) {
    const c10::List<at::Tensor> list = stack.at(0).toTensorList();
    if (list.size() != node.results.size()) {
      raise(Status::kCount, {"AtenProgram: line ", node.line, " of the program: expected ",
                             node.results.size(), " tensors, got ", list.size()});
    }
    stack.clear();
    for (std::size_t i = 0; i < list.size(); ++i) {
      stack.emplace_back(list.get(i));
    }
  }
  std::size_t made = 0;
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (node.results[i] >= 0) {
      const c10::IValue& value = stack.at(i);
      const bool has_bytes = value.isTensor() && value.toTensor().has_storage();
      made += has_bytes ? value.toTensor().nbytes() : 0;
      values[static_cast<std::size_t>(node.results[i])] = std::move(stack.at(i));
    }
  }
  note_made(made);
  if (!node.sizes.empty()) {
    measure(node, values, symbols);
  }
  for (const std::size_t value : node.unread) {
    values[value] = {};
  }
  stack.clear();
}

namespace {

/// Copies a large value that nothing else refers to into the host's memory, so that its own is
/// freed now and not at the end of the call. What reads the value reads it there.
void move_to(const at::Tensor& place, c10::IValue& value) {
  constexpr std::size_t kLarge = std::size_t{1} << 16;  // bytes; below that it saves nothing
  const at::Tensor made = std::move(value).toTensor();
  const bool moves = made.defined() && made.layout() == at::kStrided && made.nbytes() >= kLarge &&
                     made.is_contiguous() && !made.is_conj() && !made.is_neg() &&
                     made.use_count() == 1 && made.storage().use_count() == 1 &&
                     made.device() == place.device() && made.scalar_type() == place.scalar_type() &&
                     made.sizes() == place.sizes();
  value = moves ? place.copy_(made) : made;
}

/// " (line 44 of the program, aten::embedding; float32 [10, 4]; int64 [3])": where a program
/// failed, with the tensors that the operator was given. Those of the program are its weights,
/// above all.
[[gnu::cold]] std::string place_text(int line, const RegisteredOperator* called,
                                     const std::vector<c10::IValue>& arguments) {
  std::string text =
      join({" (line ", line, " of the program, ", called == nullptr ? "choose" : called->name()});
  const auto add = [&text](const c10::IValue& argument) {
    if (argument.isTensor()) {
      text += "; " + detail::tensor_text(argument.toTensor());
    }
  };
  for (const c10::IValue& argument : arguments) {
    if (argument.isList()) {
      for (const c10::IValue& element : argument.toListRef()) {
        add(element);
      }
    }
    add(argument);
  }
  return text + ")";
}

}  // namespace

bool Program::is_current() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.called == nullptr || node.called->is_current();
  });
}

std::vector<at::Tensor> Program::operator()(std::vector<at::Tensor> inputs,
                                            const std::vector<at::Tensor>& places) const {
  std::vector<int64_t> symbols = bind_sizes(inputs, inputs_, symbols_, guards_);
  std::optional<RandomState> random;
  if (const std::optional<std::uint64_t> seed = seed_of(inputs, inputs_)) {
    random.emplace(*seed);
  }
  std::vector<c10::IValue> values(std::make_move_iterator(inputs.begin()),
                                  std::make_move_iterator(inputs.end()));
  values.resize(value_count_);
  std::vector<c10::IValue> stack;
  for (const Node& node : nodes_) {
    try {
      if (!runs(node, values)) {
        skip(node, values);
        continue;
      }
      run(node, values, symbols, stack, random.has_value() ? &*random : nullptr);
      for (const Output& output : node.outputs) {
        if (!places.empty()) {
          move_to(places[output.result], values[output.value]);
        }
      }
    } catch (const Error&) {
      throw;
    } catch (...) {
      const Failure failure =
          detail::describe_failure("AtenProgram", place_text(node.line, node.called.get(), stack));
      raise(failure.status, {failure.text});
    }
  }
  std::vector<at::Tensor> results;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    results.push_back(values[results_[i]].toTensor());
    if (!fits(results.back(), outputs_[i], symbols)) {
      raise(Status::kShape,
            {"AtenProgram: %", outputs_[i].value, ": expected ", form_text(outputs_[i], symbols),
             " as PyTorch said when the module was exported, got ",
             detail::tensor_text(results.back())});
    }
  }
  return results;
}

std::vector<at::Tensor> Program::infer(at::TensorList inputs) const {
  const std::vector<int64_t> symbols = bind_sizes(inputs, inputs_, symbols_, guards_);
  std::vector<at::Tensor> results;
  for (const Form& output : outputs_) {
    std::vector<int64_t> sizes;
    for (const Expression& size : output.sizes) {
      if (!size.is_known(symbols)) {
        raise(Status::kValues,
              {"AtenProgram: expected a module whose results have sizes that ",
               "follow from those of its inputs, got one whose sizes depend on ", "values"});
      }
      sizes.push_back(as_int(size.evaluate(symbols)));
    }
    results.push_back(detail::make_meta(sizes, scalar_type(output.dtype)));
  }
  return results;
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
