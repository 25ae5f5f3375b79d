# Both ends of a block's columns: the report's own decoder reads the output of the recorder's encoder.
gpumem_unit_test(test_columns
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_columns.c ${GPUMEM_PRELOAD_DIR}/writer/columns.c LIBRARIES gpumem_report_checked)
target_include_directories(test_columns PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR})
