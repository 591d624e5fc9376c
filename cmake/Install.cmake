# The places do not depend on GNUInstallDirs: the package and the module find the headers from where
# they lie.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include)
# Made while it is installed, which may be without a build.
if(TARGET aten_bridge_single_header)
  install(CODE "execute_process(COMMAND \"${python}\"
    \"${PROJECT_SOURCE_DIR}/tools/single_header.py\" \"${PROJECT_SOURCE_DIR}/include\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/include/single/aten_bridge.h\"
    COMMAND_ERROR_IS_FATAL ANY)")
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cmake/package/
  DESTINATION share/cmake/aten_bridge)
# For PYTHONPATH; `pip install .` does it for one environment.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/aten_bridge
  DESTINATION share/aten_bridge/python FILES_MATCHING PATTERN *.py PATTERN py.typed)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/plugin/caller/
  DESTINATION share/aten_bridge/python/aten_bridge/caller FILES_MATCHING PATTERN *.cpp PATTERN *.h)
