// ATen's operators for the fake CUDA runtime: each of the GPU's is the CPU's, launched
// as a host function on PyTorch's current stream. What leads up to it, and memory, streams,
// captures and autograd, are PyTorch's own. Not covered: operators that the CPU does not have, that
// take no tensor, that refuse zeros (a trial over zeros says what comes out), or whose results have
// shapes that depend on values, such as nonzero.
#include <ATen/DeviceGuard.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace {

using c10::DispatchKey;
using c10::IValue;
using torch::jit::Stack;
using Work = std::function<void()>;
using ToTensor = std::function<at::Tensor(const at::Tensor&)>;

/// `value` with `convert` of each tensor on `device` in it, and devices of CUDA as the CPU.
IValue with_tensors(const IValue& value, at::DeviceType device, const ToTensor& convert) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return tensor.defined() && tensor.device().type() == device ? convert(tensor) : tensor;
  }
  if (value.isList()) {
    auto list = value.toList().copy();
    for (std::size_t i = 0; i < list.size(); ++i) {
      list.set(i, with_tensors(list.get(i), device, convert));
    }
    return list;
  }
  return value.isDevice() && value.toDevice().is_cuda() ? IValue(at::Device(at::kCPU)) : value;
}

std::vector<at::Tensor> tensors_of(const IValue& value, at::DeviceType device) {
  std::vector<at::Tensor> tensors;
  with_tensors(value, device, [&](const at::Tensor& tensor) {
    tensors.push_back(tensor);
    return tensor;
  });
  return tensors;
}

/// `copy` with the operations on its values that PyTorch has put off.
at::Tensor with_pending(at::Tensor copy, const at::Tensor& tensor) {
  copy._set_conj(tensor.is_conj());
  copy._set_neg(tensor.is_neg());
  return copy;
}

at::Tensor zeros_on_the_cpu(const at::Tensor& tensor) {
  return with_pending(
      at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU))
          .zero_(),
      tensor);
}

/// A view of the same memory, which the fake has on the CPU. Does not keep it.
at::Tensor view_on_the_cpu(const at::Tensor& tensor) {
  return with_pending(at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                                    tensor.options().device(at::kCPU)),
                      tensor);
}

/// Launches work, which is kept where a captured graph may launch it again.
void launch(Work work) {
  static auto* mutex = new std::mutex;
  static auto* works = new std::deque<Work>;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  C10_CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
  if (status == cudaStreamCaptureStatusNone) {
    C10_CUDA_CHECK(cudaLaunchHostFunc(
        stream,
        [](void* function) {
          const std::unique_ptr<Work> once(static_cast<Work*>(function));
          (*once)();
        },
        new Work(std::move(work))));
    return;
  }
  const std::lock_guard<std::mutex> lock(*mutex);
  works->push_back(std::move(work));
  C10_CUDA_CHECK(cudaLaunchHostFunc(
      stream, [](void* function) { (*static_cast<Work*>(function))(); }, &works->back()));
}

/// The kernel for CUDA of every operator. A trial over zeros gives the shapes of the results, and
/// throws where the operator refuses its arguments.
void run_on_the_cpu(const c10::OperatorHandle& op, Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto& schema = op.schema();
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
  Stack arguments(first, stack->end());
  stack->erase(first, stack->end());

  Stack trial;
  at::Device device(at::kCPU);
  for (const IValue& argument : arguments) {
    trial.push_back(with_tensors(argument, at::kCUDA, zeros_on_the_cpu));
    for (const at::Tensor& tensor : tensors_of(argument, at::kCUDA)) {
      device = device.is_cpu() ? tensor.device() : device;
    }
  }
  const at::DeviceGuard guard(device);
  const Stack trial_arguments = trial;
  op.callBoxed(trial);

  // What the operator writes to gets its shape.
  std::vector<IValue> written;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) {
      continue;
    }
    written.push_back(arguments[i]);
    const auto tensors = tensors_of(arguments[i], at::kCUDA);
    const auto shaped = tensors_of(trial_arguments[i], at::kCPU);
    for (std::size_t j = 0; j < tensors.size(); ++j) {
      if (tensors[j].sizes() != shaped[j].sizes()) {
        tensors[j].resize_(shaped[j].sizes());
      }
    }
  }

  Stack results;  // views of the new tensors
  std::size_t used = 0;
  for (std::size_t i = 0; i < trial.size(); ++i) {
    if (schema.returns()[i].alias_info() != nullptr) {
      stack->push_back(written[used++]);
      results.emplace_back();
      continue;
    }
    stack->push_back(with_tensors(trial[i], at::kCPU, [&](const at::Tensor& shaped) {
      return at::empty_strided(shaped.sizes(), shaped.strides(), shaped.options().device(device));
    }));
    results.push_back(with_tensors(stack->back(), at::kCUDA, view_on_the_cpu));
  }
  for (IValue& argument : arguments) {
    argument = with_tensors(argument, at::kCUDA, view_on_the_cpu);
  }
  launch([op, arguments, results] {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    Stack values = arguments;
    op.callBoxed(values);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto to = tensors_of(results[i], at::kCPU);
      const auto from = tensors_of(values[i], at::kCPU);
      for (std::size_t j = 0; j < to.size(); ++j) {
        to[j].copy_(from[j]);
      }
    }
  });
}

/// copy_, which is PyTorch's own where CUDA copies and no kernel does.
void copy(const c10::OperatorHandle& op, Stack* stack) {
  const at::Tensor to = torch::jit::peek(stack, 0, 3).toTensor();
  const at::Tensor from = torch::jit::peek(stack, 1, 3).toTensor();
  const bool are_contiguous = to.is_contiguous() && from.is_contiguous() &&
                              to.scalar_type() == from.scalar_type() &&
                              to.is_conj() == from.is_conj() && to.is_neg() == from.is_neg();
  if (to.is_cuda() && from.is_cuda() && !are_contiguous) {
    run_on_the_cpu(op, stack);
    return;
  }
  at::Tensor result = to;
  at::native::copy_(result, from, torch::jit::pop(*stack).toBool());
  torch::jit::drop(stack, 2);
  stack->push_back(result);
}

/// Whether the operator computes, and needs no values to say what comes out: no views, no item().
bool is_replaced(const c10::OperatorHandle& op) {
  if (!op.hasSchema() || op.hasTag(at::Tag::inplace_view) ||
      op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape)) {
    return false;
  }
  const auto& name = op.operator_name().name;
  if (name == "aten::convolution" || name == "aten::convolution_backward") {
    return true;  // each of the two devices has operators of its own after them
  }
  bool takes_tensors = false;
  for (const auto& argument : op.schema().arguments()) {
    takes_tensors |= argument.type()->str().find("Tensor") != std::string::npos;
  }
  for (const auto& result : op.schema().returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) {
      return false;
    }
  }
  return takes_tensors && op.hasKernelForDispatchKey(DispatchKey::CPU) &&
         op.hasKernelForDispatchKey(DispatchKey::CUDA);
}

void register_for_cuda(const c10::OperatorName& name, c10::KernelFunction kernel) {
  static auto* registrations = new std::vector<c10::RegistrationHandleRAII>;
  registrations->push_back(c10::Dispatcher::singleton().registerImpl(
      name, DispatchKey::CUDA, std::move(kernel), std::nullopt, nullptr, "fake"));
}

/// PyTorch warns of kernels that take the places of others.
struct Quiet final : c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

/// When the library is loaded, which is after PyTorch.
const bool registered = [] {
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (op && is_replaced(*op)) {
      register_for_cuda(name, c10::KernelFunction::makeFromBoxedFunction<&run_on_the_cpu>());
    }
  }
  register_for_cuda({"aten::copy_", ""}, c10::KernelFunction::makeFromBoxedFunction<&copy>());
  return true;
}();

}  // namespace
