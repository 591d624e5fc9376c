// Programs as kernels of the hosts': each by its key.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_kernel.h"

#include "overload.h"
#include "program.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::ParameterInfo;
using detail::ParameterKind;
using detail::raise;
using detail::ScalarInputType;

/// Runs a program.
class ProgramKernel final : public KernelBase {
 public:
  explicit ProgramKernel(const std::string& text) : KernelBase(make_info()), program_(text) {
    info.outputs = program_.result_count();
  }

  void invoke(const Arguments& arguments) const override {
    std::vector<at::Tensor> results = program_(*arguments.list);
    arguments.results->take(arguments, results.data(), static_cast<int>(results.size()));
  }
  Tensors infer(const Arguments& arguments) const override {
    const std::vector<at::Tensor> results = program_.infer(*arguments.list);
    return {results.begin(), results.end()};
  }
  std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                          Report& /*report*/) const override {
    std::string text;
    attributes.get(kOperatorAttribute, text);
    return std::make_unique<OperatorInstance>(this, std::move(text), std::vector<c10::IValue>());
  }
  void measure_workspaces(const Arguments& /*arguments*/, int64_t* /*elements*/,
                          detail::ElementLayout* /*layouts*/) const override {}
  void visit_attributes(detail::AttributeVisitor& /*visitor*/) const override {}

 private:
  static detail::KernelDescriptor make_info() {
    static constexpr ParameterInfo kInputs = {ParameterKind::kTensorList, ScalarInputType::kNone,
                                              /*optional=*/false};
    detail::KernelDescriptor info{};
    info.operator_name = "AtenProgram";
    info.error_mode = ErrorMode::kThrow;
    info.bindings = &kInputs;
    info.inputs = 1;
    info.list_begin = 0;
    info.has_instance = true;
    info.has_meta = true;
    info.returns_results = true;
    return info;
  }

  Program program_;
};

/// The programs of the process, by their keys. Never destroyed: hosts end in any order.
class Programs {
 public:
  static Programs& get() {
    static auto* const programs = new Programs;
    return *programs;
  }

  void add(const std::string& key, const std::string& text) {
    auto program = std::make_unique<const ProgramKernel>(text);
    const std::lock_guard<std::mutex> lock(mutex_);
    programs_.emplace(key, std::move(program));  // what is there stays: its text is the same
  }

  const KernelBase* find(const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = programs_.find(key);
    return found == programs_.end() ? nullptr : found->second.get();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const ProgramKernel>> programs_;
};

}  // namespace

const KernelBase* find_program(const TextAttributes& attributes) {
  std::string key;
  if (attributes.name() != kProgramName || !attributes.get("key", key)) {
    return nullptr;
  }
  const KernelBase* kernel = Programs::get().find(key);
  if (kernel == nullptr) {
    raise(Status::kAttribute, {"AtenProgram: expected the key of a program that is loaded, got '",
                               key, "'; make the module in this process, as module() does"});
  }
  return kernel;
}

}  // namespace aten_bridge::operators

/// Makes the program of a text known by its key, which no other text has. Returns "", or what is
/// wrong with the text, and sets the status.
extern "C" ATEN_BRIDGE_PUBLIC const char* aten_bridge_program_add(const char* key, const char* text,
                                                                  int* status) {
  try {
    aten_bridge::detail::check_pytorch("AtenProgram");
    aten_bridge::operators::Programs::get().add(key, text);
    *status = 0;
    return "";
  } catch (...) {
    aten_bridge::Failure failure = aten_bridge::detail::record_failure("AtenProgram", nullptr, 0);
    *status = static_cast<int>(failure.status);
    return aten_bridge::detail::keep_answer(std::move(failure.text));
  }
}

#pragma GCC visibility pop
