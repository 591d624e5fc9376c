// The shapes of an operator's results.
//
// SPDX-License-Identifier: Apache-2.0

#include "operator_shapes.h"

#include "generator.h"

#include <ATen/ops/full.h>
#include <aten_bridge/tensors/exceptions.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::join;
using detail::Operand;
using detail::raise;

/// Whether PyTorch's Python part tells other results than the kernel for the CPU gives (2.11):
/// other shapes, or, of the statistics of float16 and bfloat16, float32.
bool has_wrong_meta(const Schema& schema, const Arguments& metas) {
  const std::string& name = schema.name;
  if (name.rfind("aten::", 0) != 0) {
    return false;
  }
  const bool has_statistics =
      schema.results > 1 && (name.find("batch_norm") != std::string::npos ||
                             name.find("native_layer_norm") != std::string::npos);
  return name.find("embedding_bag") != std::string::npos ||
         (has_statistics &&
          std::any_of(metas.operands, metas.operands + metas.inputs, [](const Operand& input) {
            return input.view.defined() && at::isReducedFloatingType(input.view.scalar_type());
          }));
}

/// The meta arguments of a call, materialised with memory full of `value`, so that an operator
/// without a meta kernel can be run on them.
class MaterialisedArguments {
 public:
  MaterialisedArguments(const Arguments& metas, const at::Scalar& value)
      : arguments(metas), operands_(static_cast<std::size_t>(metas.inputs)) {
    for (int i = 0; i < metas.inputs; ++i) {
      const at::Tensor& meta = metas.operands[i].view;
      if (meta.defined()) {
        operands_[static_cast<std::size_t>(i)].view =
            at::full(meta.sizes(), value, meta.scalar_type());
      }
    }
    arguments.operands = operands_.data();
    arguments.outputs = 0;
  }
  MaterialisedArguments(const MaterialisedArguments&) = delete;
  MaterialisedArguments& operator=(const MaterialisedArguments&) = delete;

  Arguments arguments;

 private:
  std::vector<Operand> operands_;
};

constexpr const char* kImportPyTorch =
    "; import torch, whose Python part knows the shapes of more operators";

bool have_same_shapes(const Tensors& a, const Tensors& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const at::Tensor& x, const at::Tensor& y) {
        return x.defined() == y.defined() &&
               (!x.defined() || (x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type()));
      });
}

/// Whether it is an operator of PyTorch itself, which can be run on made-up values: those of other
/// libraries may have effects, and it is not known what their sizes depend on.
bool is_atens(const Operator& op) { return op.schema().name.rfind("aten::", 0) == 0; }

/// The shapes of an operator that cannot be asked with meta tensors: it is run on ones and on
/// zeros, of which other shapes come if they depend on values. One of them may be refused.
Tensors infer_by_running(const Operator& op, const Arguments& metas) {
  if (!is_atens(op)) {
    raise(Status::kValues, {op.schema().name, detail::kDependsOnValues});
  }
  const KeptGenerator generator;
  std::optional<Tensors> from_zeros;
  try {
    from_zeros = op.call(MaterialisedArguments(metas, 0).arguments);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
  Tensors from_ones;
  try {
    from_ones = op.call(MaterialisedArguments(metas, 1).arguments);
  } catch (const std::exception& error) {
    if (from_zeros.has_value()) {
      return *std::move(from_zeros);
    }
    raise(Status::kMetaInPython,
          {op.schema().name, ": expected shapes that PyTorch tells without data, or ",
           "with zeros or ones in the inputs, got the error: ", detail::exception_text(error),
           kImportPyTorch});
  }
  if (from_zeros.has_value() && !have_same_shapes(*from_zeros, from_ones)) {
    raise(Status::kValues, {op.schema().name, detail::kDependsOnValues});
  }
  return from_ones;
}

/// Whether a call takes milliseconds and little memory, as far as its inputs and the attributes
/// that may be sizes say it.
bool is_small(const Arguments& metas) {
  constexpr double kMostElements = 1 << 20;
  double elements = 1;
  for (int i = 0; i < metas.inputs; ++i) {
    const at::Tensor& meta = metas.operands[i].view;
    elements *= meta.defined() ? std::max(1.0, static_cast<double>(meta.numel())) : 1;
  }
  const auto multiply = [&](int64_t number) {
    elements *= std::max(1.0, std::abs(static_cast<double>(number)));
  };
  for (const c10::IValue& value : static_cast<const OperatorInstance*>(metas.instance)->values()) {
    if (value.isInt()) {
      multiply(value.toInt());
    } else if (value.isIntList()) {
      for (const int64_t number : value.toIntVector()) {
        multiply(number);
      }
    }
  }
  return elements <= kMostElements;
}

/// Throws what PyTorch's kernel says of inputs that a meta function in Python refuses: these have
/// texts such as "not enough values to unpack" (PyTorch 2.11). The kernel is run on zeros, if that
/// is cheap; where it takes them, the meta function's text stays.
void throw_as_kernel_does(const Operator& op, const Arguments& metas) {
  const bool is_internal = op.schema().name.rfind("aten::_", 0) == 0;  // checks less
  if (is_atens(op) && !is_internal && is_small(metas)) {
    const KeptGenerator generator;
    static_cast<void>(op.call(MaterialisedArguments(metas, 0).arguments));
  }
}

std::string layout_text(at::Layout layout) {
  std::ostringstream text;
  text << layout;
  return text.str();
}

}  // namespace

Tensors infer_results(const Operator& op, const Arguments& metas) {
  Tensors results;
  try {
    results = has_wrong_meta(op.schema(), metas) ? infer_by_running(op, metas) : op.call(metas);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (!detail::is_about_meta(detail::exception_text(error))) {
      if (dynamic_cast<const c10::Error*>(&error) == nullptr) {  // Python's
        throw_as_kernel_does(op, metas);
      }
      throw;
    }
    if (op.is_data_dependent()) {  // with these inputs: aten::index is so with masks alone
      raise(Status::kValues, {op.schema().name, detail::kDependsOnValues});
    }
    results = infer_by_running(op, metas);
  }
  for (at::Tensor& result : results) {
    result = defined(result);
    if (result.layout() != at::kStrided) {
      raise(Status::kOutput, {op.schema().name, ": expected an operator whose results are dense, ",
                              "got one whose result is ", layout_text(result.layout())});
    }
  }
  return results;
}

}  // namespace aten_bridge::operators

#pragma GCC visibility pop
