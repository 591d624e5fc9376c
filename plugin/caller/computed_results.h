// Results whose sizes are known once they are computed.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_COMPUTED_RESULTS_H_
#define ATEN_BRIDGE_CALLER_COMPUTED_RESULTS_H_

#include "call.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace aten_bridge::caller {

/// A library's functions for results that it has computed before there is memory for them.
struct ResultsOfLibrary {
  void (*set_results)(void**) = nullptr;
  void (*copy_results)(const void*, void* const*) = nullptr;
  void (*free_results)(void*) = nullptr;
  std::vector<TypeId> types;  // by the library's numbers of dtypes, which begin with one
};

/// The kernel that computes them, and tells a row for each: dtype, rank and sizes.
struct SizesCall {
  std::shared_ptr<const ResultsOfLibrary> library;
  std::shared_ptr<const Target> target;
  std::shared_ptr<Signature> signature;
};

/// The results of one call.
class ComputedResults {
 public:
  /// Computes them in this thread.
  ComputedResults(const SizesCall& sizes_call, const Inputs& inputs)
      : ComputedResults(*sizes_call.library) {
    Call call(sizes_call.target, sizes_call.signature, inputs.numbers, nullptr);
    const TensorPtr table = call.prepare(inputs.tensors).front();
    wait_for_queued();  // for copies of inputs, too
    try {
      library_.set_results(&values_);
      call.launch();
      library_.set_results(nullptr);
    } catch (...) {
      library_.set_results(nullptr);
      throw;
    }
    const auto* row = static_cast<const int64_t*>(Call::data(*table));
    for (int64_t i = 0; i < table->shape()[0]; ++i, row += table->shape()[1]) {
      types_.push_back(library_.types.at(static_cast<std::size_t>(row[0] - 1)));
      shapes_.emplace_back(row + 2, row + 2 + row[1]);
    }
  }
  ComputedResults(const ComputedResults&) = delete;
  ComputedResults& operator=(const ComputedResults&) = delete;
  ~ComputedResults() {
    if (values_ != nullptr) {
      library_.free_results(values_);
    }
  }

  const std::vector<TypeId>& types() const { return types_; }
  const std::vector<ShapeVector>& shapes() const { return shapes_; }

  std::vector<TensorPtr> copy() const {
    std::vector<TensorPtr> outputs = Call::allocate(types_, shapes_);
    std::vector<void*> memory;
    for (const TensorPtr& output : outputs) {
      memory.push_back(Call::data(*output));
    }
    const Unlocked unlocked;
    library_.copy_results(values_, memory.data());
    return outputs;
  }

 private:
  explicit ComputedResults(const ResultsOfLibrary& library) : library_(library) {}

  const ResultsOfLibrary& library_;
  void* values_ = nullptr;
  std::vector<TypeId> types_;
  std::vector<ShapeVector> shapes_;
};

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_COMPUTED_RESULTS_H_
