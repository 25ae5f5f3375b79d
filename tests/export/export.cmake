# The formats of `gpumem export`, each read by a program that it is for. Those programs come by pip, Go's pprof with
# Debian's golang packages; the test names those that the machine lacks.

add_executable(export_traces ${CMAKE_CURRENT_LIST_DIR}/export_traces.c)
target_compile_definitions(export_traces PRIVATE _GNU_SOURCE=)
target_include_directories(export_traces PRIVATE ${PROJECT_SOURCE_DIR}/include ${GPUMEM_TEST_SUPPORT})
target_link_libraries(export_traces PRIVATE gpumem_report)
add_test(NAME export.formats COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_export.py
         $<TARGET_FILE:gpumem> ${PROJECT_SOURCE_DIR} $<TARGET_FILE:export_traces> ${GPUMEM_PACKAGES})
gpumem_needs_packages(export.formats)
