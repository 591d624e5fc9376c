// Forms in which a host wants results whose sizes are known once they are computed.
//
// Such a host calls a kernel in another form: it asks for the sizes alone, and then calls again,
// with memory of these sizes, or copies the results that the first call has left; or it has memory
// for the largest results, and is told their sizes.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALL_RESULT_FORM_H_
#define ATEN_BRIDGE_CALL_RESULT_FORM_H_

#include <aten_bridge/interface/kernel_base.h>

#include <cstdint>
#include <string_view>

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// What a call gives its host.
enum class ResultForm : std::uint8_t { kValues, kSizes, kPadded };

/// The attribute by which a host asks for another form than the values: "sizes" or "padded".
inline constexpr const char* kFormAttribute = "aten_bridge_form";

ATEN_BRIDGE_INLINE ResultForm result_form(const Attributes& attributes);

/// The form of that name; of any other the values.
ATEN_BRIDGE_INLINE ResultForm result_form(std::string_view name);

/// A kernel whose results are computed by a call, as a kernel of another form than their values:
/// kSizes gives for each result a row of 66 int64, [dtype, rank, sizes...], and leaves the results
/// where aten_bridge_set_results() says; kPadded writes them to the start of the first outputs,
/// which are the largest that there can be and end with zeros, and the sizes of each to one of the
/// others. It is never destroyed: hosts end in any order.
ATEN_BRIDGE_INLINE const KernelBase& make_computed_kernel(const KernelBase& kernel,
                                                          ResultForm form);

/// Where this thread's next results are left; null: nowhere.
inline thread_local void** place_of_results = nullptr;

ATEN_BRIDGE_INLINE void copy_results(const void* results, void* const* outputs);
ATEN_BRIDGE_INLINE void free_results(void* results);

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
  aten_bridge::detail::copy_results(results, outputs);
}

extern "C" __attribute__((visibility("protected"))) inline void aten_bridge_free_results(
    void* results) {
  aten_bridge::detail::free_results(results);
}

#pragma GCC visibility push(hidden)

namespace aten_bridge::detail {

/// Gives a library these functions: an inline one is emitted only where something refers to it.
[[gnu::always_inline]] inline void emit_result_functions() {
  asm volatile(""
               :
               : "r"(&aten_bridge_set_results), "r"(&aten_bridge_copy_results),
                 "r"(&aten_bridge_free_results));
}

/// make_computed_kernel(), in a library that then has these functions.
inline const KernelBase& make_form(const KernelBase& kernel, ResultForm form) {
  emit_result_functions();
  return make_computed_kernel(kernel, form);
}

/// An exported kernel in a form.
template <const auto& kExported>
const KernelBase& in_form(ResultForm form) {
  // Without `.kernel`, nvcc 13.0 would take `auto` for KernelBase.
  const KernelBase& kernel = kExported.kernel;
  if (form == ResultForm::kSizes) {
    static const KernelBase& sizes = make_form(kernel, form);
    return sizes;
  }
  if (form == ResultForm::kPadded) {
    static const KernelBase& padded = make_form(kernel, form);
    return padded;
  }
  return kernel;
}

}  // namespace aten_bridge::detail

#pragma GCC visibility pop

#endif  // ATEN_BRIDGE_CALL_RESULT_FORM_H_
