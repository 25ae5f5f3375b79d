# The offline half: replay rules, the reader and damage, text helpers, the commands.
function(gpumem_report_test name)
  add_executable(test_${name} ${CMAKE_CURRENT_LIST_DIR}/test_${name}.c)
  target_compile_definitions(test_${name} PRIVATE _GNU_SOURCE=)
  target_link_libraries(test_${name} PRIVATE gpumem_report ${GPUMEM_CMOCKA})
  add_test(NAME unit.${name} COMMAND test_${name})
endfunction()

gpumem_report_test(replay)
gpumem_report_test(reader)
gpumem_report_test(page_stack)
gpumem_report_test(libraries)
gpumem_report_test(phases)
gpumem_report_test(growth)
gpumem_report_test(lifetimes)
gpumem_report_test(cuda_error)
gpumem_report_test(findings)
gpumem_report_test(pools)

add_test(NAME unit.report_commands
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/report_commands.py
                 $<TARGET_FILE:gpumem> ${PROJECT_SOURCE_DIR})
add_executable(judge_traces ${CMAKE_CURRENT_LIST_DIR}/judge_traces.c)
target_compile_definitions(judge_traces PRIVATE _GNU_SOURCE=)
target_include_directories(judge_traces PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(judge_traces PRIVATE gpumem_report)
add_test(NAME unit.report_judge
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/report_judge.py $<TARGET_FILE:gpumem>
                 $<TARGET_FILE:judge_traces> ${PROJECT_SOURCE_DIR})
add_test(NAME unit.report_run
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/report_run.py $<TARGET_FILE:gpumem>
                 ${PROJECT_BINARY_DIR}/tests/training_loop ${PROJECT_BINARY_DIR}/sim)

add_executable(bombs ${PROJECT_SOURCE_DIR}/tests/fuzz/bombs.c)
target_compile_definitions(bombs PRIVATE _GNU_SOURCE=)
target_link_libraries(bombs PRIVATE gpumem_report)
add_test(NAME unit.bombs COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/fuzz/bombs.py
         $<TARGET_FILE:gpumem> $<TARGET_FILE:bombs>)

# The fuzz target without a fuzzer: a few hundred changes of each trace of the corpus in every run of
# the tests. GPUMEM_FUZZ builds it for libFuzzer (clang) instead.
option(GPUMEM_FUZZ "build the fuzz targets for libFuzzer" OFF)
add_executable(fuzz_reader ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_reader.c)
target_compile_definitions(fuzz_reader PRIVATE _GNU_SOURCE=)
target_include_directories(fuzz_reader PRIVATE ${PROJECT_SOURCE_DIR}/tests/unit)
target_link_libraries(fuzz_reader PRIVATE gpumem_report)
if(GPUMEM_FUZZ)
  target_compile_definitions(fuzz_reader PRIVATE GM_FUZZ_LIBFUZZER)
  target_compile_options(fuzz_reader PRIVATE -fsanitize=fuzzer)
  target_link_options(fuzz_reader PRIVATE -fsanitize=fuzzer)
else()
  file(GLOB corpus CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/corpus/*.trace)
  add_test(NAME unit.fuzz_reader COMMAND fuzz_reader -n 300 ${corpus})
endif()
