// Calls kernels in MindSpore's PyNative mode instead of ops.Custom, by the same C functions.
//
// MindSpore's extension interface (ops.CustomOpBuilder), which it uses, takes a tenth of the time.
//
// One module serves all kernels, and knows nothing of PyTorch. It is compiled for one version of
// MindSpore, with that one's headers and C++ ABI, and for one of Python.
//
// SPDX-License-Identifier: Apache-2.0

#include "backward.h"
#include "caller.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace aten_bridge::caller {

namespace {

PyObject* call(PyObject* capsule, PyObject* const* arguments, Py_ssize_t count) {
  try {
    auto* caller = static_cast<std::shared_ptr<Caller>*>(PyCapsule_GetPointer(capsule, nullptr));
    return caller == nullptr ? nullptr : (*caller)->call(arguments, count);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyMethodDef call_method = {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&call)),
                           METH_FASTCALL, "Calls the kernel, or returns NotImplemented."};

}  // namespace

PYBIND11_MODULE(aten_bridge_caller, m) {
  m.attr("interface") = 3;  // _INTERFACE of mindspore/_caller.py, which refuses another one
  m.def("set_jit_context_names", [](const py::dict& names) {
    jit_context_names = py::object(names).release().ptr();  // as long as the process
  });
  m.def("set_custom_cells", [](int count) { custom_cells = count; });
  m.def("is_for_custom", is_for_custom);
  m.def("wait_for_queued", wait_for_queued);
  m.doc() = "Calls kernels in MindSpore's PyNative mode.";
  py::class_<Gradient, std::shared_ptr<Gradient>>(m, "Gradient", py::module_local())
      .def(py::init<const py::object&, py::object, bool>())
      .def("set_kernel",
           [](Gradient& self, const std::shared_ptr<Caller>& kernel, std::vector<bool> mask) {
             self.kernel = kernel;
             self.mask = std::move(mask);
           });
  py::class_<ResultsOfLibrary, std::shared_ptr<ResultsOfLibrary>>(m, "ResultsOfLibrary",
                                                                  py::module_local())
      .def(py::init([](std::uintptr_t set_results, std::uintptr_t copy_results,
                       std::uintptr_t free_results, const std::vector<std::string>& dtypes) {
        auto library = std::make_shared<ResultsOfLibrary>();
        library->set_results = reinterpret_cast<decltype(library->set_results)>(set_results);
        library->copy_results = reinterpret_cast<decltype(library->copy_results)>(copy_results);
        library->free_results = reinterpret_cast<decltype(library->free_results)>(free_results);
        for (const std::string& dtype : dtypes) {
          library->types.push_back(type_of_name(dtype));
        }
        return library;
      }));
  py::class_<Step, std::shared_ptr<Step>>(m, "Step", py::module_local())
      .def(py::init([](std::uintptr_t set_kept, std::uintptr_t free_kept) {
        auto step = std::make_shared<Step>();
        step->set_kept = reinterpret_cast<decltype(step->set_kept)>(set_kept);
        step->free_kept = reinterpret_cast<decltype(step->free_kept)>(free_kept);
        return step;
      }))
      .def_readwrite("written", &Step::written)
      .def_readwrite("gives_tuple", &Step::gives_tuple)
      .def_readwrite("inputs", &Step::inputs)
      .def_readwrite("tangents", &Step::tangents)
      .def_readwrite("gradients", &Step::gradients)
      .def_readwrite("weight_count", &Step::weight_count)
      .def_readwrite("of_weights", &Step::of_weights)
      .def_readwrite("of_all", &Step::of_all)
      .def_property("differentiate_again", py::cpp_function(),
                    [](Step& self, py::object function) {
                      self.differentiate_again = Reference(std::move(function));
                    })
      .def_readwrite("no_gradient", &Step::no_gradient);
  py::class_<Caller, std::shared_ptr<Caller>>(m, "Caller", py::module_local())
      .def(py::init<std::uintptr_t, std::uintptr_t, std::uintptr_t, std::string, std::string,
                    const py::dict&, bool>())
      .def("add", &Caller::add)
      .def("add_step", &Caller::add_step)
      .def("add_unsized", &Caller::add_unsized)
      .def("signature_count", &Caller::signature_count)
      .def("call_once",
           [](Caller& self, const py::sequence& arguments, const std::vector<std::string>& dtypes,
              const std::vector<ShapeVector>& shapes, const std::shared_ptr<Gradient>& gradient) {
             PyObject* result = self.call_once(arguments, dtypes, shapes, gradient);
             if (result == nullptr) {
               throw py::error_already_set();
             }
             return py::reinterpret_steal<py::object>(result);
           })
      .def("function", [](const std::shared_ptr<Caller>& self) {
        const py::capsule capsule(new std::shared_ptr<Caller>(self), [](void* pointer) {
          delete static_cast<std::shared_ptr<Caller>*>(pointer);
        });
        return py::reinterpret_steal<py::object>(PyCFunction_New(&call_method, capsule.ptr()));
      });
}

}  // namespace aten_bridge::caller
