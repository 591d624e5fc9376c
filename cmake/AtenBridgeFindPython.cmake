# aten_bridge_find_python(<variable>): the Python in use. The one that was named or found already,
# else the first on PATH, which is that of the activated environment. Not find_package(Python3),
# which remembers what it found: activating another environment would change nothing.
function(aten_bridge_find_python variable)
  if(Python3_EXECUTABLE)
    set(python ${Python3_EXECUTABLE})
  elseif(Python_EXECUTABLE)
    set(python ${Python_EXECUTABLE})
  else()
    find_program(python NAMES python3 python NO_CACHE)
  endif()
  set(${variable} ${python} PARENT_SCOPE)
endfunction()
