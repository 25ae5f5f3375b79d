# The generated hooks and their effects, with the tests' own recorder and CUDA.
get_target_property(_made gpumem_preload BINARY_DIR)
set(_sources gm_api.c gm_hooks_driver.c gm_hooks_runtime.c)
list(TRANSFORM _sources PREPEND ${_made}/)
set_source_files_properties(${_sources} PROPERTIES GENERATED TRUE)
set(_effects ${GPUMEM_PRELOAD_SOURCES})
list(FILTER _effects INCLUDE REGEX "^hooks/|^record/current|^base/(change|count|handles|process_state)")
list(TRANSFORM _effects PREPEND ${GPUMEM_PRELOAD_DIR}/)

add_library(hooks_for_tests OBJECT ${_sources} ${_effects} ${CMAKE_CURRENT_LIST_DIR}/fake.c)
add_dependencies(hooks_for_tests gpumem_preload) # the preload's build generates the sources
target_compile_definitions(hooks_for_tests PUBLIC _GNU_SOURCE=)
target_include_directories(hooks_for_tests PUBLIC ${CMAKE_CURRENT_LIST_DIR} ${GPUMEM_TEST_SUPPORT}
  ${GPUMEM_PRELOAD_DIR} ${_made})
target_link_libraries(hooks_for_tests PUBLIC gpumem_options)

foreach(_test test_hooks_lives test_hooks_runtime test_hooks_streams test_hooks_contexts test_handles)
  gpumem_unit_test(${_test} SOURCES ${CMAKE_CURRENT_LIST_DIR}/${_test}.c $<TARGET_OBJECTS:hooks_for_tests>
                   LIBRARIES hooks_for_tests)
endforeach()
