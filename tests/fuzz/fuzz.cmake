# The reader against hostile traces: limits of their cost, and a fuzz target.
add_executable(bombs ${CMAKE_CURRENT_LIST_DIR}/bombs.c)
target_compile_definitions(bombs PRIVATE _GNU_SOURCE=)
target_link_libraries(bombs PRIVATE gpumem_report_checked)
add_test(NAME unit.bombs COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/bombs.py
         $<TARGET_FILE:gpumem> $<TARGET_FILE:bombs>)

# The fuzz targets without a fuzzer: a few hundred changes of each seed in every run of the tests. GPUMEM_FUZZ builds them
# for libFuzzer (clang) instead.
option(GPUMEM_FUZZ "build the fuzz targets for libFuzzer" OFF)
foreach(_name reader snapshot rules baseline options)
  set(_target fuzz_${_name})
  add_executable(${_target} ${CMAKE_CURRENT_LIST_DIR}/${_target}.c)
  target_compile_definitions(${_target} PRIVATE _GNU_SOURCE=)
  target_include_directories(${_target} PRIVATE ${GPUMEM_TEST_SUPPORT})
  target_link_libraries(${_target} PRIVATE gpumem_report_checked)
  if(GPUMEM_FUZZ)
    target_compile_options(${_target} PRIVATE -fsanitize=fuzzer)
    target_link_options(${_target} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${_target} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/fuzz_main.c)
  endif()
endforeach()
if(NOT GPUMEM_FUZZ)
  file(GLOB corpus CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../corpus/*.trace
       ${CMAKE_CURRENT_LIST_DIR}/../corpus/*.pickle)
  gpumem_tries(_tries 60 300)
  add_test(NAME unit.fuzz_reader COMMAND fuzz_reader -n ${_tries} ${corpus})
  file(GLOB snapshots CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../corpus/*.pickle
       ${CMAKE_CURRENT_LIST_DIR}/seeds/snapshot/*)
  add_test(NAME unit.fuzz_snapshot COMMAND fuzz_snapshot -n 1000 ${snapshots})
  foreach(_name rules baseline options)
    file(GLOB seeds CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/seeds/${_name}/*)
    add_test(NAME unit.fuzz_${_name} COMMAND fuzz_${_name} -n 3000 ${seeds})
  endforeach()
endif()
