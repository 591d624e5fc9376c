include(FetchContent)

# fetch_library(<name> <url> <Debian package>): downloads, once, and adds a library that is not
# installed, or says what to install. FETCHCONTENT_SOURCE_DIR_<NAME> names a copy at hand.
function(fetch_library name url package)
  set(archive ${CMAKE_BINARY_DIR}/${name}.tar.gz)
  string(TOUPPER FETCHCONTENT_SOURCE_DIR_${name} at_hand)
  if(NOT EXISTS ${archive} AND NOT DEFINED ${at_hand})
    message(STATUS "${name} is not installed; fetching it")
    file(DOWNLOAD ${url} ${archive}.part STATUS status TLS_VERIFY ON INACTIVITY_TIMEOUT 30)
    list(GET status 0 failed)
    if(failed)
      list(GET status 1 reason)
      message(FATAL_ERROR "${name} is not installed and could not be fetched (${reason}). Install "
        "it (Debian, Ubuntu: apt install ${package}), or connect to the internet.")
    endif()
    file(RENAME ${archive}.part ${archive})
  endif()
  FetchContent_Declare(${name} URL ${archive})
  FetchContent_MakeAvailable(${name})
endfunction()
