# aten_bridge_precompile_kernels(<target> <header>): reads a header once for all sources of a target
# of aten_bridge_add_kernel(), or of its libraries for ATEN_BRIDGE_PYTORCH_VERSIONS. Reading the
# headers is most of the work: plugin/mint takes 82 s of a processor with it, 127 s without.
function(aten_bridge_precompile_kernels target header)
  set(targets ${target})
  if(ATEN_BRIDGE_PYTORCH_VERSIONS)
    list(TRANSFORM ATEN_BRIDGE_PYTORCH_VERSIONS PREPEND ${target}.torch OUTPUT_VARIABLE targets)
  endif()
  foreach(each IN LISTS targets)
    target_precompile_headers(${each} PRIVATE ${header})
  endforeach()
endfunction()
