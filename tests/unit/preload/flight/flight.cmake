# The flight recorder: what a trace carries over, held against the report's own replay of everything; and
# its files, read back after kills.
set(_fold ${GPUMEM_FOLD_SOURCES} base/assert.c flight/fold_valid.c)
list(TRANSFORM _fold PREPEND ${GPUMEM_PRELOAD_DIR}/)
gpumem_unit_test(test_fold SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_fold.c ${_fold} LIBRARIES gpumem_report_checked)
target_include_directories(test_fold PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR})
target_compile_definitions(test_fold PRIVATE GPUMEM_CHECKED)
gpumem_unit_test(test_valid SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_valid.c ${_fold} ${GPUMEM_PRELOAD_DIR}/ring/lane_valid.c)
target_include_directories(test_valid PRIVATE ${GPUMEM_PRELOAD_DIR})
target_compile_definitions(test_valid PRIVATE GPUMEM_CHECKED)

gpumem_unit_test(test_flight
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_flight.c ${CMAKE_CURRENT_LIST_DIR}/../record/scene.c
          $<TARGET_OBJECTS:recorder_for_tests>
  LIBRARIES gpumem_report_checked)
target_include_directories(test_flight PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR}
  ${CMAKE_CURRENT_LIST_DIR}/../record)
target_link_options(test_flight PRIVATE -Wl,--wrap=pthread_create,--wrap=gm_pack
  -Wl,--wrap=gm_log_complete,--wrap=gm_trace_publish_extents)
