include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/aten_bridge)
install(TARGETS aten_bridge aten_bridge_testing EXPORT aten_bridgeTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include)
# Made while it is installed, which may be without a build.
if(TARGET aten_bridge_single_header)
  install(CODE "execute_process(COMMAND \"${Python3_EXECUTABLE}\"
    \"${PROJECT_SOURCE_DIR}/tools/single_header.py\" \"${PROJECT_SOURCE_DIR}/include\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/include/single/aten_bridge.h\"
    COMMAND_ERROR_IS_FATAL ANY)")
endif()
# For PYTHONPATH; pip install ./python does it for one environment.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/aten_bridge
  DESTINATION ${CMAKE_INSTALL_DATADIR}/aten_bridge/python FILES_MATCHING PATTERN *.py)
install(EXPORT aten_bridgeTargets NAMESPACE aten_bridge:: DESTINATION ${package_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cmake/package/ DESTINATION ${package_dir}
  PATTERN *.in EXCLUDE)

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/package/aten_bridgeConfig.cmake.in aten_bridgeConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(aten_bridgeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/aten_bridgeConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/aten_bridgeConfigVersion.cmake
  DESTINATION ${package_dir})
