// Exceptions of a kernel's body: what they say, and which are about data that is not there.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_TENSORS_EXCEPTIONS_H_
#define ATEN_BRIDGE_TENSORS_EXCEPTIONS_H_

#include <aten_bridge/core/errors.h>
#include <aten_bridge/tensors/pytorch_texts.h>
#include <aten_bridge/tensors/torch.h>
#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <typeinfo>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// The name of the type of the exception that is being handled.
[[gnu::cold]] inline std::string exception_type_text() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) {
    return "unknown";
  }
  int status = 0;
  char* demangled = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string text = status == 0 ? demangled : type->name();
  std::free(demangled);  // NOLINT: __cxa_demangle allocates with malloc
  return text;
}

/// What an exception says. PyTorch's C++ backtrace is of use for debugging PyTorch, whose
/// own variable asks for it; where PyTorch is imported, meta functions of some operators are in
/// Python, and throw with a traceback.
[[gnu::cold]] inline std::string exception_text(const std::exception& error,
                                                bool may_have_backtrace = false) {
  if (const auto* pytorch_error = dynamic_cast<const c10::Error*>(&error)) {
    const char* show = std::getenv("TORCH_SHOW_CPP_STACKTRACES");
    const bool backtrace = may_have_backtrace && show != nullptr && std::strcmp(show, "1") == 0;
    return backtrace ? pytorch_error->what() : pytorch_error->what_without_backtrace();
  }
  const std::string text = error.what() == nullptr ? "" : error.what();
  return without_traceback(text);
}

/// Passes on the error of a state's constructor, which cannot see the data of inputs.
[[noreturn, gnu::cold]] inline void rethrow_state_error(const char* operator_name,
                                                        const std::exception& error) {
  if (!is_about_data(exception_text(error))) {
    throw;
  }
  raise(Status::kAten,
        {operator_name,
         ": expected a state that is made from the shapes and dtypes of the inputs, got a "
         "constructor that touches a tensor's data; read it in operator()"});
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_TENSORS_EXCEPTIONS_H_
