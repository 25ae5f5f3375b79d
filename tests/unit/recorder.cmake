# The recorder without hooks: what it writes is read back by the report's own reader.
set(_core carry.c flight.c flight_log.c fold.c fold_context.c fold_graph.c fold_vmm.c columns.c config.c drain.c modules.c newer_abi.c own_thread.c pack.c process.c recorder.c seal.c tables.c thread.c trace_file.c trace_place.c unwind_maps.c unwind_stack.c)
list(TRANSFORM _core PREPEND ${GPUMEM_PRELOAD_DIR}/)
get_target_property(_made gpumem_preload BINARY_DIR)
add_library(recorder_for_tests OBJECT ${_core} ${CMAKE_CURRENT_LIST_DIR}/recorder/fake.c)
target_compile_definitions(recorder_for_tests PRIVATE _GNU_SOURCE=)
target_include_directories(recorder_for_tests PRIVATE ${GPUMEM_PRELOAD_DIR}/hooks ${GPUMEM_PRELOAD_DIR}
                           ${_made}) # version.h
target_link_libraries(recorder_for_tests PRIVATE gpumem_options)

gpumem_unit_test(test_recorder
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_recorder.c ${CMAKE_CURRENT_LIST_DIR}/recorder/scene.c
          $<TARGET_OBJECTS:recorder_for_tests>
  LIBRARIES gpumem_report)
target_include_directories(test_recorder PRIVATE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_LIST_DIR}/recorder)
target_link_options(test_recorder PRIVATE -Wl,--wrap=pthread_create) # tests refuse the drainer its thread

gpumem_unit_test(test_calls
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_calls.c ${CMAKE_CURRENT_LIST_DIR}/recorder/scene.c
          $<TARGET_OBJECTS:recorder_for_tests>
  LIBRARIES gpumem_report)
target_include_directories(test_calls PRIVATE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_LIST_DIR}/recorder)
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
