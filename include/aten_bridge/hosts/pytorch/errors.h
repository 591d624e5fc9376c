// Errors: the bridge's texts, raised as PyTorch raises its own.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_HOSTS_PYTORCH_ERRORS_H_
#define ATEN_BRIDGE_HOSTS_PYTORCH_ERRORS_H_

#include <aten_bridge/call/failure.h>
#include <aten_bridge/interface/kernel_base.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <initializer_list>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

inline constexpr HostMessages kPyTorchMessages = {
    "the operator", "give the kernel a meta function that tells the shape",
    "give the kernel a meta function that tells the dtype", "the arguments of the call"};

/// Passes an exception of a call on as PyTorch raises it, with the bridge's text.
[[noreturn, gnu::cold, gnu::noinline]] inline void raise_in_pytorch(const Arguments& arguments) {
  const Failure failure =
      record_failure(arguments.kernel->operator_name, arguments.operands, arguments.bound);
  const c10::SourceLocation here = {__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)};
  try {
    throw;
  } catch (const c10::IndexError&) {
    throw c10::IndexError(here, failure.text);
  } catch (const c10::ValueError&) {
    throw c10::ValueError(here, failure.text);
  } catch (const c10::TypeError&) {
    throw c10::TypeError(here, failure.text);
  } catch (const c10::NotImplementedError&) {
    throw c10::NotImplementedError(here, failure.text);
  } catch (const c10::OutOfMemoryError&) {
    throw c10::OutOfMemoryError(here, failure.text);
  } catch (const c10::LinAlgError&) {
    throw c10::LinAlgError(here, failure.text);
  } catch (...) {
    throw c10::Error(here, failure.text);
  }
}

/// Raises the parts in PyTorch, one after the other, as TORCH_CHECK does.
template <class Exception = c10::Error>
[[noreturn, gnu::cold, gnu::noinline]] inline void raise_in_pytorch(
    std::initializer_list<Part> parts) {
  throw Exception({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)},
                  for_people(as_utf8(join(parts))));
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_HOSTS_PYTORCH_ERRORS_H_
