include(${CMAKE_CURRENT_LIST_DIR}/AtenBridgeFindPython.cmake)

# All hosts, those besides MindSpore last. The bridge identifies a host by its position in the list
# (aten_bridge.h).
set_property(GLOBAL PROPERTY ATEN_BRIDGE_HOSTS MINDSPORE MINDSPORE_PLUGIN PYTORCH JAX)

# aten_bridge_add_kernel(<target> SOURCES <file>... [DEVICE CPU|CUDA]
#                        [HOSTS <host>... [NAMESPACE <name>]] [INSTALL_DIR <folder>] [HEADER_ONLY]
#                        [PATCH_MINDSPORE] [PYTORCH_VERSIONS <version>...])
#
# Builds the kernel library <target>.so in the current binary folder: a module that exports the
# kernels of the sources and its own table of them (nothing of a static library that it links), and
# that finds libtorch by itself. With INSTALL_DIR, `cmake --install` puts it there. Without
# a build type, and flags that say otherwise, it is compiled with -O2.
#
# DEVICE says where the kernels' operands lie; with a .cu file among the sources it is CUDA, else
# CPU. CUDA needs a PyTorch with CUDA and a CUDA toolkit of the same major version, and a .cu file
# a project(... LANGUAGES CXX CUDA); CMAKE_CUDA_ARCHITECTURES says for which GPUs.
#
# HOSTS says who can call the kernels: MINDSPORE, which is also what is meant without it, PYTORCH and
# JAX. In PyTorch a kernel is the operator torch.ops.<NAMESPACE>.<its name in snake_case> from when the
# library is opened; NAMESPACE is the target's name unless told. For JAX it has a handler of XLA's FFI,
# which aten_bridge.jax registers; needs neither JAX nor XLA. MINDSPORE_PLUGIN, alone, makes
# kernels for MindSpore's own operators (MS_OP_PLUGIN_PATH), whose names they have, not for
# ops.Custom. HOST is the same with one host.
#
# Beside a library with MINDSPORE_PLUGIN MindSpore 2.10 gives its own kernels views that they read
# as if they were contiguous. PATCH_MINDSPORE, with that host, makes the library patch the running
# MindSpore so that they get contiguous copies: docs/mint-on-cpu.md says what it does.
#
# What of the bridge does not depend on a kernel is compiled once, for all libraries of the build
# folder that have the same device and host, and is part of each, as hidden as everything else. With
# HEADER_ONLY each source has it to itself, as without this function: for one that has another
# PyTorch's headers, or definitions that change the bridge's classes.
#
# PYTORCH_VERSIONS, such as 2.9 2.11, makes a library for each, <target>.torch2.9.so, which is also the
# target <target>.torch2.9; <target> builds them all. Hosts that are given <target>.so take the one for
# the PyTorch in use. What building for a version needs that the Python in use does not have,
# `aten-bridge fetch-pytorch` downloads with pip. For CUDA all of them need the toolkit's major version.
function(aten_bridge_add_kernel target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HEADER_ONLY;PATCH_MINDSPORE" "DEVICE;HOST;NAMESPACE;INSTALL_DIR"
    "SOURCES;HOSTS;PYTORCH_VERSIONS")
  if(arg_UNPARSED_ARGUMENTS)
    list(JOIN arg_UNPARSED_ARGUMENTS " " unknown)
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): unknown arguments ${unknown}; expected "
      "SOURCES, DEVICE, HOSTS, NAMESPACE, INSTALL_DIR, HEADER_ONLY, PATCH_MINDSPORE, "
      "PYTORCH_VERSIONS.")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): SOURCES names no file.")
  endif()
  set(has_cu OFF)
  if("${arg_SOURCES}" MATCHES "\\.cu(;|$)")
    set(has_cu ON)
  endif()
  if(NOT arg_DEVICE)
    set(arg_DEVICE CPU)
    if(has_cu)
      set(arg_DEVICE CUDA)
    endif()
  endif()
  if(NOT arg_DEVICE MATCHES "^(CPU|CUDA)$")
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): DEVICE is CPU or CUDA, not "
      "${arg_DEVICE}.")
  endif()
  list(APPEND arg_HOSTS ${arg_HOST})
  if(NOT arg_HOSTS)
    set(arg_HOSTS MINDSPORE)
  endif()
  if(NOT _aten_bridge_libtorch)
    set(libtorch Libtorch)
  else()  # the caller is _aten_bridge_add_kernel_for_each
    set(libtorch ${_aten_bridge_libtorch})
  endif()
  get_property(known GLOBAL PROPERTY ATEN_BRIDGE_HOSTS)
  foreach(host IN LISTS arg_HOSTS)
    if(NOT host IN_LIST known)
      list(REMOVE_ITEM known MINDSPORE_PLUGIN)
      list(JOIN known ", " known)
      message(FATAL_ERROR "aten_bridge_add_kernel(${target}): a host is ${known} or "
        "MINDSPORE_PLUGIN, not ${host}.")
    endif()
  endforeach()
  list(LENGTH arg_HOSTS host_count)
  if(MINDSPORE_PLUGIN IN_LIST arg_HOSTS AND host_count GREATER 1)
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): MINDSPORE_PLUGIN is a library's only "
      "host: its kernels have the parameters of MindSpore's own operators.")
  endif()
  set(hosts ${arg_HOSTS})
  # What is compiled once has MindSpore's code in any case: the linker drops it where no kernel has
  # MindSpore's functions.
  list(REMOVE_ITEM arg_HOSTS MINDSPORE)
  list(REMOVE_DUPLICATES arg_HOSTS)
  list(SORT arg_HOSTS)  # one object for the same hosts
  if(arg_NAMESPACE AND NOT PYTORCH IN_LIST arg_HOSTS)
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): NAMESPACE is that of operators in "
      "PyTorch; add HOSTS PYTORCH.")
  endif()
  if(NOT arg_NAMESPACE)
    set(arg_NAMESPACE ${target})
  endif()
  if(PYTORCH IN_LIST arg_HOSTS AND NOT arg_NAMESPACE MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): torch.ops.${arg_NAMESPACE} is no name "
      "in Python; say NAMESPACE <name>, of letters, digits and underscores.")
  endif()
  if(has_cu AND arg_DEVICE STREQUAL CPU)
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): a .cu source makes kernels for CUDA, "
      "not for DEVICE CPU; leave DEVICE out, or name the file .cpp.")
  endif()
  if(NOT arg_PYTORCH_VERSIONS AND NOT TARGET ${libtorch}::cpu)
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): ${_libtorch_message}")
  endif()
  if(arg_DEVICE STREQUAL CUDA)
    if(NOT arg_PYTORCH_VERSIONS)
      _aten_bridge_check_cuda(${target})
    endif()
    if(has_cu)
      _aten_bridge_check_cuda_language(${target})
    endif()
  endif()

  if(arg_PYTORCH_VERSIONS)
    set(arguments SOURCES ${arg_SOURCES} DEVICE ${arg_DEVICE} HOSTS ${hosts})
    if(PYTORCH IN_LIST hosts)
      list(APPEND arguments NAMESPACE ${arg_NAMESPACE})
    endif()
    if(arg_INSTALL_DIR)
      list(APPEND arguments INSTALL_DIR ${arg_INSTALL_DIR})
    endif()
    foreach(option HEADER_ONLY PATCH_MINDSPORE)
      if(arg_${option})
        list(APPEND arguments ${option})
      endif()
    endforeach()
    _aten_bridge_add_kernel_for_each(${target} "${arg_PYTORCH_VERSIONS}" "${arguments}")
    return()
  endif()
  if(arg_PATCH_MINDSPORE)
    if(NOT MINDSPORE_PLUGIN IN_LIST arg_HOSTS)
      message(FATAL_ERROR "aten_bridge_add_kernel(${target}): PATCH_MINDSPORE is for a library of "
        "MindSpore's own operators; add HOST MINDSPORE_PLUGIN.")
    endif()
    list(APPEND arg_SOURCES ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/patch_mindspore.cpp)
  endif()
  add_library(${target} MODULE ${arg_SOURCES})
  _aten_bridge_compile(${target} ${arg_DEVICE} "${arg_HOSTS}")
  if(NOT hosts MATCHES MINDSPORE)
    target_compile_definitions(${target} PRIVATE ATEN_BRIDGE_WITHOUT_MINDSPORE)
  endif()
  if(PYTORCH IN_LIST arg_HOSTS)
    target_compile_definitions(${target} PRIVATE ATEN_BRIDGE_NAMESPACE="${arg_NAMESPACE}")
  endif()
  if(NOT arg_HEADER_ONLY)
    _aten_bridge_compile_once(object ${arg_DEVICE} "${arg_HOSTS}")
    target_link_libraries(${target} PRIVATE ${object})
  endif()
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX .so)
  _aten_bridge_find_libtorch_at_run_time(${target} ${arg_DEVICE} "${arg_INSTALL_DIR}")

  # Only what is marked for export is seen. The map hides what -fvisibility=hidden does not:
  # templates of the standard library, and C++ names of sources that include ms_ext.h.
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kernel.map)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
  target_link_options(${target} PRIVATE
    "SHELL:-Xlinker \"--version-script=${map}\"" LINKER:--exclude-libs,ALL)

  # Drops what nothing calls. torch/extension.h brings code that needs Python, so that without this
  # a library could be opened in a Python process only.
  target_link_options(${target} PRIVATE LINKER:--gc-sections)

  # now: a missing symbol is an error when the host opens the library, not a dead process later.
  # nodelete: the host opens and closes the library around its hooks; PyTorch and thread-local
  # objects do not survive that. as-needed: libgomp only where it is used.
  target_link_options(${target} PRIVATE
    LINKER:-z,now LINKER:-z,nodelete LINKER:--as-needed LINKER:--enable-new-dtags)

  # Code and constants share pages of the file: 4 KiB and more saved.
  target_link_options(${target} PRIVATE LINKER:-z,noseparate-code)

  # The names of what nobody sees are a quarter of the file. RelWithDebInfo keeps them.
  target_link_options(${target} PRIVATE $<$<CONFIG:Release,MinSizeRel>:LINKER:--strip-all>)

  if(hosts MATCHES "MINDSPORE|JAX")  # they look up C functions; PyTorch does not
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:${target}>
        -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/CheckExports.cmake)
  endif()

  _aten_bridge_add_python_headers(${target} ${arg_SOURCES})
  if(arg_INSTALL_DIR)
    string(REGEX REPLACE "\\.torch[0-9.]+$" "" component ${target})
    install(TARGETS ${target} LIBRARY DESTINATION ${arg_INSTALL_DIR} COMPONENT ${component})
  endif()
endfunction()

# Libraries with the same arguments for each of PYTORCH_VERSIONS.
function(_aten_bridge_add_kernel_for_each target versions arguments)
  list(REMOVE_DUPLICATES versions)
  foreach(version IN LISTS versions)
    if(NOT version MATCHES "^[1-9][0-9]*\\.[0-9]+$")
      message(FATAL_ERROR "aten_bridge_add_kernel(${target}): expected minor versions of PyTorch in "
        "PYTORCH_VERSIONS, such as 2.9 2.11, got ${version}.")
    endif()
  endforeach()
  # One of an earlier configuration without versions would be opened in their place.
  file(REMOVE ${CMAKE_CURRENT_BINARY_DIR}/${target}.so)
  list(JOIN versions ", " wanted)
  message(STATUS "aten_bridge_add_kernel(${target}): looking for PyTorch ${wanted}")
  find_path(_aten_bridge_modules aten_bridge/_command.py NO_CACHE NO_DEFAULT_PATH
    NO_CMAKE_FIND_ROOT_PATH REQUIRED
    PATHS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../.. ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../python
      ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../aten_bridge/python)
  aten_bridge_find_python(python)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env --modify PYTHONPATH=path_list_prepend:${_aten_bridge_modules}
      ${python} -m aten_bridge fetch-pytorch ${versions}
    OUTPUT_VARIABLE folders ERROR_VARIABLE printed ECHO_ERROR_VARIABLE RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(failed)
    string(REGEX REPLACE "^.*aten-bridge: " "" printed "${printed}")
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): ${printed}")
  endif()
  string(REPLACE "\n" ";" folders "${folders}")
  set(targets)
  foreach(version folder IN ZIP_LISTS versions folders)
    set(_aten_bridge_libtorch Libtorch_${version})
    _aten_bridge_find_libtorch(${folder} ${version})
    aten_bridge_add_kernel(${target}.torch${version} ${arguments})
    list(APPEND targets ${target}.torch${version})
  endforeach()
  add_custom_target(${target})
  add_dependencies(${target} ${targets})
endfunction()

# The targets ${_aten_bridge_libtorch}::cpu and others of the PyTorch in that folder.
function(_aten_bridge_find_libtorch Torch_ROOT version)
  set(Libtorch_TARGETS ${_aten_bridge_libtorch})
  foreach(name ROOT_DIR INCLUDE_DIR c10_LIBRARY torch_cpu_LIBRARY c10_cuda_LIBRARY torch_cuda_LIBRARY
      cudart_LIBRARY VERSION)
    unset(Libtorch_${name})
  endforeach()
  set(Libtorch_FIND_QUIETLY ON)
  include(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/FindLibtorch.cmake)
  if(NOT Libtorch_FOUND OR NOT Libtorch_VERSION MATCHES "^${version}\\.")
    message(FATAL_ERROR "${Torch_ROOT}: expected PyTorch ${version}, got a folder without headers or "
      "libraries; remove it, and configure again.")
  endif()
endfunction()

# Where an installed library looks for PyTorch's: where they are now, or, in a wheel, beside it in the
# environment that it will be installed in.
function(_aten_bridge_find_libtorch_at_run_time target device install_dir)
  if(SKBUILD_PLATLIB_DIR)  # scikit-build-core's folder of what will be site-packages
    cmake_path(ABSOLUTE_PATH install_dir BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} NORMALIZE)
    file(RELATIVE_PATH packages ${install_dir} ${SKBUILD_PLATLIB_DIR})
    set(folders $ORIGIN/${packages}/torch/lib)
    if(device STREQUAL CUDA)
      get_target_property(major ${libtorch}::cuda LIBTORCH_CUDA_MAJOR)
      list(APPEND folders $ORIGIN/${packages}/nvidia/cu${major}/lib
        $ORIGIN/${packages}/nvidia/cuda_runtime/lib)
    endif()
    string(REPLACE "//" "/" folders "${folders}")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${folders}")
  endif()
  get_target_property(build_only ${libtorch}::cpu LIBTORCH_BUILD_ONLY)
  if(build_only)  # who opens it has PyTorch, or loads it before (aten_bridge/_pytorch.py)
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
    return()
  endif()
  get_target_property(library ${libtorch}::torch_cpu IMPORTED_LOCATION)
  get_filename_component(libtorch_dir ${library} DIRECTORY)
  if(SKBUILD_PLATLIB_DIR)
    return()
  endif()
  # By name too: the property below leaves out folders inside the project, such as .venv.
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH_USE_LINK_PATH ON INSTALL_RPATH ${libtorch_dir})
endfunction()

# How sources are compiled: those of kernels, and the bridge's own.
function(_aten_bridge_compile target device hosts)
  if(libtorch STREQUAL Libtorch)
    target_link_libraries(${target} PRIVATE aten_bridge::aten_bridge)
  else()
    target_include_directories(${target} SYSTEM PRIVATE
      $<TARGET_PROPERTY:aten_bridge::testing,INTERFACE_INCLUDE_DIRECTORIES>)
    target_link_libraries(${target} PRIVATE ${libtorch}::cpu)
  endif()
  if(device STREQUAL CUDA)
    _aten_bridge_use_cuda(${target} ${libtorch})
  endif()
  foreach(host IN LISTS hosts)
    target_compile_definitions(${target} PRIVATE ATEN_BRIDGE_${host})
  endforeach()
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  _aten_bridge_add_host_options(${target} -ffunction-sections -fdata-sections)

  # `cmake -B build` has no build type, and a loop compiled without -O is several times slower.
  if(NOT CMAKE_CXX_FLAGS MATCHES "(^| )-O")
    target_compile_options(${target} PRIVATE $<$<STREQUAL:$<CONFIG>,>:-O2>)
  endif()

  # at::parallel_for is a template that runs serially unless its caller is compiled for OpenMP.
  # By flag and not by target: PyTorch brings a libgomp of its own, with the same soname.
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(OpenMP_CXX_FOUND)
    _aten_bridge_add_host_options(${target} ${OpenMP_CXX_FLAGS})
    target_link_options(${target} PRIVATE ${OpenMP_CXX_FLAGS})
  endif()
endfunction()

# The object with what does not depend on a kernel, for this device and hosts; its name in `variable`.
# Directories that compile in another way, or with another bridge or PyTorch, have one of their own.
function(_aten_bridge_compile_once variable device hosts)
  get_directory_property(options COMPILE_OPTIONS)
  get_directory_property(definitions COMPILE_DEFINITIONS)
  get_target_property(library ${libtorch}::torch_cpu IMPORTED_LOCATION)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  string(MD5 key "${CMAKE_CURRENT_FUNCTION_LIST_DIR};${library};${options};${definitions};\
${CMAKE_CXX_FLAGS};${CMAKE_CXX_FLAGS_${config}};${CMAKE_CXX_STANDARD}")
  string(SUBSTRING ${key} 0 8 key)
  list(JOIN hosts _ for)
  string(TOLOWER "${device}_${for}" for)
  string(REGEX REPLACE "_$" "" for ${for})
  set(object _aten_bridge_${for}_${key})
  set(${variable} ${object} PARENT_SCOPE)
  if(TARGET ${object})
    return()
  endif()
  add_library(${object} OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/aten_bridge.cpp)
  _aten_bridge_compile(${object} ${device} "${hosts}")
  # It has no loops over data: -O3 makes it larger, not faster. What a call runs says itself what is
  # to be inlined in it; elsewhere g++ would make the library a tenth larger for speed.
  target_compile_options(${object} PRIVATE $<$<CONFIG:Release>:-O2>
    "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:--param=inline-unit-growth=0;\
-fno-align-functions;-fno-align-jumps;-fno-align-loops;-fno-align-labels>")
  # By the number the header knows a source that is for another device or host.
  set(number 0)
  if(device STREQUAL CUDA)
    set(number 1)  # the place of MINDSPORE, which is left out
  endif()
  get_property(known GLOBAL PROPERTY ATEN_BRIDGE_HOSTS)
  foreach(host IN LISTS hosts)
    list(FIND known ${host} place)
    math(EXPR number "${number} | 1 << ${place}")
  endforeach()
  if(PYTORCH IN_LIST hosts)
    target_compile_definitions(${object} PRIVATE ATEN_BRIDGE_NAMESPACE="")  # it has no kernels
  endif()
  target_compile_definitions(${object} PUBLIC ATEN_BRIDGE_COMPILED=${number})
endfunction()

# Options of the C++ compiler, which nvcc calls too.
function(_aten_bridge_add_host_options target)
  foreach(option IN LISTS ARGN)
    target_compile_options(${target} PRIVATE
      $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:${option}> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${option}>)
  endforeach()
endfunction()

# Says why a kernel for CUDA cannot be built.
function(_aten_bridge_check_cuda target)
  set(kernel "aten_bridge_add_kernel(${target})")
  get_target_property(library ${libtorch}::torch_cpu IMPORTED_LOCATION)
  get_filename_component(libtorch_dir ${library} DIRECTORY)
  get_target_property(build_only ${libtorch}::cpu LIBTORCH_BUILD_ONLY)
  if(NOT TARGET ${libtorch}::cuda)
    if(build_only)
      get_filename_component(folder ${libtorch_dir} DIRECTORY)
      message(FATAL_ERROR "${kernel}: a kernel for CUDA needs a PyTorch with CUDA, and PyTorch "
        "${build_only}, as pip has downloaded it, has none. Remove ${folder}, and let pip find a "
        "wheel for CUDA (see pytorch.org).")
    endif()
    message(FATAL_ERROR "${kernel}: a kernel for CUDA needs a PyTorch with CUDA, and the one in "
      "${libtorch_dir} has none. Install another (see pytorch.org), or point CMAKE_PREFIX_PATH at "
      "it.")
  endif()
  # Set where the language is enabled, by this project or one around it.
  set(version ${CMAKE_CUDA_COMPILER_VERSION})
  find_package(CUDAToolkit QUIET)
  get_target_property(major ${libtorch}::cuda LIBTORCH_CUDA_MAJOR)
  if(NOT CUDAToolkit_FOUND)
    message(FATAL_ERROR "${kernel}: a kernel for CUDA needs the CUDA toolkit ${major}, and there is "
      "no nvcc. Install it and put nvcc on PATH, or name its folder with -DCUDAToolkit_ROOT=<path>.")
  endif()
  if(NOT version)
    set(version ${CUDAToolkit_VERSION})
  endif()
  if(NOT version MATCHES "^${major}\\.")
    if(build_only)
      message(FATAL_ERROR "${kernel}: the CUDA toolkit is ${version}, and PyTorch ${build_only}, as "
        "pip has downloaded it, was built with CUDA ${major}: a process can have one of the two. Name "
        "a toolkit ${major} with -DCMAKE_CUDA_COMPILER=<its nvcc> or with the variable CUDACXX, or "
        "leave this version out.")
    endif()
    message(FATAL_ERROR "${kernel}: the CUDA toolkit is ${version}, and the PyTorch in "
      "${libtorch_dir} was built with CUDA ${major}: a process can have one of the two. Name a "
      "toolkit ${major} with -DCMAKE_CUDA_COMPILER=<its nvcc>, or install a PyTorch for CUDA "
      "${version}.")
  endif()
endfunction()

function(_aten_bridge_check_cuda_language target)
  if(NOT CMAKE_CUDA_COMPILER_VERSION)
    message(FATAL_ERROR "aten_bridge_add_kernel(${target}): a .cu source needs the language CUDA; say "
      "so in your project(${PROJECT_NAME} LANGUAGES CXX CUDA).")
  endif()
endfunction()

# Links what PyTorch links: its own libcudart, and not nvcc's static one beside it.
function(_aten_bridge_use_cuda target libtorch)
  find_package(CUDAToolkit QUIET)
  target_link_libraries(${target} PRIVATE ${libtorch}::cuda)
  get_target_property(libraries ${libtorch}::cuda INTERFACE_LINK_LIBRARIES)
  if(NOT libraries MATCHES "libcudart")
    target_link_libraries(${target} PRIVATE CUDA::cudart)
  endif()
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(${target} PRIVATE ATEN_BRIDGE_CUDA)
  get_target_property(features ${libtorch}::cpu INTERFACE_COMPILE_FEATURES)
  string(REGEX MATCH "cxx_std_([0-9]+)" standard "${features}")
  set(standard ${CMAKE_MATCH_1})
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY None LINKER_LANGUAGE CXX)
  if(CMAKE_CUDA_COMPILER_VERSION AND NOT CMAKE_CUDA${standard}_STANDARD_COMPILE_OPTION)
    # CMake 3.25 does not know that nvcc has C++20.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++${standard}>)
  else()
    set_target_properties(${target} PROPERTIES
      CUDA_STANDARD ${standard} CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF)
  endif()
  # What PyTorch gives to nvcc: code written for its extensions counts on both.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
    $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda>)
endfunction()

# torch/extension.h includes Python.h. Nothing links to libpython: what a kernel uses of PyTorch is
# in libtorch_cpu.
function(_aten_bridge_add_python_headers target)
  aten_bridge_find_python(python)
  set(folder)
  if(python)
    execute_process(
      COMMAND ${python} -c "import sysconfig; print(sysconfig.get_path('include'))"
      OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(EXISTS "${folder}/Python.h")
    target_include_directories(${target} SYSTEM PRIVATE ${folder})
    return()
  endif()
  foreach(source IN LISTS ARGN)
    get_filename_component(path ${source} ABSOLUTE)
    if(EXISTS ${path})
      file(STRINGS ${path} includes
        REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"](ms_ext\\.h|torch/extension\\.h|torch/python\\.h)")
      if(includes)
        message(FATAL_ERROR "${source} includes torch/extension.h, which needs Python.h, and there "
          "is none in \"${folder}\". Install Python's headers (Debian, Ubuntu: apt install "
          "python3-dev), or name another interpreter with -DPython3_EXECUTABLE=<path>.")
      endif()
    endif()
  endforeach()
endfunction()
