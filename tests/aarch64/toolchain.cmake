# The cross compiler of Debian and Ubuntu for Linux on AArch64: apt install g++-aarch64-linux-gnu.
# Folders with further libraries and packages for that machine: -DCMAKE_FIND_ROOT_PATH=<folder>.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

list(APPEND CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
# Those of no machine, such as aten_bridge, lie elsewhere.
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
