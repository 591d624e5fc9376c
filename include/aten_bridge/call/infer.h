// Shapes before a call.
//
// A meta function sees tensors that have a shape and a dtype and no data. Hosts do not always know
// these yet. The bridge then tries several values for each unknown: a result that is the same for
// all of them is known, one that differs is not.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_INFER_H_
#define ATEN_BRIDGE_CALL_INFER_H_

#include <aten_bridge/call/abstract_values.h>
#include <aten_bridge/call/bind.h>
#include <aten_bridge/tensors/exceptions.h>
#include <aten_bridge/tensors/scope.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The sizes that an output parameter has before the kernel runs: twelve zeros, as no other tensor
/// has, so that an _out function resizes it. A function that only writes, as copy_() does, leaves
/// them.
inline constexpr std::array<int64_t, 12> kUnwritten = {};

/// An output as a meta function tells it.
struct InferredOutput {
  DType dtype = DType::kNone;
  std::vector<int64_t> sizes;
};

/// What is wrong with an output that a kernel has not resized; `inputs` follow what was got.
[[gnu::cold]] inline Fault not_resized(const std::string& inputs = {}) {
  return {"an _out function that gives the output its shape",
          kGot,
          "a kernel that writes to the shape it has",
          kDo,
          "give the kernel a meta function: aten_bridge::meta(function)",
          inputs};
}

/// Throws where outputs have still the sizes kUnwritten.
inline void check_resized(const KernelDescriptor& kernel, const Tensors& outputs) {
  Report report(kernel.operator_name);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined() && !outputs[i].unsafeGetTensorImpl()->has_symbolic_sizes_strides() &&
        outputs[i].sizes() == at::IntArrayRef(kUnwritten)) {
      report.add(Status::kShape, output_name(kernel, i), not_resized());
    }
  }
  report.raise_if_failed();
}

/// Counts the operands of a call with this number of inputs, none of which is set yet. Throws
/// `Error`, with what is in the report, if the kernel has another number of inputs.
[[gnu::cold]] inline void count_inputs(const KernelDescriptor& kernel, const HostMessages& messages,
                                       std::size_t inputs, Arguments& arguments, Report& report) {
  arguments.kernel = &kernel;
  arguments.messages = &messages;
  const int count = static_cast<int>(inputs);
  set_counts(kernel, kernel.list_begin < 0 ? 0 : std::max(0, count - kernel.inputs + 1), arguments);
  if (arguments.inputs != count) {
    add_count_fault(arguments, -1, count + arguments.outputs, report);
    report.raise();
  }
}

/// A kernel whose shapes a host asks for.
struct InferenceCall {
  const KernelBase& kernel;
  Instance* instance;
  const HostMessages& messages;
};

/// Meta tensors for the operands of a call whose inputs are all known.
class MetaArguments {
 public:
  /// Throws `Error` if the kernel cannot have these inputs.
  [[gnu::cold]] MetaArguments(const InferenceCall& call, const std::vector<AbstractValue>& inputs) {
    Report report(call.kernel.info.operator_name);
    count_inputs(call.kernel.info, call.messages, inputs.size(), arguments, report);
    arguments.instance = call.instance;
    operands_.resize(static_cast<std::size_t>(arguments.size()));
    arguments.operands = operands_.data();
    at::ScalarType first = at::kFloat;
    for (std::size_t i = inputs.size(); i-- > 0;) {
      const AbstractValue& input = inputs[i];
      Operand& operand = operands_[i];
      operand.name = {Role::kInput, static_cast<int>(i)};
      operand.desc.data = const_cast<double*>(input.value.data());  // NOLINT: nobody writes to it
      operand.desc.sizes = input.sizes.data();
      operand.desc.ndim = static_cast<int>(input.sizes.size());
      operand.desc.dtype = input.dtype;
      operand.desc.numel = 1;  // only read for a number
      if (!input.is_none()) {
        operand.view = make_meta(input.sizes, scalar_type(input.dtype));
        first = input.is_number ? first : operand.view.scalar_type();
      }
    }
    for (int i = 0; i < arguments.outputs; ++i) {
      arguments.output(i).view = make_meta(kUnwritten, first);
    }
    arguments.list = &list_;
    fill_list(arguments);
  }

  [[gnu::cold, gnu::noinline]] ~MetaArguments() = default;
  MetaArguments(const MetaArguments&) = delete;
  MetaArguments& operator=(const MetaArguments&) = delete;

  Arguments arguments;  // refers to the operands

 private:
  std::vector<Operand> operands_;
  Tensors list_;
};

[[gnu::cold]] inline std::vector<InferredOutput> infer_known(
    const InferenceCall& call, const std::vector<AbstractValue>& inputs) {
  const KernelBase& kernel = call.kernel;
  const MetaArguments metas(call, inputs);
  const Tensors results = kernel.infer(metas.arguments);
  check_resized(kernel.info, results);
  std::vector<InferredOutput> outputs(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const at::Tensor& result = results[i];
    const DType dtype = result.defined() ? dtype_of(result.scalar_type()) : DType::kNone;
    if (dtype == DType::kNone) {
      raise(Status::kDtype,
            {kernel.info.operator_name, ": output ", i, ": expected ", dtype_names(), ", got ",
             tensor_text(result), " from the meta function"});
    }
    outputs[i] = {dtype, result.sizes().vec()};
  }
  return outputs;
}

/// Keeps the sizes that are the same in both, and marks the others as unknown.
[[gnu::cold]] inline void keep_common(std::vector<InferredOutput>& outputs,
                                      const std::vector<InferredOutput>& others) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::vector<int64_t>& sizes = outputs[i].sizes;
    if (sizes.size() != others[i].sizes.size()) {
      sizes.assign(1, kUnknownRank);
    }
    for (std::size_t j = 0; j < sizes.size() && sizes[0] != kUnknownRank; ++j) {
      sizes[j] = sizes[j] == others[i].sizes[j] ? sizes[j] : kUnknownSize;
    }
  }
}

/// Finds the outputs for inputs of which only sizes and numbers are unknown; false if the meta
/// function throws for all values that are tried, and then its first exception in `failure`.
[[gnu::cold]] inline bool probe_sizes(const InferenceCall& call,
                                      const std::vector<AbstractValue>& inputs,
                                      std::vector<InferredOutput>& outputs,
                                      std::exception_ptr& failure) {
  int successes = 0;
  const auto add = [&](const std::vector<AbstractValue>& tried) {
    try {
      std::vector<InferredOutput> found = infer_known(call, tried);
      if (++successes == 1) {
        outputs = std::move(found);
      } else {
        keep_common(outputs, found);
      }
      return true;
    } catch (...) {
      failure = failure == nullptr ? std::current_exception() : failure;
      return false;
    }
  };

  bool has_worked = false;
  int64_t works = 0;
  for (const int64_t candidate : size_candidates(inputs)) {
    std::vector<AbstractValue> tried = inputs;
    substitute_unknowns(tried, candidate);
    if (add(tried) && !has_worked) {
      has_worked = true;
      works = candidate;
    }
  }
  // Then each unknown alone gets another value: the difference of two sizes is not always 0.
  for (int place = 0; has_worked; ++place) {
    for (const int64_t another : {2 * works, int64_t{1}}) {
      std::vector<AbstractValue> tried = inputs;
      if (!substitute_unknowns(tried, works, place, another)) {
        has_worked = false;
        break;
      }
      add(tried);
    }
  }
  if (successes == 1) {  // nothing tells which of the sizes depend on the unknowns
    for (InferredOutput& output : outputs) {
      std::fill(output.sizes.begin(), output.sizes.end(), kUnknownSize);
    }
  }
  return successes > 0;
}

/// Whether a size of the outputs is unknown although all sizes of the inputs are known: it depends
/// on a number.
[[gnu::cold]] inline bool depends_on_number(const std::vector<AbstractValue>& inputs,
                                            const std::vector<InferredOutput>& outputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const AbstractValue& input) { return are_known(input.sizes); }) &&
         !std::all_of(outputs.begin(), outputs.end(),
                      [](const InferredOutput& output) { return are_known(output.sizes); });
}

/// Whether these can be sizes of a tensor, as far as they are known.
inline bool are_sizes(const std::vector<int64_t>& sizes) {
  return (sizes.size() == 1 && sizes[0] == kUnknownRank) ||
         std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= kUnknownSize; });
}

/// Reports inputs that the kernel does not take, and guesses unknown dtypes from its checks.
[[gnu::cold]] inline void check_known(const InferenceCall& call, std::vector<AbstractValue>& inputs,
                                      CheckRun& checks, Report& report) {
  const KernelDescriptor& kernel = call.kernel.info;
  Arguments arguments;
  count_inputs(kernel, call.messages, inputs.size(), arguments, report);
  const int count = static_cast<int>(inputs.size());
  for (int i = 0; i < count; ++i) {
    AbstractValue& input = inputs[static_cast<std::size_t>(i)];
    const int parameter = input_parameter(arguments, i);
    const ParameterInfo& binding = kernel.bindings[parameter];
    const OperandCheck* check = find_check(kernel, Role::kInput, parameter);
    Operand operand;
    operand.name = operand_name(check, Role::kInput, i);
    operand.desc = {input.value.data(), input.sizes.data(),
                    input.has_rank() ? static_cast<int>(input.sizes.size()) : -1, 1,
                    input.typed ? input.dtype : DType::kNone};
    input.is_number = binding.kind == ParameterKind::kNumber;
    if (!are_sizes(input.sizes)) {
      report.add(Status::kShape, operand.name,
                 {"sizes of 0 or more, or -1 where one is not known", kGot,
                  shape_text(input.sizes.data(), operand.desc.ndim)});
      continue;
    }
    if (input.is_number && !input.is_none() && input.has_rank()) {
      const bool may_be_one = std::all_of(input.sizes.begin(), input.sizes.end(),
                                          [](int64_t size) { return size < 0 || size == 1; });
      if (!may_be_one) {
        operand.desc.numel = 0;  // it is not 1, which is all that is asked
        report.add(Status::kShape, operand.name, number_fault(binding.number, operand.desc));
        continue;
      }
    }
    if (input.is_none() || input.has_value) {
      check_operand(binding, check, checks, operand, report);
      continue;
    }
    if (input.typed && scalar_type(input.dtype) == at::ScalarType::Undefined) {
      report.add(Status::kDtype, operand.name, missing_dtype(dtype_name(input.dtype)));
    }
    if (check != nullptr) {
      checks(*check, operand.name, operand.desc);
      if (!input.typed && input.dtype == DType::kNone) {
        input.dtype = check->dtypes().any();
      }
    }
  }
}

/// Runs the checks of the outputs, which report faults.
[[gnu::cold]] inline void check_inferred(const KernelDescriptor& kernel,
                                         const std::vector<InferredOutput>& outputs,
                                         CheckRun& checks) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const InferredOutput& output = outputs[i];
    const bool has_rank = output.sizes.size() != 1 || output.sizes[0] != kUnknownRank;
    check_output(kernel, i,
                 {nullptr, output.sizes.data(),
                  has_rank ? static_cast<int>(output.sizes.size()) : -1, 0, output.dtype},
                 checks);
  }
}

/// Whether an error of PyTorch's is about an output that still has the sizes `kUnwritten`, which an
/// _out function would have changed.
[[gnu::cold]] inline bool is_not_resized(const std::string& text) {
  return is_about_shape(text, shape_text(kUnwritten.data(), kUnwritten.size()));
}

/// The end of the text that explains to a kernel's author what an error of PyTorch's means where
/// shapes are inferred. The status becomes kMetaInPython if PyTorch's Python part may know the
/// shapes.
[[gnu::cold]] inline std::string meta_fault(const std::string& text, const std::string& inputs,
                                            Status& status) {
  if (is_about_data(text)) {
    return join(
        {"expected shapes and dtypes to be all that is needed to infer those of the outputs, got "
         "a kernel or meta function that touches a tensor's data",
         inputs, "; give the kernel a meta function that does not: aten_bridge::meta(function)"});
  }
  if (is_not_resized(text)) {
    return not_resized(inputs).text();
  }
  const std::string name = operator_without_meta(text);
  if (!name.empty()) {
    status = Status::kMetaInPython;
    return join({"expected operators that tell the shapes of their results without data, got ",
                 name, inputs,
                 "; import torch, whose Python part knows more of them, or give the kernel a meta "
                 "function: aten_bridge::meta(function)"});
  }
  return text + inputs;
}

/// The outputs for inputs that are not entirely known. Throws the meta function's first exception
/// if it throws for all values that are tried.
[[gnu::cold]] inline std::vector<InferredOutput> infer_unknown(
    const InferenceCall& call, const std::vector<AbstractValue>& inputs) {
  const bool has_ranks = std::all_of(inputs.begin(), inputs.end(), [](const AbstractValue& input) {
    return input.is_none() || input.has_rank();
  });
  std::vector<InferredOutput> outputs;
  std::exception_ptr failure;
  const auto attempt = [&](const std::vector<AbstractValue>& typed) {
    if (has_ranks) {
      return probe_sizes(call, typed, outputs, failure);
    }
    constexpr std::size_t kRanks[] = {4, 3, 2, 1, 0, 5};
    for (const std::size_t rank : kRanks) {
      std::vector<AbstractValue> tried = typed;
      for (AbstractValue& input : tried) {
        if (!input.has_rank()) {
          input.sizes.assign(rank, kUnknownSize);
        }
      }
      if (probe_sizes(call, tried, outputs, failure)) {
        for (InferredOutput& output : outputs) {
          output.sizes.assign(1, kUnknownRank);
        }
        return true;
      }
    }
    return false;
  };
  if (!try_dtypes(inputs, attempt)) {
    std::rethrow_exception(failure);
  }
  return outputs;
}

/// The outputs' dtypes, and their sizes as far as they are known.
[[gnu::cold]] inline std::vector<InferredOutput> infer(const KernelBase& kernel,
                                                       const Attributes& attributes,
                                                       std::vector<AbstractValue> inputs,
                                                       const HostMessages& messages) {
  const std::string name = kernel.info.operator_name;
  check_pytorch(kernel.info.operator_name);
  const KernelScope scope(kernel.info.records);
  Report report(kernel.info.operator_name);
  CheckRun checks(report);
  const std::unique_ptr<Instance> instance =
      kernel.info.has_instance ? kernel.make_instance(attributes, report) : nullptr;
  const InferenceCall call{kernel, instance.get(), messages};
  check_known(call, inputs, checks, report);
  report.raise_if_failed();
  const bool all_known = std::all_of(inputs.begin(), inputs.end(),
                                     [](const AbstractValue& input) { return input.is_known(); });
  std::vector<InferredOutput> outputs;
  try {
    outputs = all_known ? infer_known(call, inputs) : infer_unknown(call, inputs);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const bool is_pytorchs = dynamic_cast<const c10::Error*>(&error) != nullptr;
    Status status = is_pytorchs ? Status::kAten : Status::kException;
    const std::string fault = meta_fault(exception_text(error), inputs_text(inputs), status);
    raise(status, {name, ": ", fault});
  }
  if (depends_on_number(inputs, outputs)) {
    raise(Status::kShape,
          {name, ": expected the numbers on which the shape of the output ",
           "depends to be known before the call, got a tensor", inputs_text(inputs),
           "; pass a Python number, make it an attribute, or give ", messages.results});
  }
  check_inferred(kernel.info, outputs, checks);
  report.raise_if_failed();
  return outputs;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_INFER_H_
