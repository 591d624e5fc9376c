// The interpreter's lock, and references to objects of Python's that any thread may drop.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef ATEN_BRIDGE_CALLER_INTERPRETER_H_
#define ATEN_BRIDGE_CALLER_INTERPRETER_H_

#include <pybind11/pybind11.h>

#include <utility>

namespace aten_bridge::caller {

namespace py = pybind11;

/// A reference to an object of Python's, which any thread may drop.
class Reference {
 public:
  Reference() = default;
  explicit Reference(py::object object) : object_(object.release().ptr()) {}
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  Reference(Reference&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Reference& operator=(Reference&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Reference() {
    if (object_ != nullptr && Py_IsInitialized() != 0) {
      const py::gil_scoped_acquire acquired;
      Py_DECREF(object_);
    }
  }

  bool is_none() const { return object_ == nullptr || object_ == Py_None; }
  py::object get() const { return py::reinterpret_borrow<py::object>(object_); }

 private:
  PyObject* object_ = nullptr;
};

/// Leaves the interpreter's lock, where this thread has it.
class Unlocked {
 public:
  Unlocked() {
    // MindSpore's own threads are none of Python's.
    if (PyGILState_GetThisThreadState() != nullptr && PyGILState_Check() == 1) {
      thread_ = PyEval_SaveThread();
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    if (thread_ != nullptr) {
      PyEval_RestoreThread(thread_);
    }
  }

 private:
  PyThreadState* thread_ = nullptr;
};

}  // namespace aten_bridge::caller

#endif  // ATEN_BRIDGE_CALLER_INTERPRETER_H_
