# The hooks: made from api.table into the build folder.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(_made ${CMAKE_CURRENT_BINARY_DIR})
set(GPUMEM_EXPORT_MAP ${_made}/gm_exports.map)
set(_sources ${_made}/gm_api.c ${_made}/gm_hooks_driver.c ${_made}/gm_hooks_runtime.c)
add_custom_command(
  OUTPUT ${_sources} ${_made}/gm_api.h ${GPUMEM_EXPORT_MAP}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/generate.py ${CMAKE_CURRENT_SOURCE_DIR}/api.table
          --exports ${CMAKE_CURRENT_SOURCE_DIR}/exports.list --out ${_made}
  DEPENDS generate.py api.table exports.list
  COMMENT "Making the hooks from api.table"
  VERBATIM)
set(GPUMEM_HOOK_SOURCES ${_sources} ${GPUMEM_EXPORT_MAP} capture.c context.c effects.c effects_pool.c effects_runtime.c)
