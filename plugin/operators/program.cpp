// A PyTorch module as a program.
//
// SPDX-License-Identifier: Apache-2.0

#include "program.h"

#include "operator_schema.h"
#include "process_memory.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;
using detail::raise;

int64_t as_int(const Number& number) {
  if (!number.is_int) {
    raise(Status::kShape,
          {"AtenProgram: expected an int, got the float ", std::to_string(number.real)});
  }
  return number.integer;
}

/// An element's type, of a list or an optional; null of others.
c10::TypePtr element_of(const c10::TypePtr& type) {
  if (const auto list = type->cast<c10::ListType>()) {
    return list->getElementType();
  }
  const auto optional = type->cast<c10::OptionalType>();
  return optional ? optional->getElementType() : nullptr;
}

bool is_tensor(const c10::TypePtr& type) { return type->kind() == c10::TypeKind::TensorType; }

bool is_list_of_tensors(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::ListType && is_tensor(element_of(type));
}

/// The number of a word, of one of PyTorch's enumerations.
std::optional<int64_t> number_of_word(c10::TypeKind type, const Literal& literal) {
  struct Word {
    c10::TypeKind type;
    const char* text;
    int64_t number;
  };
  static constexpr c10::TypeKind kFormat = c10::TypeKind::MemoryFormatType;
  static constexpr Word kWords[] = {
      {c10::TypeKind::LayoutType, "strided", static_cast<int64_t>(c10::Layout::Strided)},
      {kFormat, "contiguous_format", static_cast<int64_t>(c10::MemoryFormat::Contiguous)},
      {kFormat, "preserve_format", static_cast<int64_t>(c10::MemoryFormat::Preserve)},
      {kFormat, "channels_last", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast)},
      {kFormat, "channels_last_3d", static_cast<int64_t>(c10::MemoryFormat::ChannelsLast3d)},
  };
  DType dtype = DType::kNone;
  if (literal.kind != Literal::Kind::kWord) {
    return std::nullopt;
  }
  if (type == c10::TypeKind::ScalarTypeType) {
    return find_dtype(literal.text, dtype)
               ? std::optional<int64_t>(static_cast<int64_t>(scalar_type(dtype)))
               : std::nullopt;
  }
  for (const Word& word : kWords) {
    if (word.type == type && word.text == literal.text) {
      return word.number;
    }
  }
  return std::nullopt;
}

/// "float32 [8, any]".
[[gnu::cold]] std::string form_text(const Form& form, const std::vector<int64_t>& symbols) {
  if (form.is_seed) {
    return join({"a seed of ", dtype_name(form.dtype)});
  }
  std::string text = join({dtype_name(form.dtype), " ["});
  for (const Expression& size : form.sizes) {
    const int64_t wanted = as_int(size.evaluate(symbols));
    text += text.back() == '[' ? "" : ", ";
    text += wanted < 0 ? "any" : join({wanted});
  }
  return text + "]";
}

[[noreturn, gnu::cold]] void raise_guard(const Guard& guard, const std::vector<Symbol>& symbols,
                                         const std::vector<int64_t>& values) {
  std::string text;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (values[i] >= 0) {
      text += join({text.empty() ? "" : ", ", symbols[i].name, " = ", values[i]});
    }
  }
  raise(Status::kShape, {"AtenProgram: expected sizes with ", guard.text,
                         ", for which the module was exported, got ", text});
}

/// Those whose sizes are known.
void check_guards(const std::vector<Guard>& guards, const std::vector<Symbol>& symbols,
                  const std::vector<int64_t>& values) {
  for (const Guard& guard : guards) {
    if (guard.left.is_known(values) && guard.right.is_known(values) && !guard.holds(values)) {
      raise_guard(guard, symbols, values);
    }
  }
}

bool fits(const at::Tensor& tensor, const Form& form, const std::vector<int64_t>& symbols) {
  if (!tensor.defined() || tensor.scalar_type() != scalar_type(form.dtype)) {
    return false;
  }
  if (form.is_seed) {
    return true;
  }
  const c10::IntArrayRef sizes = tensor.sizes();
  return std::equal(sizes.begin(), sizes.end(), form.sizes.begin(), form.sizes.end(),
                    [&](int64_t size, const Expression& expected) {
                      return !expected.is_known(symbols) ||
                             size == as_int(expected.evaluate(symbols));
                    });
}

/// What to do about an input that has another dtype than the program's, or whose sizes are other
/// numbers; "" if another thing is wrong with it. The names of weights begin as torch.export's do.
[[gnu::cold]] std::string cure_of(const at::Tensor& input, const Form& form) {
  if (form.is_seed || !input.defined()) {
    return "";
  }
  if (input.scalar_type() != scalar_type(form.dtype)) {
    return "; convert it, or make the module with tensors of that dtype";
  }
  const bool is_weight = form.value.size() > 1 && form.value[1] == '_' &&
                         std::string("pbc").find(form.value[0]) != std::string::npos;
  if (is_weight || input.dim() != static_cast<int64_t>(form.sizes.size())) {
    return "";
  }
  std::string changing;
  for (std::size_t d = 0; d < form.sizes.size(); ++d) {
    const Expression& size = form.sizes[d];
    if (size.is_constant() && as_int(size.evaluate({})) != input.size(static_cast<int64_t>(d))) {
      changing += join({changing.empty() ? "" : ", ", d, ": Dim(...)"});
    }
  }
  return changing.empty() ? ""
                          : join({"; make the module with dynamic_shapes=, {", changing,
                                  "} for this input, if its sizes may change"});
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

/// Whether a condition holds.
bool holds(const c10::IValue& condition) { return condition.toTensor().item().toBool(); }

c10::complex<double> complex_of(const Literal& literal) {
  return {literal.real, literal.imaginary};
}

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

c10::OperatorHandle find_operator(const Call& call) {
  const auto handle = find_overload(call.operator_name);
  if (!handle.has_value()) {
    raise_in_line(call.line,
                  join({"expected an operator of PyTorch's dispatcher, got ", call.operator_name,
                        ", which is not there; import or load its library, or export "
                        "the module with this PyTorch"}));
  }
  return *handle;
}

// ===--- fewer outputs ---===

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

/// Makes a program of a text.
class Program::Builder {
 public:
  Builder(Program& program, ProgramText text) : program_(program), text_(std::move(text)) {}

  void build() {
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

 private:
  /// Symbols that are a whole size of an input are known from the begin on.
  void know_inputs() {
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

  /// Which symbols the call may read: those that lines told which run wherever it runs.
  void know_sizes_for(const Call& call) {
    is_known_here_ = is_known_;
    for (const auto& [symbol, conditions] : told_under_) {
      const bool ran = std::all_of(
          conditions.begin(), conditions.end(), [&](const operators::Condition& condition) {
            return std::any_of(call.conditions.begin(), call.conditions.end(),
                               [&](const operators::Condition& of_call) {
                                 return of_call.value == condition.value &&
                                        of_call.holds == condition.holds;
                               });
          });
      if (!ran) {
        is_known_here_[symbol] = -1;
      }
    }
  }

  std::size_t add_value(int line, const std::string& name, bool is_list) {
    const auto [place, is_new] = names_.emplace(name, is_list_.size());
    if (!is_new) {
      raise_in_line(line, join({"expected a new name, got '%", name, "' again"}));
    }
    is_list_.push_back(is_list);
    return place->second;
  }

  std::size_t find_value(int line, const std::string& name, bool is_list) const {
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

  Node choice_of(const Call& call) {
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

  Node node_of(const Call& call) {
    Node node;
    node.handle = find_operator(call);
    node.unpacks = call.unpacks;
    node.is_random = node.handle->hasTag(at::Tag::nondeterministic_seeded);
    node.is_dropout = call.operator_name == "aten::native_dropout";
    const c10::FunctionSchema& schema = node.handle->schema();
    if (call.arguments.size() + call.keywords.size() > schema.arguments().size()) {
      raise_in_line(call.line, join({"expected at most ", schema.arguments().size(),
                                     " arguments of ", call.operator_name, ", got ",
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

  void add_sizes(const Call& call, Node& node) {
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

  /// Refuses symbols that nothing before has told.
  void check_known(int line, const std::vector<Expression>& numbers) const {
    for (const Expression& number : numbers) {
      if (!number.is_known(is_known_)) {
        raise_in_line(line, "expected sizes that lines before have, got one that they do not have");
      }
    }
  }

  void add_results(const Call& call, const c10::FunctionSchema& schema, Node& node) {
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
      raise_in_line(call.line, join({"expected the ", returns.size(), " results of ",
                                     call.operator_name, ", got ", call.results.size(),
                                     call.unpacks ? " elements of a list" : ""}));
    }
    for (const std::string& name : call.results) {
      node.results.push_back(name.empty() ? -1
                                          : static_cast<int64_t>(add_value(
                                                call.line, name, is_list && !call.unpacks)));
    }
  }

  static Source default_of(const Call& call, const c10::Argument& argument) {
    if (!argument.default_value().has_value()) {
      raise_in_line(call.line, join({"expected the argument '", argument.name(), "' of ",
                                     call.operator_name, ", got none"}));
    }
    return constant(*argument.default_value());
  }

  static Source constant(c10::IValue value) {
    Source source;
    source.constant = std::move(value);
    return source;
  }

  Source value(int line, const std::string& name, bool is_list) const {
    Source source;
    source.form = Source::Form::kValue;
    source.value = find_value(line, name, is_list);
    return source;
  }

  [[noreturn]] static void refuse(const Call& call, const c10::Argument& argument) {
    raise_in_line(call.line, join({"argument '", argument.name(), "' of ", call.operator_name,
                                   ": expected ", argument.type()->str(), ", got another"}));
  }

  Source source_of(const Call& call, const c10::Argument& argument, const Literal& literal) const {
    c10::TypePtr type = argument.real_type();  // type() has ints for enumerations
    if (type->kind() == c10::TypeKind::OptionalType) {
      if (literal.kind == Literal::Kind::kNone) {
        return {};
      }
      type = element_of(type);
    }
    if (literal.kind == Literal::Kind::kList && type->kind() == c10::TypeKind::ListType) {
      return list_of(call, argument, element_of(type), literal);
    }
    if (type->kind() == c10::TypeKind::ListType && literal.kind == Literal::Kind::kNumber) {
      Literal list;  // an int for an int[2]
      list.elements.push_back(literal);
      return list_of(call, argument, element_of(type), list);
    }
    return single(call, argument, type, literal);
  }

  Source single(const Call& call, const c10::Argument& argument, const c10::TypePtr& type,
                const Literal& literal) const {
    switch (type->kind()) {
      case c10::TypeKind::TensorType:
      case c10::TypeKind::ListType:
        if (literal.kind == Literal::Kind::kValue) {
          return value(call.line, literal.text, !is_tensor(type));
        }
        if (is_tensor(type) && literal.kind == Literal::Kind::kNumber) {
          return number(call.line, literal, Type::kTensor);
        }
        if (is_tensor(type) && literal.kind == Literal::Kind::kBool) {
          return constant(at::native::wrapped_scalar_tensor(literal.flag));
        }
        if (is_tensor(type) && literal.kind == Literal::Kind::kComplex) {
          return constant(at::native::wrapped_scalar_tensor(complex_of(literal)));
        }
        break;
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        if (literal.kind == Literal::Kind::kNumber) {
          return number(call.line, literal, Type::kInt);
        }
        if (literal.kind == Literal::Kind::kBool) {
          return constant(static_cast<int64_t>(literal.flag));
        }
        break;
      case c10::TypeKind::ScalarTypeType:
      case c10::TypeKind::LayoutType:
      case c10::TypeKind::MemoryFormatType:
        if (const auto value = number_of_word(type->kind(), literal)) {
          return constant(*value);
        }
        break;
      case c10::TypeKind::FloatType:
      case c10::TypeKind::SymFloatType:
        if (literal.kind == Literal::Kind::kNumber) {
          return number(call.line, literal, Type::kFloat);
        }
        break;
      case c10::TypeKind::NumberType:
        if (literal.kind == Literal::Kind::kNumber) {
          return number(call.line, literal, Type::kScalar);
        }
        if (literal.kind == Literal::Kind::kComplex) {
          return constant(complex_of(literal));
        }
        if (literal.kind == Literal::Kind::kBool) {
          return constant(literal.flag);
        }
        break;
      case c10::TypeKind::BoolType:
      case c10::TypeKind::SymBoolType:
        if (literal.kind == Literal::Kind::kBool) {
          return constant(literal.flag);
        }
        break;
      case c10::TypeKind::StringType:
        if (literal.kind == Literal::Kind::kText) {
          return constant(literal.text);
        }
        break;
      case c10::TypeKind::DeviceObjType:
        if (literal.kind == Literal::Kind::kWord && literal.text == "cpu") {
          return constant(c10::Device(at::kCPU));
        }
        break;
      default:
        break;
    }
    refuse(call, argument);
  }

  Source number(int line, const Literal& literal, Type type) const {
    check_known(line, {literal.number});
    if (!literal.number.is_known(is_known_here_)) {
      raise_in_line(line,
                    "expected sizes of lines that run wherever it runs, got one of a line that "
                    "need not have run");
    }
    Source source;
    source.form = Source::Form::kNumber;
    source.type = type;
    source.number = literal.number;
    return literal.number.is_constant() ? constant(value_of(source, {})) : source;
  }

  Source list_of(const Call& call, const c10::Argument& argument, const c10::TypePtr& type,
                 const Literal& literal) const {
    Source source;
    const bool is_optional = type->kind() == c10::TypeKind::OptionalType;
    const c10::TypePtr element = is_optional ? element_of(type) : type;
    for (const Literal& each : literal.elements) {
      source.elements.push_back(is_optional && each.kind == Literal::Kind::kNone
                                    ? Source()
                                    : single(call, argument, element, each));
    }
    switch (element->kind()) {
      case c10::TypeKind::TensorType:
        source.form = is_optional ? Source::Form::kOptionalTensors : Source::Form::kTensors;
        return source;
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType:
        source.form = Source::Form::kInts;
        return source;
      case c10::TypeKind::FloatType:
        source.form = Source::Form::kFloats;
        return source;
      case c10::TypeKind::BoolType: {
        c10::List<bool> flags;
        for (const Source& each : source.elements) {
          flags.push_back(each.constant.toBool());
        }
        return constant(std::move(flags));
      }
      case c10::TypeKind::NumberType: {
        c10::List<at::Scalar> scalars;
        for (const Source& each : source.elements) {
          if (each.form != Source::Form::kConstant) {
            refuse(call, argument);
          }
          scalars.push_back(each.constant.toScalar());
        }
        return constant(std::move(scalars));
      }
      default:
        refuse(call, argument);
    }
  }

  void mark_outputs() {
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

  /// The last line that reads a value hands it on: its memory ends there.
  void mark_last_uses() {
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

  static void mark(Source& source, std::vector<bool>& is_read) {
    if (source.form == Source::Form::kValue) {
      source.is_last_use = !is_read[source.value];
      is_read[source.value] = true;
    }
    for (auto element = source.elements.rbegin(); element != source.elements.rend(); ++element) {
      mark(*element, is_read);
    }
  }

  friend class Program;

  /// The number of a source.
  static c10::IValue value_of(const Source& source, const std::vector<int64_t>& symbols) {
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

  Program& program_;
  ProgramText text_;
  std::map<std::string, std::size_t> names_;
  std::vector<bool> is_list_;
  std::vector<int64_t> is_known_;       // by symbol: 0; -1 before the line that tells its size
  std::vector<int64_t> is_known_here_;  // and where that line need not have run
  std::map<std::size_t, std::vector<operators::Condition>> told_under_;  // by symbol
};

Program::Program(const std::string& text, const std::vector<std::size_t>& wanted) {
  ProgramText parsed = parse_program(text);
  if (!wanted.empty()) {
    keep_wanted(parsed, wanted);
  }
  Builder(*this, std::move(parsed)).build();
}

std::vector<int64_t> Program::bind(at::TensorList inputs) const {
  Report report("AtenProgram");
  if (inputs.size() != inputs_.size()) {
    raise(Status::kCount, {"AtenProgram: expected ", detail::count_text(inputs_.size(), "input"),
                           ", got ", inputs.size()});
  }
  std::vector<int64_t> symbols(symbols_.size(), -1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<Expression>& sizes = inputs_[i].sizes;
    for (std::size_t d = 0;
         d < sizes.size() && inputs[i].dim() == static_cast<int64_t>(sizes.size()); ++d) {
      if (sizes[d].function == Expression::Function::kSymbol) {
        int64_t& symbol = symbols[static_cast<std::size_t>(sizes[d].symbol)];
        symbol = symbol < 0 ? inputs[i].size(static_cast<int64_t>(d)) : symbol;
      }
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Form& form = inputs_[i];
    const at::Tensor& input = inputs[i];
    if (!fits(input, form, symbols)) {
      report.add(Status::kShape, {"%", form.value, ": expected ", form_text(form, symbols),
                                  ", got ", detail::tensor_text(input), cure_of(input, form)});
    }
  }
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (!symbols_[i].is_measured && symbols[i] >= 0) {  // -1: its input has another rank
      check_range(i, symbols[i], report);
    }
  }
  report.raise_if_failed();
  check_guards(guards_, symbols_, symbols);
  return symbols;
}

void Program::check_range(std::size_t symbol, int64_t size, Report& report) const {
  const Symbol& bounds = symbols_[symbol];
  if (size < bounds.least || size > bounds.most) {
    const bool is_bounded = bounds.most != std::numeric_limits<int64_t>::max();
    report.add(Status::kShape, {bounds.name, ": expected a size from ", bounds.least,
                                is_bounded ? join({" to ", bounds.most}) : " on",
                                ", for which the module was exported, got ", size});
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
    check_range(size.symbol, symbols[size.symbol], report);
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
      return Builder::value_of(source, symbols);
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
  if (!node.handle.has_value()) {
    stack = {std::move(stack.at(holds(stack.at(0)) ? 1 : 2))};
  } else if (!node.is_random) {
    node.handle->callBoxed(&stack);
  } else if (random == nullptr) {
    const std::lock_guard<std::mutex> lock(generator_mutex());
    if (!node.is_dropout || !drop_out(stack, std::nullopt)) {
      node.handle->callBoxed(&stack);
    }
  } else if (node.generator >= 0) {
    stack[static_cast<std::size_t>(node.generator)] = random->generator();
    node.handle->callBoxed(&stack);
  } else if (!node.is_dropout || !drop_out(stack, random->generator())) {
    random->lend([&] { node.handle->callBoxed(&stack); });
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
[[gnu::cold]] std::string place_text(int line, const std::optional<c10::OperatorHandle>& handle,
                                     const std::vector<c10::IValue>& arguments) {
  std::string text = join({" (line ", line, " of the program, ",
                           handle ? c10::toString(handle->operator_name()) : "choose"});
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

std::vector<at::Tensor> Program::operator()(std::vector<at::Tensor> inputs,
                                            const std::vector<at::Tensor>& places) const {
  std::vector<int64_t> symbols = bind(inputs);
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
          detail::describe_failure("AtenProgram", place_text(node.line, node.handle, stack));
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
  const std::vector<int64_t> symbols = bind(inputs);
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
