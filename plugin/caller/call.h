// One call: memory for its operands, and the C function that computes its results.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_CALL_H_
#define ATEN_BRIDGE_CALLER_CALL_H_

#include "operands.h"
#include "queues.h"
#include "signature.h"
#include "step.h"

#include <include/backend/common/device_address_utils.h>
#include <include/pynative/utils/pyboost/custom/tensor.h>
#include <include/pynative/utils/pyboost/functions/auto_grad_guard.h>
#include <include/utils/tensor_utils.h>
#include <utils/ms_exception.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace aten_bridge::caller {

using KernelFunction = int (*)(int, void**, int*, int64_t**, const char**, void*, void*);
using InitFunction = int (*)(int*, int64_t**, const char**, mindspore::AotExtra*);
using StridesFunction = void (*)(const int64_t* const*, int);

inline constexpr std::size_t kAlignment = 64;

inline std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Target {
  KernelFunction function = nullptr;
  InitFunction init = nullptr;
  StridesFunction set_strides = nullptr;  // null: its inputs are row-major
  std::string path;
  std::string name;
  std::string full_name;
};

/// Throws what ops.Custom says (MindSpore 2.10) if a function of the library has failed.
inline void check_status(const Target& target, int status) {
  if (status != 0) {
    MS_LOG(EXCEPTION) << "Return value from CPU AOT kernel(" << target.path << ")'s function("
                      << target.name << ") is " << status
                      << ". Any return value not equal to 0 will be treated as user defined error "
                         "code and we will terminate execution. If termination is not your "
                         "purpose, please set return value to 0.";
  }
}

inline const mindspore::device::DeviceContext* cpu() {
  static const auto* context =
      mindspore::device::DeviceContextManager::GetInstance().GetOrCreateDeviceContext(
          {mindspore::device::DeviceType::kCPU, 0});
  return context;
}

/// How the inputs of a call lie in memory, for a kernel that takes them so.
class Strides {
 public:
  Strides(StridesFunction set, std::size_t count) : set_(set) {
    if (set_ != nullptr) {
      kept_.reserve(count);  // data() of each stays valid
      strides_.resize(count, nullptr);
    }
  }

  void add(std::size_t input, const mindspore::tensor::Tensor& tensor) {
    if (set_ != nullptr && !tensor.is_contiguous()) {
      strides_[input] = kept_.emplace_back(tensor.stride()).data();
    }
  }

  /// Tells this thread's next call of the library.
  void tell() const {
    if (set_ != nullptr) {
      set_(strides_.data(), static_cast<int>(strides_.size()));
    }
  }

 private:
  StridesFunction set_;
  std::vector<std::vector<int64_t>> kept_;
  std::vector<const int64_t*> strides_;
};

/// One call.
class Call {
 public:
  Call(std::shared_ptr<const Target> target, std::shared_ptr<Signature> signature,
       std::vector<int64_t> numbers, std::shared_ptr<Kept> kept)
      : target_(std::move(target)),
        signature_(std::move(signature)),
        numbers_(std::move(numbers)),
        kept_(std::move(kept)) {}

  /// Makes outputs, whose memory is there once launch() has run.
  std::vector<TensorPtr> prepare(const std::vector<TensorPtr>& inputs) {
    const mindspore::kernel::pyboost::RequireGradGuard unrecorded(false);  // a copy is no operator
    inputs_.reserve(inputs.size());
    for (const TensorPtr& input : inputs) {
      const bool needs_no_copy = target_->set_strides != nullptr || input->is_contiguous();
      inputs_.push_back(needs_no_copy ? input : ms::Tensor(input).contiguous().tensor());
      DeviceAddressUtils::CreateInputTensorAddress(cpu(), 0, 0, inputs_.back());
    }
    const std::size_t count = signature_->output_types.size();
    const std::size_t first = signature_->sizes.size() - count;
    outputs_.reserve(count);
    for (std::size_t i = signature_->written.size(); i < count; ++i) {
      outputs_.push_back(make_tensor(signature_->output_types[i], signature_->sizes[first + i]));
    }
    DeviceAddressUtils::CreateOutputTensorAddress(cpu(), 0, outputs_);
    return outputs_;
  }

  /// Tensors that have their memory.
  static std::vector<TensorPtr> allocate(const std::vector<TypeId>& types,
                                         const std::vector<ShapeVector>& shapes) {
    std::vector<TensorPtr> tensors;
    for (std::size_t i = 0; i < types.size(); ++i) {
      tensors.push_back(make_tensor(types[i], shapes[i]));
    }
    DeviceAddressUtils::CreateOutputTensorAddress(cpu(), 0, tensors);
    DeviceAddressUtils::MallocForOutputs(cpu(), tensors);
    return tensors;
  }

  static void* data(const mindspore::tensor::Tensor& tensor) {
    return static_cast<std::byte*>(tensor.device_address()->GetMutablePtr()) +
           static_cast<std::size_t>(tensor.DataItemSize()) * tensor.storage_offset();
  }

  void launch() {
    DeviceAddressUtils::MallocForOutputs(cpu(), outputs_);
    Signature& signature = *signature_;
    std::vector<void*> params;
    params.reserve(signature.sizes.size() + signature.workspaces.size());
    auto tensor = inputs_.begin();
    auto number = numbers_.begin();
    Strides strides(target_->set_strides, signature.kinds.size());
    for (const Kind kind : signature.kinds) {
      if (kind == kTensor) {
        strides.add(params.size(), **tensor);
        params.push_back(data(**tensor++));
      } else {
        params.push_back(kind == kNone ? nullptr : static_cast<void*>(&*number++));
      }
    }
    for (const std::size_t input : signature.written) {
      params.push_back(data(*inputs_[input]));
    }
    for (const TensorPtr& output : outputs_) {
      params.push_back(data(*output));
    }
    const std::vector<TensorPtr> memory = add_workspaces(params);
    std::vector<int> ndims(signature.ndims);  // what the kernel may write over
    run(params, ndims, strides);
  }

 private:
  using DeviceAddressUtils = mindspore::runtime::DeviceAddressUtils;

  static TensorPtr make_tensor(TypeId type, const ShapeVector& shape) {
    return ms::Tensor(type, shape).tensor();
  }

  /// Returns what has the memory.
  std::vector<TensorPtr> add_workspaces(std::vector<void*>& params) const {
    if (signature_->workspaces.empty()) {
      return {};
    }
    std::size_t bytes = kAlignment;
    for (const std::size_t workspace : signature_->workspaces) {
      bytes += aligned(std::max<std::size_t>(workspace, 1));
    }
    std::vector<TensorPtr> memory{
        make_tensor(mindspore::kNumberTypeUInt8, {static_cast<int64_t>(bytes)})};
    DeviceAddressUtils::CreateOutputTensorAddress(cpu(), 0, memory);
    DeviceAddressUtils::MallocForOutputs(cpu(), memory);
    auto address = aligned(reinterpret_cast<std::uintptr_t>(data(*memory.front())));
    for (const std::size_t workspace : signature_->workspaces) {
      params.push_back(reinterpret_cast<void*>(address));
      address += aligned(std::max<std::size_t>(workspace, 1));
    }
    return memory;
  }

  void run(std::vector<void*>& params, std::vector<int>& ndims, const Strides& strides) {
    Signature& signature = *signature_;
    int status = 0;
    const auto begin = std::chrono::steady_clock::now();
    try {
      const Unlocked unlocked;
      const Kept::Scope scope(kept_.get());
      strides.tell();
      status = target_->function(static_cast<int>(params.size()), params.data(), ndims.data(),
                                 signature.shapes.data(), signature.dtypes.data(),
                                 /*stream=*/nullptr, &signature.extra);
    } catch (const std::exception& error) {
      // The texts of ops.Custom (MindSpore 2.10).
      MS_LOG(EXCEPTION) << "For 'Custom' on CPU, operator failed when executing user defined file "
                        << target_->path << "! Error message is " << error.what();
    }
    check_status(*target_, status);
    signature.is_short = std::chrono::steady_clock::now() - begin < kShort;
  }

  static constexpr std::chrono::microseconds kShort{50};
  std::shared_ptr<const Target> target_;
  std::shared_ptr<Signature> signature_;
  std::vector<int64_t> numbers_;
  std::shared_ptr<Kept> kept_;
  std::vector<TensorPtr> inputs_;
  std::vector<TensorPtr> outputs_;
};

/// Runs a call. Where MindSpore has queues, in the thread of its own that runs its kernels for the
/// CPU, in their order, or here, if that has nothing to do and the kernel is short; else, `blocks`,
/// at once: there it relies on the interpreter's lock, which only the kernel itself leaves. A
/// program of a step always runs at once: it is most of what there is to do, and other threads
/// would only be woken for it.
inline std::vector<TensorPtr> run(const std::shared_ptr<const Target>& target,
                                  const std::shared_ptr<Signature>& signature,
                                  const std::vector<TensorPtr>& inputs,
                                  const std::vector<int64_t>& numbers, bool blocks,
                                  const std::shared_ptr<Kept>& kept = nullptr) {
  blocks = blocks || signature->is_of_step;
  const auto& queue = mindspore::runtime::Pipeline::Get().backend_stage();
  const auto call = std::make_shared<Call>(target, signature, numbers, kept);
  const std::vector<TensorPtr> outputs = call->prepare(inputs);  // may queue copies of inputs
  if (blocks) {
    wait_for_queued();
  }
  if (blocks || (signature->is_short && queue->Empty())) {
    // What should have made the inputs may have failed.
    mindspore::MsException::Instance().CheckException();
    call->launch();
    return outputs;
  }
  static std::mutex mutex;
  push(queue, mutex,
       std::make_shared<Task>(mindspore::runtime::kBackendTask, [call]() { call->launch(); }));
  return outputs;
}

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_CALL_H_
