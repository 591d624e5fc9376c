# Warns of a kernel library that shows nothing to its host: cmake -DNM=<nm> -DLIBRARY=<file> -P this
execute_process(COMMAND ${NM} --dynamic --defined-only ${LIBRARY}
  OUTPUT_VARIABLE symbols RESULT_VARIABLE failed ERROR_QUIET)
string(REGEX MATCH "[0-9a-f]+ T [^\n]+" function "${symbols}")
if(NOT failed AND NOT function)
  get_filename_component(name ${LIBRARY} NAME)
  message(WARNING "${name} exports no function, so that no host finds a kernel in it. Export one with "
    "ATEN_BRIDGE_EXPORT, or mark a C function of your own with ATEN_BRIDGE_PUBLIC.")
endif()
