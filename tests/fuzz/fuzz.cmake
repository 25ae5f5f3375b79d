# The reader against hostile traces: limits of their cost, and a fuzz target.
add_executable(bombs ${CMAKE_CURRENT_LIST_DIR}/bombs.c)
target_compile_definitions(bombs PRIVATE _GNU_SOURCE=)
target_link_libraries(bombs PRIVATE gpumem_report)
add_test(NAME unit.bombs COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/bombs.py
         $<TARGET_FILE:gpumem> $<TARGET_FILE:bombs>)

# The fuzz target without a fuzzer: a few hundred changes of each trace of the corpus in every run of
# the tests. GPUMEM_FUZZ builds it for libFuzzer (clang) instead.
option(GPUMEM_FUZZ "build the fuzz targets for libFuzzer" OFF)
add_executable(fuzz_reader ${CMAKE_CURRENT_LIST_DIR}/fuzz_reader.c)
target_compile_definitions(fuzz_reader PRIVATE _GNU_SOURCE=)
target_include_directories(fuzz_reader PRIVATE ${GPUMEM_TEST_SUPPORT})
target_link_libraries(fuzz_reader PRIVATE gpumem_report)
if(GPUMEM_FUZZ)
  target_compile_definitions(fuzz_reader PRIVATE GM_FUZZ_LIBFUZZER)
  target_compile_options(fuzz_reader PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_reader PRIVATE -fsanitize=fuzzer)
else()
  file(GLOB corpus CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../corpus/*.trace
       ${CMAKE_CURRENT_LIST_DIR}/../corpus/*.pickle)
  add_test(NAME unit.fuzz_reader COMMAND fuzz_reader -n 300 ${corpus})
endif()
