# api.table against the CUDA headers, the checked-in page and the built library.
set(_coverage ${CMAKE_CURRENT_LIST_DIR})
set(_table ${GPUMEM_PRELOAD_DIR}/hooks/api.table)
set(_check ${Python3_EXECUTABLE} ${_coverage}/coverage.py)
get_target_property(_made gpumem_preload BINARY_DIR)

add_executable(table_prototypes ${_coverage}/prototypes.c)
add_dependencies(table_prototypes gpumem_preload)
target_include_directories(table_prototypes PRIVATE ${_made})
target_include_directories(table_prototypes SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
foreach(side headers own)
  add_executable(table_layout_${side} ${_coverage}/layout.c)
  target_include_directories(table_layout_${side} PRIVATE ${GPUMEM_PRELOAD_DIR})
endforeach()
target_include_directories(table_layout_headers SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_compile_definitions(table_layout_headers PRIVATE GM_CUDA_HEADERS)

add_test(NAME table.headers COMMAND ${_check} headers ${_table} ${GPUMEM_CUDA_INCLUDE})
add_test(NAME table.older_headers COMMAND ${Python3_EXECUTABLE} ${_coverage}/older_headers.py ${PROJECT_SOURCE_DIR}
         ${CMAKE_BINARY_DIR}/older-cuda-headers $<TARGET_FILE:table_layout_own>)
add_test(NAME table.judge COMMAND ${Python3_EXECUTABLE} ${_coverage}/judge.py ${_coverage}/coverage.py)
set_tests_properties(table.older_headers PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(table.headers table.older_headers PROPERTIES ENVIRONMENT
  "CC=${CMAKE_C_COMPILER};GENERATED=${_made};CUDA_INCLUDE=${GPUMEM_CUDA_INCLUDE}")
add_test(NAME table.page COMMAND ${_check} stale ${GPUMEM_PRELOAD_DIR}/hooks/generate.py ${_table}
         ${PROJECT_SOURCE_DIR}/docs/coverage.md)
add_test(NAME table.exports COMMAND ${_check} exports ${_made}/gm_exports.map $<TARGET_FILE:gpumem_preload>)
add_test(NAME table.layout COMMAND ${_check} layout $<TARGET_FILE:table_layout_headers>
         $<TARGET_FILE:table_layout_own>)
add_test(NAME table.needs_libc_only COMMAND sh -c
         "test \"$(readelf -d $<TARGET_FILE:gpumem_preload> | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p')\" = libc.so.6")
# Its threads and hooks outlive a dlclose of the library that the second door opened.
add_test(NAME table.is_never_unloaded COMMAND sh -c "readelf -d $<TARGET_FILE:gpumem_preload> | grep -q NODELETE")
add_test(NAME table.errors COMMAND ${Python3_EXECUTABLE} ${_coverage}/cuda_errors.py
         ${PROJECT_SOURCE_DIR}/report/output/cuda_error.c ${GPUMEM_CUDA_INCLUDE})
