# Which versions this one stands in for: those with its minor version that are not newer. The
# version stands in the header.
find_file(_aten_bridge_config aten_bridge/config.h NO_CACHE NO_DEFAULT_PATH REQUIRED
  PATHS ${CMAKE_CURRENT_LIST_DIR}/../../../include ${CMAKE_CURRENT_LIST_DIR}/../../include)
file(STRINGS ${_aten_bridge_config} PACKAGE_VERSION REGEX "#define ATEN_BRIDGE_VERSION_")
string(REGEX REPLACE "[^0-9]+([0-9]+);[^0-9]+([0-9]+);[^0-9]+([0-9]+)" "\\1.\\2.\\3"
  PACKAGE_VERSION "${PACKAGE_VERSION}")

string(REGEX MATCH "^[0-9]+\\.[0-9]+" _aten_bridge_minor ${PACKAGE_VERSION})
set(PACKAGE_VERSION_COMPATIBLE FALSE)
if(PACKAGE_FIND_VERSION VERSION_GREATER_EQUAL _aten_bridge_minor
   AND PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
