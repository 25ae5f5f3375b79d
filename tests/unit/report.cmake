# The offline half: replay rules, the reader and damage, text helpers, the commands.
function(gpumem_report_test name)
  add_executable(test_${name} ${CMAKE_CURRENT_LIST_DIR}/test_${name}.c)
  target_compile_definitions(test_${name} PRIVATE _GNU_SOURCE=)
  target_link_libraries(test_${name} PRIVATE gpumem_report ${GPUMEM_CMOCKA})
  add_test(NAME unit.${name} COMMAND test_${name})
endfunction()

gpumem_report_test(replay)
gpumem_report_test(reader)

add_test(NAME unit.report_commands
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/report_commands.py
                 $<TARGET_FILE:gpumem> ${PROJECT_SOURCE_DIR})
add_test(NAME unit.report_run
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/report_run.py $<TARGET_FILE:gpumem>
                 ${PROJECT_BINARY_DIR}/tests/training_loop ${PROJECT_BINARY_DIR}/sim)
