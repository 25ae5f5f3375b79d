# Every output of gpumem, of hostile traces: escaped by its format's rules, and the same bytes each time.
add_test(NAME outputs.hostile COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_outputs.py $<TARGET_FILE:gpumem>
         ${PROJECT_SOURCE_DIR} $<TARGET_FILE:export_traces>)
# Every figure of every output against every other.
add_test(NAME outputs.figures COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_figures.py $<TARGET_FILE:gpumem>
         ${PROJECT_SOURCE_DIR} $<TARGET_FILE:export_traces>)
set_tests_properties(outputs.figures PROPERTIES TIMEOUT 600)
set_tests_properties(outputs.hostile PROPERTIES TIMEOUT 300)
add_test(NAME outputs.large COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_large.py $<TARGET_FILE:gpumem>
         $<TARGET_FILE:export_traces>)
