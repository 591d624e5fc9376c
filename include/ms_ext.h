// The interface of MindSpore's tutorial on calling ATen operators, on top of aten_bridge.h: source
// written for the tutorial builds unchanged and gains the bridge's checks of every operand.
//
// New kernels are better off with ATEN_BRIDGE_EXPORT (aten_bridge.h). It also checks what the
// kernel did to its outputs, sets the thread's state aside and reports every kind of exception; a
// function that is the host's C function itself, as in the tutorial, has nobody to do that for it.
// On CUDA nobody makes the host's stream the current one either: such a function has to wait for it
// before its work, as the tutorial's does, and for its own work before it returns.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef MS_EXT_H_
#define MS_EXT_H_

#include <aten_bridge.h>
#include <torch/extension.h>

#include <cstring>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden)

namespace aten_bridge {
namespace detail {

/// Does `body`, which throws for the operator called `name`, and leaves the text of a failure at
/// aten_bridge_last_error(). Always throws a std::runtime_error: there is no code to return.
template <class Body>
auto reporting(const char* name, const Body& body) {
  try {
    check_pytorch(name);
    return body();
  } catch (...) {
    throw std::runtime_error(record_failure(name, nullptr, 0).text);
  }
}

/// A library for CUDA may have functions for the CPU too, which say so in each call.
template <class Device>
void check_ms_ext_device(const char* name, c10::Device device) {
  constexpr bool kIsCpu = Device::kType == at::kCPU;
  if (device.type() != Device::kType && device.type() != at::kCPU) {
    throw Error(Status::kDevice, std::string(name) + ": expected device " +
                                     (kIsCpu ? "cpu" : "cuda or cpu") + ", got " + device.str() +
                                     "; this library was built for " +
                                     (kIsCpu ? "the CPU" : "CUDA"));
  }
}

/// Views of the slots at `indices`; of all where it is null.
template <class Device>
std::vector<at::Tensor> ms_ext_tensors(CallFrame frame, const std::vector<int>* indices,
                                       c10::Device device) {
  check_ms_ext_device<Device>(frame.operator_name(), device);
  if constexpr (Device::kType != at::kCPU) {
    if (device.is_cpu()) {
      return ms_ext_tensors<CpuDevice>(frame, indices, device);
    }
  }
  Device current(frame.operator_name(), frame.stream());
  locate_operands(frame, current, indices);
  enter(frame, current);
  return indices == nullptr ? tensors(frame) : tensors(frame, *indices);
}

/// Copies dense elements to the host's buffer, and waits until they are there.
template <class Device>
void ms_ext_copy(void* output, const at::Tensor& dense) {
  if (dense.is_cpu()) {
    if (!Device::is_of_host(output)) {
      throw Error(Status::kDevice,
                  "output_memcpy: expected memory of the CPU, as the tensor's, got memory of a "
                  "CUDA device; copy a tensor of that device");
    }
    std::memmove(output, dense.const_data_ptr(), dense.nbytes());
  } else if constexpr (Device::kType != at::kCPU) {
    const at::Tensor buffer =
        make_tensor(output, dense.device(), dense.nbytes(),
                    /*allocator=*/nullptr, dense.scalar_type(), dense.sizes());
    buffer.copy_(dense);
    Device::wait(dense.device());
  }
}

}  // namespace detail
}  // namespace aten_bridge

/// Views of a call's inputs and outputs, in the host's order: tensors over the host's memory,
/// contiguous, undefined where the host passed None. Each call makes new ones, which may be kept
/// as long as the host keeps the memory. ATen refuses to resize them beyond it, and only warns when
/// an _out function leaves one smaller than the host's buffer: the rest of that is then not
/// written.
///
/// Throws a std::runtime_error that names every slot that is wrong. `nparam` is taken for the
/// number of inputs and outputs: in a call with workspaces name the slots, as below.
template <class Device = ATEN_BRIDGE_DEVICE>
std::vector<at::Tensor> get_torch_tensors(int nparam, void** params, int* ndims, int64_t** shapes,
                                          const char** dtypes, c10::Device device) {
  return aten_bridge::detail::reporting("get_torch_tensors", [&] {
    return aten_bridge::detail::ms_ext_tensors<Device>(
        {"get_torch_tensors", nparam, params, ndims, shapes, dtypes, /*stream=*/nullptr,
         /*extra=*/nullptr},
        /*indices=*/nullptr, device);
  });
}

/// The same for the slots at `indices`, in that order; the others are not looked at.
template <class Device = ATEN_BRIDGE_DEVICE>
std::vector<at::Tensor> get_torch_tensors(int nparam, void** params, int* ndims, int64_t** shapes,
                                          const char** dtypes, const std::vector<int>& indices,
                                          c10::Device device) {
  return aten_bridge::detail::reporting("get_torch_tensors", [&] {
    return aten_bridge::detail::ms_ext_tensors<Device>(
        {"get_torch_tensors", nparam, params, ndims, shapes, dtypes, /*stream=*/nullptr,
         /*extra=*/nullptr},
        &indices, device);
  });
}

/// Copies the elements of `tensor`, in row-major order, to the host's buffer at `output`, which
/// must have room for them: its size is not known here. Strides, pending conjugation and negation
/// are resolved first; no dtype is converted. On CUDA the copy is done when it returns. Throws a
/// std::runtime_error for a tensor that is not dense, or not on the buffer's device.
template <class Device = ATEN_BRIDGE_DEVICE>
void output_memcpy(void* output, const at::Tensor& tensor) {
  aten_bridge::detail::reporting("output_memcpy", [&] {
    using aten_bridge::Error;
    using aten_bridge::Status;
    if (!tensor.defined() || tensor.layout() != at::kStrided) {
      throw Error(Status::kOutput, "output_memcpy: expected a dense tensor, got " +
                                       (tensor.defined() ? "layout " + c10::str(tensor.layout())
                                                         : std::string("an undefined one")));
    }
    aten_bridge::detail::check_ms_ext_device<Device>("output_memcpy", tensor.device());
    if (tensor.numel() == 0) {
      return;
    }
    if (output == nullptr) {
      throw Error(Status::kNullPointer,
                  "output_memcpy: expected a pointer to " +
                      aten_bridge::detail::count_text(tensor.numel(), "element") + ", got null");
    }
    const at::Tensor dense = tensor.detach().resolve_conj().resolve_neg().contiguous();
    aten_bridge::detail::ms_ext_copy<Device>(output, dense);
  });
}

#pragma GCC visibility pop

// The tutorial's C functions are not marked for export. From here on all C functions are seen, also
// under -fvisibility=hidden, to the end of the source file that includes this. So include it
// outside any visibility region of your own.
#pragma GCC visibility push(default)

#endif  // MS_EXT_H_
