# api.table against the CUDA headers, the checked-in page and the built library.
set(_coverage ${CMAKE_CURRENT_LIST_DIR})
set(_table ${GPUMEM_PRELOAD_DIR}/api.table)
set(_check ${Python3_EXECUTABLE} ${_coverage}/coverage.py)
get_target_property(_made gpumem_preload BINARY_DIR)

add_executable(coverage_prototypes ${_coverage}/prototypes.c)
add_dependencies(coverage_prototypes gpumem_preload)
target_include_directories(coverage_prototypes PRIVATE ${_made})
target_include_directories(coverage_prototypes SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
foreach(side headers own)
  add_executable(coverage_layout_${side} ${_coverage}/layout.c)
  target_include_directories(coverage_layout_${side} PRIVATE ${GPUMEM_PRELOAD_DIR})
endforeach()
target_include_directories(coverage_layout_headers SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_compile_definitions(coverage_layout_headers PRIVATE GM_CUDA_HEADERS)

add_test(NAME coverage.headers COMMAND ${_check} headers ${_table} ${GPUMEM_CUDA_INCLUDE})
add_test(NAME coverage.older_headers COMMAND ${Python3_EXECUTABLE} ${_coverage}/older_headers.py
         ${_coverage}/coverage.py ${_table} ${CMAKE_BINARY_DIR}/older-cuda-headers)
set_tests_properties(coverage.older_headers PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME coverage.page COMMAND ${_check} stale ${GPUMEM_PRELOAD_DIR}/generate.py ${_table}
         ${PROJECT_SOURCE_DIR}/docs/coverage.md)
add_test(NAME coverage.exports COMMAND ${_check} exports ${_made}/gm_exports.map $<TARGET_FILE:gpumem_preload>)
add_test(NAME coverage.layout COMMAND ${_check} layout $<TARGET_FILE:coverage_layout_headers>
         $<TARGET_FILE:coverage_layout_own>)
add_test(NAME coverage.needs_libc_only COMMAND sh -c
         "test \"$(readelf -d $<TARGET_FILE:gpumem_preload> | sed -n 's/.*NEEDED.*\\[\\(.*\\)\\]/\\1/p')\" = libc.so.6")
