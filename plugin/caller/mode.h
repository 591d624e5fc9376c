// Which calls are for ops.Custom: those in graphs, and where cells or the program ask for more.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_MODE_H_
#define ATEN_BRIDGE_CALLER_MODE_H_

#include <include/utils/amp.h>
#include <pybind11/pybind11.h>
#include <utils/ms_context.h>

#include <atomic>

namespace aten_bridge::caller {

/// The names of MindSpore's module of jit_context().
inline PyObject* jit_context_names = nullptr;

/// Whether a graph is recorded by what is called, which has ops.Custom.
inline bool is_recording() {
  PyObject* context = PyDict_GetItemString(jit_context_names, "_jit_context");
  return context != nullptr && context != Py_None;
}

inline bool is_pynative() {
  return mindspore::MsContext::GetInstance()->get_param<int>(mindspore::MS_CTX_EXECUTION_MODE) ==
         mindspore::kPynativeMode;
}

/// How many cells are running whose calls are for ops.Custom; Python counts them.
inline std::atomic<int> custom_cells{0};

/// Whether the call is one for ops.Custom.
inline bool is_for_custom() {
  const auto strategy = mindspore::amp::GetCurrentAmpStrategy();
  return custom_cells > 0 || (strategy != nullptr && strategy->IsEnable()) || is_recording() ||
         !is_pynative();
}

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_MODE_H_
