# What a flight trace carries over, held against the report's own replay of everything.
list(TRANSFORM GPUMEM_FOLD_SOURCES PREPEND ${GPUMEM_PRELOAD_DIR}/ OUTPUT_VARIABLE _fold)
gpumem_unit_test(test_fold SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_fold.c ${_fold} LIBRARIES gpumem_report)
target_include_directories(test_fold PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR})
