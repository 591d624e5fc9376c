# aten_bridge_other_environment(<variable> <name> <requirements.txt> [<package> ...]): the interpreter of
# a Python environment beside the one in use, for versions that do not live with its own; "" where it
# cannot be made, with the reason printed. Made once, in build/<name>, for all presets that name it; the
# environment in use is taken where it has PyTorch, MindSpore and these packages in the versions of
# requirements.txt.
function(aten_bridge_other_environment variable name requirements)
  aten_bridge_find_python(python)
  set(result_file ${CMAKE_CURRENT_BINARY_DIR}/${name}.txt)
  execute_process(
    COMMAND ${python} ${PROJECT_SOURCE_DIR}/cmake/python_environment.py
      ${PROJECT_SOURCE_DIR}/build/${name} ${requirements} ${result_file} ${ARGN}
    RESULT_VARIABLE failed)
  set(interpreter "")
  if(NOT failed)
    file(READ ${result_file} interpreter)
  endif()
  set(${variable} ${interpreter} PARENT_SCOPE)
endfunction()
