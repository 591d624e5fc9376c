// Gives a program's symbols the sizes of its inputs, and checks them.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_sizes.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;
using detail::raise;

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

}  // namespace

std::string form_text(const Form& form, const std::vector<int64_t>& symbols) {
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

void check_range(const Symbol& bounds, int64_t size, Report& report) {
  if (size < bounds.least || size > bounds.most) {
    const bool is_bounded = bounds.most != std::numeric_limits<int64_t>::max();
    report.add(Status::kShape, {bounds.name, ": expected a size from ", bounds.least,
                                is_bounded ? join({" to ", bounds.most}) : " on",
                                ", for which the module was exported, got ", size});
  }
}

std::vector<int64_t> bind_sizes(at::TensorList inputs, const std::vector<Form>& forms,
                                const std::vector<Symbol>& bounds,
                                const std::vector<Guard>& guards) {
  Report report("AtenProgram");
  if (inputs.size() != forms.size()) {
    raise(Status::kCount, {"AtenProgram: expected ", detail::count_text(forms.size(), "input"),
                           ", got ", inputs.size()});
  }
  std::vector<int64_t> symbols(bounds.size(), -1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<Expression>& sizes = forms[i].sizes;
    for (std::size_t d = 0;
         d < sizes.size() && inputs[i].dim() == static_cast<int64_t>(sizes.size()); ++d) {
      if (sizes[d].function == Expression::Function::kSymbol) {
        int64_t& symbol = symbols[static_cast<std::size_t>(sizes[d].symbol)];
        symbol = symbol < 0 ? inputs[i].size(static_cast<int64_t>(d)) : symbol;
      }
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Form& form = forms[i];
    const at::Tensor& input = inputs[i];
    if (!fits(input, form, symbols)) {
      report.add(Status::kShape, {"%", form.value, ": expected ", form_text(form, symbols),
                                  ", got ", detail::tensor_text(input), cure_of(input, form)});
    }
  }
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (!bounds[i].is_measured && symbols[i] >= 0) {  // -1: its input has another rank
      check_range(bounds[i], symbols[i], report);
    }
  }
  report.raise_if_failed();
  check_guards(guards, bounds, symbols);
  return symbols;
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
