# The targets of the preset `full`: what takes long, or needs an environment of its own.
# `cmake --build build/full --target help` lists them, CONTRIBUTING.md says what they do.

# aten_bridge_add_part(<name> [REQUIREMENTS <file> PACKAGES <package>...]): configures and builds a
# part of the project in a folder of its own, since it needs a Python environment of its own (with
# REQUIREMENTS) or downloads, which should cost only those builds that ask for it.
function(aten_bridge_add_part name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "REQUIREMENTS" "PACKAGES;TARGETS")
  set(options -DATEN_BRIDGE_MAKE_ENVIRONMENT=OFF -DPython3_EXECUTABLE=${Python3_EXECUTABLE})
  if(arg_REQUIREMENTS)
    list(JOIN arg_PACKAGES "\\;" packages)
    set(options -DATEN_BRIDGE_MAKE_ENVIRONMENT=ON -DATEN_BRIDGE_ENVIRONMENT=environment_${name}
      -DATEN_BRIDGE_REQUIREMENTS=${arg_REQUIREMENTS} "-DATEN_BRIDGE_NEEDED_PACKAGES=${packages}")
  endif()
  set(folder ${PROJECT_BINARY_DIR}/${name})
  add_custom_target(configure_${name}
    COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR} -B ${folder} -G ${CMAKE_GENERATOR}
      -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
      "-DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS}" -DATEN_BRIDGE_PART=${name} ${options}
    USES_TERMINAL VERBATIM)
  foreach(target IN LISTS name arg_TARGETS)
    add_custom_target(${target}
      COMMAND ${CMAKE_COMMAND} --build ${folder} --target ${target} --parallel 4
      USES_TERMINAL VERBATIM)
    add_dependencies(${target} configure_${name})
  endforeach()
endfunction()

aten_bridge_add_part(bench TARGETS performance_page)
aten_bridge_add_part(jax REQUIREMENTS tests/jax/requirements.txt PACKAGES jax jaxlib numpy)
aten_bridge_add_part(site REQUIREMENTS tools/site/requirements.txt)
aten_bridge_add_part(programs REQUIREMENTS tests/third_party_models/requirements.txt
  PACKAGES diffusers mindone torchvision transformers TARGETS extensions module_proof)

add_subdirectory(tests/aarch64)
# Runs the suites in Python once more, with other words in every text of the bridge.
set(words ${PROJECT_BINARY_DIR}/other_words)
add_custom_target(other_words
  COMMAND ${CMAKE_COMMAND} --preset test -B ${words} -G ${CMAKE_GENERATOR}
    -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DATEN_BRIDGE_OTHER_WORDS=ON
    -DATEN_BRIDGE_MAKE_ENVIRONMENT=OFF -DPython3_EXECUTABLE=${Python3_EXECUTABLE}
  COMMAND ${CMAKE_COMMAND} --build ${words} --parallel 4
  COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${words} --label-regex ^test$ --exclude-regex ^build$
    --output-on-failure --parallel 2
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} USES_TERMINAL VERBATIM)

add_subdirectory(tests/matrix)
add_subdirectory(tests/operators)
add_subdirectory(tests/packages)
