# The hooks: made from api.table into the build folder.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(_hooks ${CMAKE_CURRENT_LIST_DIR})
set(_made ${CMAKE_CURRENT_BINARY_DIR})
set(GPUMEM_EXPORT_MAP ${_made}/gm_exports.map)
set(_sources ${_made}/gm_api.c ${_made}/gm_hooks_driver.c ${_made}/gm_hooks_runtime.c)
add_custom_command(
  OUTPUT ${_sources} ${_made}/gm_api.h ${GPUMEM_EXPORT_MAP}
  COMMAND ${Python3_EXECUTABLE} ${_hooks}/generate.py ${_hooks}/api.table --exports ${_hooks}/exports.list
          --out ${_made}
  DEPENDS ${_hooks}/generate.py ${_hooks}/api.table ${_hooks}/exports.list
  COMMENT "Making the hooks from api.table"
  VERBATIM)
set(GPUMEM_HOOK_SOURCES ${_sources} ${GPUMEM_EXPORT_MAP})
set(GPUMEM_EFFECT_SOURCES) # the hooks' part that is written by hand
foreach(_file capture context devices driver_kind effects effects_graph effects_graphics effects_pool effects_runtime
        effects_vmm shareable)
  list(APPEND GPUMEM_EFFECT_SOURCES hooks/${_file}.c)
endforeach()
