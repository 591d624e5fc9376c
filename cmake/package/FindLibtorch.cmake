# FindLibtorch: PyTorch's C++ libraries, without what find_package(Torch) asks for on top.
#
# A CPU kernel needs libc10 and libtorch_cpu and no CUDA toolkit, also where the installed PyTorch
# is a CUDA build. Measured with PyTorch 2.11.0+cu130 and CMake 3.25: find_package(Torch) wants
# nvcc, fails without TORCH_CUDA_ARCH_LIST, and links everything to libtorch_cuda.
#
# Looks at CMAKE_PREFIX_PATH, Torch_ROOT and Torch_DIR first (libtorch's folder, or
# torch.utils.cmake_prefix_path), then at the `torch` of the Python in use (Python3_EXECUTABLE, else
# the first python3 on PATH).
# Gives:
#   Libtorch::cpu           headers, libc10, libtorch_cpu, the C++ ABI and the language standard
#   Libtorch::cuda          where PyTorch has CUDA: libc10_cuda, libtorch_cuda and PyTorch's own
#                           libcudart on top. The headers of CUDA are those of a toolkit. Its
#                           property LIBTORCH_CUDA_MAJOR is the major version of CUDA.
#                           LIBTORCH_BUILD_ONLY is a property of Libtorch::cpu, the version, where the
#                           libraries can be linked and not loaded (aten_bridge.build keeps such ones).
#   Libtorch_VERSION        such as 2.11.0
#   Libtorch_CXX_STANDARD   17, or 20 where the headers need it (PyTorch 2.12 and newer)
#   Libtorch_CXX11_ABI      value of _GLIBCXX_USE_CXX11_ABI that the libraries were built with
# Libtorch_TARGETS, if set, replaces Libtorch in the names of the targets.

include(${CMAKE_CURRENT_LIST_DIR}/AtenBridgeFindPython.cmake)

# libtorch's folder, or torch.utils.cmake_prefix_path two levels below it.
set(_libtorch_roots)
string(REPLACE ":" ";" _libtorch_env_prefix_path "$ENV{CMAKE_PREFIX_PATH}")
foreach(_prefix IN LISTS Torch_ROOT Torch_DIR CMAKE_PREFIX_PATH _libtorch_env_prefix_path)
  list(APPEND _libtorch_roots ${_prefix} ${_prefix}/../.. ${_prefix}/../../.. ${_prefix}/torch)
endforeach()
foreach(_prefix IN LISTS _libtorch_roots)
  if(EXISTS ${_prefix}/include/ATen/core/Tensor.h)
    get_filename_component(Libtorch_ROOT_DIR ${_prefix} REALPATH)
    break()
  endif()
endforeach()

set(_libtorch_reason "no PyTorch on CMAKE_PREFIX_PATH")
if(NOT Libtorch_ROOT_DIR)
  aten_bridge_find_python(_libtorch_python)
  if(_libtorch_python)
    # Does not import torch, which takes seconds.
    execute_process(
      COMMAND ${_libtorch_python} -c
        "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
      OUTPUT_VARIABLE Libtorch_ROOT_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(APPEND _libtorch_reason " and none in ${_libtorch_python}")
  else()
    string(APPEND _libtorch_reason " and no Python")
  endif()
endif()

find_path(Libtorch_INCLUDE_DIR ATen/core/Tensor.h
  PATHS ${Libtorch_ROOT_DIR}/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
foreach(_library c10 torch_cpu)
  find_library(Libtorch_${_library}_LIBRARY ${_library}
    PATHS ${Libtorch_ROOT_DIR}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
endforeach()

if(Libtorch_INCLUDE_DIR AND Libtorch_c10_LIBRARY)
  # PyTorch 2.11 has the version in the first; 2.6 has only the second.
  foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT Libtorch_VERSION AND EXISTS ${Libtorch_INCLUDE_DIR}/${_header})
      set(_libtorch_version)
      foreach(_part MAJOR MINOR PATCH)
        file(STRINGS ${Libtorch_INCLUDE_DIR}/${_header} _line
          REGEX "#define TORCH_VERSION_${_part} [0-9]+")
        if(_line MATCHES "([0-9]+)$")
          list(APPEND _libtorch_version ${CMAKE_MATCH_1})
        endif()
      endforeach()
      list(JOIN _libtorch_version . Libtorch_VERSION)
    endif()
  endforeach()

  # Asked of the library itself: its constructor of c10::Error takes a std::string.
  file(STRINGS ${Libtorch_c10_LIBRARY} _libtorch_new_abi
    REGEX "_ZN3c105ErrorC[12]E.*NSt7__cxx1112basic_string" LIMIT_COUNT 1)
  if(_libtorch_new_abi)
    set(Libtorch_CXX11_ABI 1)
  else()
    set(Libtorch_CXX11_ABI 0)
  endif()

  if(Libtorch_VERSION VERSION_LESS 2.12)
    set(Libtorch_CXX_STANDARD 17)
  else()
    set(Libtorch_CXX_STANDARD 20)
  endif()
endif()

set(_libtorch_message "${_libtorch_reason}: activate an environment that has PyTorch (pip install \
torch), or point CMAKE_PREFIX_PATH at libtorch's folder")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch
  REQUIRED_VARS Libtorch_torch_cpu_LIBRARY Libtorch_c10_LIBRARY Libtorch_INCLUDE_DIR
  VERSION_VAR Libtorch_VERSION
  REASON_FAILURE_MESSAGE "${_libtorch_message}")

if(NOT Libtorch_TARGETS)
  set(Libtorch_TARGETS Libtorch)
endif()
if(Libtorch_FOUND AND NOT TARGET ${Libtorch_TARGETS}::cpu)
  foreach(_library c10 torch_cpu)
    add_library(${Libtorch_TARGETS}::${_library} UNKNOWN IMPORTED)
    set_target_properties(${Libtorch_TARGETS}::${_library} PROPERTIES
      IMPORTED_LOCATION ${Libtorch_${_library}_LIBRARY})
  endforeach()
  add_library(${Libtorch_TARGETS}::cpu INTERFACE IMPORTED)
  if(EXISTS ${Libtorch_ROOT_DIR}/build_only)
    set_property(TARGET ${Libtorch_TARGETS}::cpu PROPERTY LIBTORCH_BUILD_ONLY ${Libtorch_VERSION})
  endif()
  target_include_directories(${Libtorch_TARGETS}::cpu SYSTEM INTERFACE
    ${Libtorch_INCLUDE_DIR} ${Libtorch_INCLUDE_DIR}/torch/csrc/api/include)
  target_compile_definitions(${Libtorch_TARGETS}::cpu INTERFACE
    _GLIBCXX_USE_CXX11_ABI=${Libtorch_CXX11_ABI})
  target_compile_features(${Libtorch_TARGETS}::cpu INTERFACE cxx_std_${Libtorch_CXX_STANDARD})
  # Above 128 MiB, which ATen's headers take, g++ searches its memory for what can be freed: with a
  # larger limit a kernel compiles faster, and takes more memory (docs/performance.md).
  target_compile_options(${Libtorch_TARGETS}::cpu INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)
  target_link_libraries(${Libtorch_TARGETS}::cpu INTERFACE ${Libtorch_TARGETS}::torch_cpu ${Libtorch_TARGETS}::c10)
endif()

# CUDA: which of its versions, says the library's need of libcudart.
foreach(_library c10_cuda torch_cuda)
  find_library(Libtorch_${_library}_LIBRARY ${_library}
    PATHS ${Libtorch_ROOT_DIR}/lib NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
endforeach()
set(_libtorch_cuda_major)
if(Libtorch_FOUND AND Libtorch_c10_cuda_LIBRARY AND Libtorch_torch_cuda_LIBRARY)
  file(STRINGS ${Libtorch_c10_cuda_LIBRARY} _libtorch_cudart
    REGEX "^libcudart[^ ]*\\.so\\.[0-9]+" LIMIT_COUNT 1)
  string(REGEX MATCH "^libcudart[^ ]*\\.so\\.([0-9]+)[0-9.]*" _libtorch_cudart "${_libtorch_cudart}")
  set(_libtorch_cuda_major ${CMAKE_MATCH_1})
endif()
if(_libtorch_cuda_major AND NOT TARGET ${Libtorch_TARGETS}::cuda)
  # In the wheels of CUDA 13, in those of CUDA 12 and 11, and in libtorch's own folder.
  find_file(Libtorch_cudart_LIBRARY NAMES ${_libtorch_cudart}
    PATHS ${Libtorch_ROOT_DIR}/../nvidia/cu${_libtorch_cuda_major}/lib
      ${Libtorch_ROOT_DIR}/../nvidia/cuda_runtime/lib ${Libtorch_ROOT_DIR}/lib
    NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
  add_library(${Libtorch_TARGETS}::cuda INTERFACE IMPORTED)
  set_property(TARGET ${Libtorch_TARGETS}::cuda PROPERTY LIBTORCH_CUDA_MAJOR "${_libtorch_cuda_major}")
  # libtorch_cuda has the operators, which nobody calls by name: --as-needed would drop it.
  target_link_libraries(${Libtorch_TARGETS}::cuda INTERFACE ${Libtorch_TARGETS}::cpu ${Libtorch_c10_cuda_LIBRARY}
    "-Wl,--push-state,--no-as-needed,${Libtorch_torch_cuda_LIBRARY},--pop-state")
  if(Libtorch_cudart_LIBRARY)
    target_link_libraries(${Libtorch_TARGETS}::cuda INTERFACE ${Libtorch_cudart_LIBRARY})
  endif()
endif()
