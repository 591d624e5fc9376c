# aten_bridge_find_python(<variable>): the Python in use. The one that was named or found already,
# else the first on PATH, which is that of the activated environment. Not find_package(Python3),
# which remembers what it found: activating another environment would change nothing.
function(aten_bridge_find_python variable)
  unset(_aten_bridge_python)
  if(Python3_EXECUTABLE)
    set(_aten_bridge_python ${Python3_EXECUTABLE})
  elseif(Python_EXECUTABLE)
    set(_aten_bridge_python ${Python_EXECUTABLE})
  else()
    find_program(_aten_bridge_python NAMES python3 python NO_CACHE)
  endif()
  set(${variable} ${_aten_bridge_python} PARENT_SCOPE)
endfunction()
