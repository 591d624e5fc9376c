// Results whose sizes are known once they are computed, for hosts that allocate them before that.
//
// Such a host calls a kernel in another form: it asks for the sizes alone, and then calls again,
// with memory of these sizes, or copies the results that the first call has left; or it has memory
// for the largest results, and is told their sizes.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_COMPUTED_RESULTS_H_
#define ATEN_BRIDGE_CALL_COMPUTED_RESULTS_H_

#include <ATen/ops/from_blob.h>
#include <aten_bridge/call/results.h>
#include <aten_bridge/interface/kernel_base.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What a call gives its host.
enum class ResultForm : std::uint8_t { kValues, kSizes, kPadded };

/// The attribute by which a host asks for another form than the values: "sizes" or "padded".
inline constexpr const char* kFormAttribute = "aten_bridge_form";

inline ResultForm result_form(const Attributes& attributes) {
  std::string form;
  if (!attributes.has(kFormAttribute) || !attributes.get(kFormAttribute, form)) {
    return ResultForm::kValues;
  }
  return form == "sizes"    ? ResultForm::kSizes
         : form == "padded" ? ResultForm::kPadded
                            : ResultForm::kValues;
}

using ComputedResults = std::vector<at::Tensor>;

/// Where this thread's next results are left; null: nowhere.
inline thread_local void** place_of_results = nullptr;

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

/// Where this thread's next calls that tell sizes leave their results; null: nowhere. Libraries
/// with a kernel that can be called so have these functions.
extern "C" __attribute__((visibility("protected"))) inline void aten_bridge_set_results(
    void** place) {
  aten_bridge::detail::place_of_results = place;
}

/// Copies them into memory of the sizes and dtypes that the kernel has told, row-major.
extern "C" __attribute__((visibility("protected"))) inline void aten_bridge_copy_results(
    const void* results, void* const* outputs) {
  for (const at::Tensor& value :
       *static_cast<const aten_bridge::detail::ComputedResults*>(results)) {
    if (value.numel() > 0) {
      at::from_blob(*outputs, value.sizes(), value.scalar_type()).copy_(value);
    }
    ++outputs;
  }
}

extern "C" __attribute__((visibility("protected"))) inline void aten_bridge_free_results(
    void* results) {
  delete static_cast<aten_bridge::detail::ComputedResults*>(results);
}

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

inline constexpr int64_t kSizesColumns = 2 + kMaxNdim;

/// Gives the host a row [dtype, rank, sizes...] of int64 for each of the results, and leaves the
/// results where aten_bridge_set_results() says. Throws `Error` for a dtype that hosts do not have.
[[gnu::noinline]] inline void tell_sizes(const Arguments& arguments, at::TensorList results) {
  // An inline function is emitted only where something refers to it.
  asm volatile(""
               :
               : "r"(&aten_bridge_set_results), "r"(&aten_bridge_copy_results),
                 "r"(&aten_bridge_free_results));
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
    if (result.dim() > kMaxNdim) {
      raise(Status::kShape, {arguments.kernel->operator_name, ": expected results of at most ",
                             kMaxNdim, " dimensions, got ", tensor_text(result)});
    }
    row[0] = static_cast<int64_t>(dtype);
    row[1] = result.dim();
    std::copy(result.sizes().begin(), result.sizes().end(), row + 2);
    row += kSizesColumns;
    if (place_of_results != nullptr) {
      const at::Tensor value = result.detach();
      // An input without elements has no memory to be lent, but the tensor is the host's.
      computed->push_back(is_lent(value) || value.numel() == 0 ? value.clone() : value);
    }
  }
  at::Tensor table = at::from_blob(rows.data(), {count, kSizesColumns}, at::kLong)
                         .to(arguments.output(0).view.device());
  arguments.results->take(arguments, &table, 1);
  if (place_of_results != nullptr) {
    *place_of_results = computed.release();
  }
}

/// These rows as a meta tensor.
[[gnu::cold]] inline at::Tensor table_of_sizes(int64_t results) {
  return make_meta({results, kSizesColumns}, at::kLong);
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

/// Writes results to the start of the first outputs, which are the largest that there can be and
/// end with zeros, and the sizes of each to one of the others.
[[gnu::noinline]] inline void write_padded(const Arguments& arguments, at::TensorList results) {
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

/// A data-dependent kernel in another form. `Base` is KernelBase: where no kernel has another form
/// there is no such class, for whose calls g++ would prepare.
template <class Base>
class ComputedKernel final : public Base {
 public:
  ComputedKernel(const Base& kernel, WriteForm write, int outputs)
      : Base(kernel.info), kernel_(kernel), write_(write) {
    KernelDescriptor& info = this->info;
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
    info.outputs_are_sizes = write == &tell_sizes;
    info.is_data_dependent = false;
  }
  ComputedKernel(const ComputedKernel&) = delete;
  ComputedKernel& operator=(const ComputedKernel&) = delete;

  void invoke(const Arguments& arguments) const override {
    const Policy policy(write_, arguments);
    kernel_.invoke(arguments.with_kernel(kernel_.info, policy));
  }
  std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                          Report& report) const override {
    return kernel_.make_instance(attributes, report);
  }
  Tensors infer(const Arguments& arguments) const override { return kernel_.infer(arguments); }
  void measure_workspaces(const Arguments& arguments, int64_t* elements,
                          ElementLayout* layouts) const override {
    kernel_.measure_workspaces(arguments, elements, layouts);
  }
  void visit_attributes(AttributeVisitor& visitor) const override {
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

  const Base& kernel_;
  WriteForm write_;
  std::vector<OperandCheck> checks_;
};

/// An exported kernel in a form. Those that are made are never destroyed: hosts end in any order.
template <const auto& kExported>
const KernelBase& in_form(ResultForm form) {
  // Without `.kernel`, nvcc 13.0 would take `auto` for KernelBase.
  const KernelBase& kernel = kExported.kernel;
  if (form == ResultForm::kSizes) {
    static const auto* const sizes = new ComputedKernel<KernelBase>(kernel, &tell_sizes, 1);
    return *sizes;
  }
  if (form == ResultForm::kPadded) {
    static const auto* const padded =
        new ComputedKernel<KernelBase>(kernel, &write_padded, 2 * kernel.info.outputs);
    return *padded;
  }
  return kernel;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_COMPUTED_RESULTS_H_
