# Sets Python3_EXECUTABLE to an interpreter that has PyTorch and MindSpore: that of the environment
# in use if it has them, else that of a private environment in build/, made once for all presets that
# name the same ATEN_BRIDGE_ENVIRONMENT. ATEN_BRIDGE_NEEDED_PACKAGES are further ones that it has to
# have, in the versions of ATEN_BRIDGE_REQUIREMENTS. Where those name no PyTorch, it has to have just
# what they name.

# Found again each time, unless named: another environment may have been activated since.
if(NOT DEFINED CACHE{Python3_EXECUTABLE})
  unset(_Python3_EXECUTABLE CACHE)
endif()
# A range, so that an unsuitable default python3 does not hide a suitable one beside it.
find_package(Python3 3.11...<3.13 QUIET COMPONENTS Interpreter)
if(NOT Python3_Interpreter_FOUND)
  find_package(Python3 QUIET COMPONENTS Interpreter)  # the script below says what is wrong with it
endif()
if(NOT Python3_Interpreter_FOUND)
  message(FATAL_ERROR "There is no Python 3. Install it (Debian, Ubuntu: apt install python3 "
    "python3-venv), or name it with -DPython3_EXECUTABLE=<path>.")
endif()

set(result_file ${CMAKE_BINARY_DIR}/python.txt)
execute_process(
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/python_environment.py
    ${PROJECT_SOURCE_DIR}/build/${ATEN_BRIDGE_ENVIRONMENT}
    ${PROJECT_SOURCE_DIR}/${ATEN_BRIDGE_REQUIREMENTS} ${result_file} ${ATEN_BRIDGE_NEEDED_PACKAGES}
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "There is no Python environment to work in; the reason stands above.")
endif()
file(READ ${result_file} Python3_EXECUTABLE)
