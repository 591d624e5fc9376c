// Programs as kernels of the hosts': each by its key.
//
// SPDX-License-Identifier: Apache-2.0

#include "program_kernel.h"

#include "overload.h"
#include "program.h"

#include <aten_bridge/call/result_form.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge::operators {

namespace {

using detail::ParameterInfo;
using detail::ParameterKind;
using detail::raise;
using detail::ResultForm;
using detail::ScalarInputType;

/// What the forward program of a step keeps for the backward one.
struct Kept {
  std::vector<at::Tensor> values;
};

/// Where this thread's calls find it; null where nobody asks for it.
thread_local void** place_of_kept = nullptr;

/// Whether the next backward program is the last one that reads it.
thread_local bool takes_kept = false;

[[noreturn]] void raise_part(const std::string& text) {
  raise(Status::kAttribute, {"AtenProgram: expected a part of the program, got '", text, "'"});
}

/// Which part of a step a program is.
struct Part {
  enum class Kind : std::uint8_t { kWhole, kForward, kBackward };

  Kind kind = Kind::kWhole;
  // In a forward program: how many results the host has. In a backward one: how many of the
  // program's inputs from the host come before the kept values.
  std::size_t count = 0;
  std::size_t kept = 0;              // how many values a backward program finds
  std::vector<std::size_t> outputs;  // which a forward program keeps, or a backward one computes

  explicit Part(const std::string& text) {
    std::istringstream words(text);
    std::string word;
    if (!(words >> word)) {
      return;
    }
    kind = word == "forward" ? Kind::kForward : Kind::kBackward;
    bool is_right = kind == Kind::kForward || word == "backward";
    is_right = is_right && words >> count && (kind == Kind::kForward || words >> kept);
    for (std::size_t output = 0; words >> output;) {
      outputs.push_back(output);
    }
    if (!is_right || !words.eof()) {
      raise_part(text);
    }
  }

  std::vector<std::size_t> wanted() const {
    return kind == Kind::kBackward ? outputs : std::vector<std::size_t>();
  }
};

/// Runs a program.
class ProgramKernel final : public KernelBase {
 public:
  ProgramKernel(const std::string& text, const std::string& part)
      : KernelBase(make_info()), part_(part), program_(text, part_.wanted()) {
    info.outputs = program_.result_count();
    if (part_.kind == Part::Kind::kWhole) {
      return;
    }
    const bool is_forward = part_.kind == Part::Kind::kForward;
    const auto results = static_cast<std::size_t>(program_.result_count());
    const bool has_all = std::all_of(part_.outputs.begin(), part_.outputs.end(),
                                     [&](std::size_t output) { return output < results; });
    const bool fits = is_forward ? part_.count <= results && has_all
                                 : part_.count <= program_.input_count() &&
                                       part_.kept <= program_.input_count() - part_.count;
    if (!fits) {
      raise_part(part);
    }
    info.outputs = is_forward ? static_cast<int>(part_.count) : info.outputs;
  }

  bool is_current() const { return program_.is_current(); }

  void invoke(const Arguments& arguments) const override {
    const bool is_backward = part_.kind == Part::Kind::kBackward;
    const bool has_memory = arguments.results->has_memory;
    std::vector<at::Tensor> places;
    // What a forward program keeps is not in the host's memory.
    for (int i = 0; i < info.outputs && has_memory && part_.kind != Part::Kind::kForward; ++i) {
      places.push_back(arguments.output(i).view);
    }
    std::vector<at::Tensor> results =
        is_backward ? program_(with_kept(*arguments.list), places)
                    : program_({arguments.list->begin(), arguments.list->end()}, places);
    if (part_.kind == Part::Kind::kForward) {
      keep(*arguments.list, results);
    }
    results = has_memory ? std::move(results) : defined(results);
    arguments.results->take(arguments, results.data(), info.outputs);
  }
  Tensors infer(const Arguments& arguments) const override {
    const std::vector<at::Tensor> results = program_.infer(*arguments.list);
    return {results.begin(), results.begin() + info.outputs};
  }
  std::unique_ptr<Instance> make_instance(const Attributes& attributes,
                                          Report& /*report*/) const override {
    std::string text;
    attributes.get(kOperatorAttribute, text);
    return std::make_unique<OperatorInstance>(std::move(text), std::vector<c10::IValue>());
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

  /// Keeps what the backward program needs, if somebody asks for it. Nothing of it is in the host's
  /// memory, which the host may write over.
  void keep(at::TensorList inputs, const std::vector<at::Tensor>& results) const {
    if (place_of_kept == nullptr) {
      return;
    }
    std::set<const c10::StorageImpl*> host_memory;
    for (const at::Tensor& input : inputs) {
      host_memory.insert(input.storage().unsafeGetStorageImpl());
    }
    auto kept = std::make_unique<Kept>();
    kept->values.reserve(part_.outputs.size());
    for (const std::size_t i : part_.outputs) {
      const at::Tensor& value = results.at(i);
      const bool is_of_host = host_memory.count(value.storage().unsafeGetStorageImpl()) != 0;
      kept->values.push_back(is_of_host ? value.clone() : value);
    }
    *place_of_kept = kept.release();
  }

  /// The program's inputs: the host's, with the kept values among them.
  std::vector<at::Tensor> with_kept(at::TensorList inputs) const {
    Kept kept;
    if (place_of_kept != nullptr && *place_of_kept != nullptr) {
      auto& values = static_cast<Kept*>(*place_of_kept)->values;
      kept.values = takes_kept ? std::exchange(values, {}) : values;
    }
    if (kept.values.size() != part_.kept || inputs.size() < part_.count) {
      raise(Status::kCount, {"AtenProgram: expected ", part_.kept,
                             " values that the forward program keeps, got ", kept.values.size()});
    }
    const auto* const middle = inputs.begin() + part_.count;
    std::vector<at::Tensor> all(inputs.begin(), middle);
    all.insert(all.end(), std::make_move_iterator(kept.values.begin()),
               std::make_move_iterator(kept.values.end()));
    all.insert(all.end(), middle, inputs.end());
    return all;
  }

  Part part_;
  Program program_;
};

/// A program, and what a host calls of it.
struct LoadedProgram {
  LoadedProgram(const std::string& text, const std::string& part)
      : LoadedProgram(text, part, detail::result_form(part)) {}
  LoadedProgram(const std::string& text, const std::string& part, ResultForm form)
      : program(text, form == ResultForm::kValues ? part : ""),
        kernel(form == ResultForm::kValues ? program : detail::make_form(program, form)) {}

  ProgramKernel program;
  const KernelBase& kernel;
};

/// The programs of the process, by their keys. Never destroyed: hosts end in any order.
class Programs {
 public:
  static Programs& get() {
    static auto* const programs = new Programs;
    return *programs;
  }

  void add(const std::string& key, const std::string& text, const std::string& part) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = programs_.find(key);
      if (found != programs_.end() && found->second->program.is_current()) {
        return;  // its text is the same
      }
    }
    auto program = std::make_unique<const LoadedProgram>(text, part);
    const std::lock_guard<std::mutex> lock(mutex_);
    programs_[key].swap(program);
    if (program != nullptr) {
      replaced_.push_back(std::move(program));
      end_dispatcher_epoch();
    }
  }

  const KernelBase* find(const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = programs_.find(key);
    return found == programs_.end() ? nullptr : &found->second->kernel;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const LoadedProgram>> programs_;
  std::vector<std::unique_ptr<const LoadedProgram>> replaced_;  // hosts may have them
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

/// Makes the program of a text known by its key, which no other text and part have. Returns "", or
/// what is wrong with the text, and sets the status.
///
/// `part` is "" for a program alone, and "sizes" or "padded" for one in another form
/// (call/result_form.h). The forward program of a step, "forward N OUTPUTS...", has N
/// results, and keeps these of its outputs where aten_bridge_program_set_kept() says. The backward
/// one, "backward N K OUTPUTS...", finds them there: its inputs are N of the host's, K kept values,
/// and the host's others, and only these of its outputs are computed, or all where none is named.
extern "C" ATEN_BRIDGE_PUBLIC const char* aten_bridge_program_add(const char* key, const char* text,
                                                                  const char* part, int* status) {
  try {
    aten_bridge::detail::check_pytorch("AtenProgram");
    aten_bridge::operators::Programs::get().add(key, text, part);
    *status = 0;
    return "";
  } catch (...) {
    aten_bridge::Failure failure = aten_bridge::detail::record_failure("AtenProgram", nullptr, 0);
    *status = static_cast<int>(failure.status);
    return aten_bridge::detail::keep_answer(std::move(failure.text));
  }
}

/// Where this thread's next programs keep or find what a step's forward program keeps; null:
/// nowhere. A backward program that is the last to read it, `takes`, frees each value once nothing
/// of the program reads it any more.
extern "C" ATEN_BRIDGE_PUBLIC void aten_bridge_program_set_kept(void** place, int takes) {
  aten_bridge::operators::place_of_kept = place;
  aten_bridge::operators::takes_kept = takes != 0;
}

/// Frees what a forward program has kept.
extern "C" ATEN_BRIDGE_PUBLIC void aten_bridge_program_free_kept(void* kept) {
  delete static_cast<aten_bridge::operators::Kept*>(kept);
}

#pragma GCC visibility pop
