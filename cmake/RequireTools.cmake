# Before project(), which would name its own variables and not what to install.
if(NOT DEFINED CMAKE_CXX_COMPILER AND NOT DEFINED ENV{CXX})
  find_program(aten_bridge_compiler NAMES c++ g++ clang++ NO_CACHE)
  if(NOT aten_bridge_compiler)
    message(FATAL_ERROR "There is no C++ compiler. Install one (Debian, Ubuntu: apt install "
      "build-essential; Fedora: dnf install gcc-c++ make), or name it with the variable CXX.")
  endif()
endif()
if(CMAKE_GENERATOR STREQUAL "Unix Makefiles" AND NOT DEFINED CMAKE_MAKE_PROGRAM)
  find_program(aten_bridge_make NAMES make gmake NO_CACHE)
  if(NOT aten_bridge_make)
    message(FATAL_ERROR "There is no make. Install it (Debian, Ubuntu: apt install "
      "build-essential), or install Ninja and set the variable CMAKE_GENERATOR to Ninja.")
  endif()
endif()
