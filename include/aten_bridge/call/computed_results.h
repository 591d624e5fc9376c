// Results whose sizes are known once they are computed, for hosts that allocate them before that.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_COMPUTED_RESULTS_H_
#define ATEN_BRIDGE_CALL_COMPUTED_RESULTS_H_

#include <ATen/ops/from_blob.h>
#include <aten_bridge/call/result_form.h>
#include <aten_bridge/call/results.h>
#include <aten_bridge/interface/kernel_base.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

[[gnu::cold]] ATEN_BRIDGE_INLINE ResultForm result_form(const Attributes& attributes) {
  std::string name;
  if (attributes.has(kFormAttribute)) {
    attributes.get(kFormAttribute, name);
  }
  return result_form(name);
}

[[gnu::cold]] ATEN_BRIDGE_INLINE ResultForm result_form(std::string_view name) {
  return name == "sizes"    ? ResultForm::kSizes
         : name == "padded" ? ResultForm::kPadded
                            : ResultForm::kValues;
}

using ComputedResults = std::vector<at::Tensor>;

ATEN_BRIDGE_INLINE void copy_results(const void* results, void* const* outputs) {
  for (const at::Tensor& value : *static_cast<const ComputedResults*>(results)) {
    if (value.numel() > 0) {
      at::from_blob(*outputs, value.sizes(), value.scalar_type()).copy_(value);
    }
    ++outputs;
  }
}

ATEN_BRIDGE_INLINE void free_results(void* results) {
  delete static_cast<ComputedResults*>(results);
}

inline constexpr int64_t kSizesColumns = 2 + kMaxNdim;

/// Writes the table of sizes. Throws `Error` for a dtype that hosts do not have.
inline void write_sizes(const Arguments& arguments, at::TensorList results) {
  const auto count = static_cast<int64_t>(results.size());
  std::vector<int64_t> rows(results.size() * static_cast<std::size_t>(kSizesColumns));
  int64_t* row = rows.data();
  auto computed = std::make_unique<ComputedResults>();
  for (const at::Tensor& result : results) {
    const DType dtype = result.defined() ? dtype_of(result.scalar_type()) : DType::kNone;
    if (dtype == DType::kNone) {
      raise(Status::kDtype, {arguments.kernel->operator_name, ": expected ", dtype_names(),
                             ", got ", tensor_text(result)});
    }
    if (result.layout() != at::kStrided || result.device() != arguments.output(0).view.device()) {
      raise(Status::kOutput, {arguments.kernel->operator_name, ": expected strided results on ",
                              arguments.output(0).view.device().str(), ", got ",
                              tensor_text(result), " on ", result.device().str(),
                              result.layout() == at::kStrided ? "" : ", which is not strided"});
    }
    if (result.dim() > kMaxNdim) {
      raise(Status::kShape, {arguments.kernel->operator_name, ": expected results of at most ",
                             kMaxNdim, " dimensions, got ", tensor_text(result)});
    }
    row[0] = static_cast<int64_t>(dtype);
    row[1] = result.dim();
    std::copy(result.sizes().begin(), result.sizes().end(), row + 2);
    row += kSizesColumns;
    if (place_of_results != nullptr) {
      // What the kernel keeps may change before the host copies it. An input without elements has
      // no memory to be lent, but the tensor is the host's.
      const bool stays = !is_held(result) && !is_lent(result) && result.numel() > 0;
      computed->push_back(stays ? result.detach() : result.detach().clone());
    }
  }
  at::Tensor table = at::from_blob(rows.data(), {count, kSizesColumns}, at::kLong)
                         .to(arguments.output(0).view.device());
  arguments.results->take(arguments, &table, 1);
  if (place_of_results != nullptr) {
    *place_of_results = computed.release();
  }
}

/// Adds to the report why a result and its sizes cannot be written to two outputs.
inline void check_padded(const Arguments& arguments, const at::Tensor& result,
                         const Operand& output, const Operand& sizes, Report& report) {
  const bool fits =
      result.defined() && result.scalar_type() == output.view.scalar_type() &&
      result.dim() == output.view.dim() &&
      std::equal(result.sizes().begin(), result.sizes().end(), output.view.sizes().begin(),
                 [](int64_t a, int64_t b) { return a <= b; });
  if (!fits) {
    report.add(Status::kOutput, output.name,
               {output.desc.text(), " or less of it, as ", arguments.messages->results, " say",
                kGot, tensor_text(result)});
  } else if (sizes.view.scalar_type() != at::kLong || sizes.view.numel() != result.dim()) {
    report.add(Status::kOutput, sizes.name,
               {"int64 [", result.dim(), "] for the sizes of ", output.name.text(), kGot,
                sizes.desc.text()});
  }
}

/// Writes results to the start of larger outputs, and their sizes.
inline void write_padded(const Arguments& arguments, at::TensorList results) {
  Report report(arguments.kernel->operator_name);
  const int count = static_cast<int>(results.size());
  for (int i = 0; i < count; ++i) {
    check_padded(arguments, results[static_cast<std::size_t>(i)], arguments.output(i),
                 arguments.output(count + i), report);
  }
  report.raise_if_failed();
  const Tensors separate = separated(arguments, results.data(), count);
  for (int i = 0; i < count; ++i) {
    const at::Tensor& result = separate[static_cast<std::size_t>(i)];
    at::Tensor begin = arguments.output(i).view;
    if (!is_in_place(begin, result)) {
      begin.zero_();
      for (int64_t d = 0; d < result.dim(); ++d) {
        begin = begin.narrow(d, 0, result.size(d));
      }
      begin.copy_(result.detach());
    }
    std::vector<int64_t> row = result.sizes().vec();
    arguments.output(count + i).view.copy_(at::from_blob(row.data(), {result.dim()}, at::kLong));
  }
}

/// Writes what a host asked for instead of the results.
using WriteForm = void (*)(const Arguments& arguments, at::TensorList results);

/// A kernel in another form. Its functions are cold, or g++ would take them for those that each
/// call of a kernel's means.
class ComputedKernel final : public KernelBase {
 public:
  ComputedKernel(const KernelBase& kernel, WriteForm write, int outputs)
      : KernelBase(kernel.info), kernel_(kernel), write_(write) {
    for (int i = 0; i < info.check_count; ++i) {
      const OperandCheck& check = info.checks[i];
      if (check.role() == Role::kInput) {
        checks_.push_back(check);
      } else if (write == &write_padded) {
        checks_.push_back(aten_bridge::output(check.name()));  // what is larger has the name alone
      }
    }
    info.checks = checks_.data();
    info.check_count = static_cast<int>(checks_.size());
    info.outputs = outputs;
    info.outputs_are_sizes = write == &write_sizes;
    info.has_meta = info.outputs_are_sizes;
    info.is_data_dependent = false;
  }
  ComputedKernel(const ComputedKernel&) = delete;
  ComputedKernel& operator=(const ComputedKernel&) = delete;

  [[gnu::cold]] void invoke(const Arguments& arguments) const override {
    const Policy policy(write_, arguments);
    kernel_.invoke(arguments.with_kernel(kernel_.info, policy));
  }
  [[gnu::cold]] std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                                        Report& report) const override {
    return kernel_.make_instance(attributes, report);
  }
  [[gnu::cold]] Tensors infer(const Arguments& /*arguments*/) const override {
    if (!info.outputs_are_sizes) {
      raise(Status::kValues, {info.operator_name, kDependsOnValues});
    }
    return {make_meta({kernel_.info.outputs, kSizesColumns}, at::kLong)};
  }
  [[gnu::cold]] void measure_workspaces(const Arguments& arguments, int64_t* elements,
                                        ElementLayout* layouts) const override {
    kernel_.measure_workspaces(arguments, elements, layouts);
  }
  [[gnu::cold]] void visit_attributes(AttributeVisitor& visitor) const override {
    kernel_.visit_attributes(visitor);
  }

 private:
  class Policy final : public ResultPolicy {
   public:
    Policy(WriteForm write, const Arguments& arguments)
        : ResultPolicy(/*host_has_memory=*/false), write_(write), arguments_(arguments) {}

    void take(const Arguments& kernel_arguments, at::Tensor* results, int count) const override {
      const at::TensorList computed(results, static_cast<std::size_t>(count));
      check_results(kernel_arguments, computed);
      write_(arguments_, computed);
    }

   private:
    WriteForm write_;
    const Arguments& arguments_;
  };

  const KernelBase& kernel_;
  WriteForm write_;
  std::vector<OperandCheck> checks_;
};

[[gnu::cold]] ATEN_BRIDGE_INLINE const KernelBase& make_computed_kernel(const KernelBase& kernel,
                                                                        ResultForm form) {
  return form == ResultForm::kSizes
             ? *new ComputedKernel(kernel, &write_sizes, 1)
             : *new ComputedKernel(kernel, &write_padded, 2 * kernel.info.outputs);
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_COMPUTED_RESULTS_H_
