# The recorder without hooks: what it writes is read back by the report's own reader.
set(_core flight/carry.c flight/flight.c flight/flight_log.c flight/fold.c flight/fold_context.c flight/fold_graph.c flight/fold_vmm.c writer/columns.c base/config.c ring/drain.c writer/modules.c interpose/newer_abi.c ring/own_thread.c ring/pack.c process/process.c record/recorder.c writer/seal.c writer/tables.c ring/lane.c writer/trace_file.c writer/trace_place.c stack/native/unwind_maps.c stack/native/stack_bounds.c)
list(TRANSFORM _core PREPEND ${GPUMEM_PRELOAD_DIR}/)
get_target_property(_made gpumem_preload BINARY_DIR)
add_library(recorder_for_tests OBJECT ${_core} ${CMAKE_CURRENT_LIST_DIR}/fake.c)
target_compile_definitions(recorder_for_tests PRIVATE _GNU_SOURCE=)
target_include_directories(recorder_for_tests PRIVATE ${GPUMEM_PRELOAD_DIR}
                           ${_made}) # version.h
target_link_libraries(recorder_for_tests PRIVATE gpumem_options)

gpumem_unit_test(test_recorder
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_recorder.c ${CMAKE_CURRENT_LIST_DIR}/scene.c
          $<TARGET_OBJECTS:recorder_for_tests>
  LIBRARIES gpumem_report)
target_include_directories(test_recorder PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR}
  ${CMAKE_CURRENT_LIST_DIR})
target_link_options(test_recorder PRIVATE -Wl,--wrap=pthread_create) # tests refuse the drainer its thread

gpumem_unit_test(test_calls
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_calls.c ${CMAKE_CURRENT_LIST_DIR}/scene.c
          $<TARGET_OBJECTS:recorder_for_tests>
  LIBRARIES gpumem_report)
target_include_directories(test_calls PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR}
  ${CMAKE_CURRENT_LIST_DIR})
target_link_options(test_calls PRIVATE -Wl,--wrap=pthread_create)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT GPUMEM_SANITIZE)
  add_test(NAME shadow_stack COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/shadow_stack.py
           $<TARGET_FILE:gpumem_preload>)
endif()

# What a forked child finds in the library's variables. Sanitizers add variables of their own.
if(NOT GPUMEM_SANITIZE)
  add_test(NAME unit.statics COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/statics.py
           $<TARGET_FILE:gpumem_preload> ${GPUMEM_PRELOAD_DIR} ${CMAKE_CURRENT_LIST_DIR}/statics.list)
endif()
