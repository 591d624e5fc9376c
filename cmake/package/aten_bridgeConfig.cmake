# find_package(aten_bridge): the header, the simulated host, and aten_bridge_add_kernel.
#
# Works where it lies: in what `cmake --install` or pip has installed, and in the repository.

# The headers: beside share/cmake/aten_bridge, or beside cmake/package.
find_path(_aten_bridge_include aten_bridge.h NO_CACHE NO_DEFAULT_PATH
  NO_CMAKE_FIND_ROOT_PATH REQUIRED
  PATHS ${CMAKE_CURRENT_LIST_DIR}/../../../include ${CMAKE_CURRENT_LIST_DIR}/../../include)

# Python's libtorch is looked for here, in the consumer's environment, not where this was installed.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
set(Libtorch_MODULE_PATH ${CMAKE_MODULE_PATH})
list(PREPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
find_package(Libtorch QUIET)
set(CMAKE_MODULE_PATH ${Libtorch_MODULE_PATH})
# With PYTORCH_VERSIONS kernels need none here; others are refused when they are added, and CMake
# refuses other targets without naming the reason.
if(NOT Libtorch_FOUND)
  message(STATUS "aten_bridge: kernels need PYTORCH_VERSIONS, and other targets cannot link "
    "aten_bridge::aten_bridge, since there is ${_libtorch_message}")
endif()

if(NOT TARGET aten_bridge::aten_bridge)
  add_library(aten_bridge::aten_bridge INTERFACE IMPORTED)
  target_include_directories(aten_bridge::aten_bridge INTERFACE ${_aten_bridge_include})
  target_link_libraries(aten_bridge::aten_bridge INTERFACE Libtorch::cpu)
  add_library(aten_bridge::testing INTERFACE IMPORTED)
  target_include_directories(aten_bridge::testing INTERFACE ${_aten_bridge_include})
  target_compile_features(aten_bridge::testing INTERFACE cxx_std_17)
  target_link_libraries(aten_bridge::testing INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
endif()

include(${CMAKE_CURRENT_LIST_DIR}/AtenBridgeAddKernel.cmake)
