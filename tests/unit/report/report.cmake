# The offline half: replay rules, the reader and damage, text helpers, the commands.
foreach(_test base/validators cache/answers ledger/index follow/follow trace/reader replay/replay replay/graph_turns stacks/category stacks/cuda_error pool/pools pool/libraries rounds/rounds analysis/phases analysis/growth model/scope
        analysis/lifetimes findings/findings replica/trust render/page_stack dryrun/dry_run_judgement gate/pattern gate/rule_index)
  get_filename_component(_folder ${_test} DIRECTORY)
  get_filename_component(_name ${_test} NAME)
  add_executable(test_${_name} ${CMAKE_CURRENT_LIST_DIR}/${_folder}/test_${_name}.c)
  target_compile_definitions(test_${_name} PRIVATE _GNU_SOURCE=)
  target_include_directories(test_${_name} PRIVATE ${GPUMEM_TEST_SUPPORT})
  target_link_libraries(test_${_name} PRIVATE gpumem_report_checked gpumem_cmocka)
  add_test(NAME unit.${_name} COMMAND test_${_name})
endforeach()

add_executable(test_model ${CMAKE_CURRENT_LIST_DIR}/model/test_model.c)
target_compile_definitions(test_model PRIVATE _GNU_SOURCE=)
target_include_directories(test_model PRIVATE ${GPUMEM_TEST_SUPPORT})
target_link_libraries(test_model PRIVATE gpumem_report_checked gpumem_cmocka)
add_test(NAME unit.model COMMAND test_model ${PROJECT_SOURCE_DIR}/tests/corpus)

add_test(NAME unit.report_commands
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/commands/report_commands.py
                 $<TARGET_FILE:gpumem> ${PROJECT_SOURCE_DIR})
add_executable(judge_traces ${CMAKE_CURRENT_LIST_DIR}/commands/judge_traces.c)
target_compile_definitions(judge_traces PRIVATE _GNU_SOURCE=)
target_include_directories(judge_traces PRIVATE ${PROJECT_SOURCE_DIR}/include ${GPUMEM_TEST_SUPPORT})
target_link_libraries(judge_traces PRIVATE gpumem_report_checked)
add_test(NAME unit.report_judge
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/commands/report_judge.py $<TARGET_FILE:gpumem>
                 $<TARGET_FILE:judge_traces> ${PROJECT_SOURCE_DIR})
add_test(NAME unit.report_page
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/commands/report_page.py $<TARGET_FILE:gpumem>
                 $<TARGET_FILE:judge_traces> ${PROJECT_SOURCE_DIR})
add_test(NAME unit.thresholds
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/findings/thresholds.py ${PROJECT_SOURCE_DIR})
add_test(NAME unit.report_totals
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/commands/report_totals.py $<TARGET_FILE:gpumem>
                 $<TARGET_FILE:judge_traces> ${PROJECT_SOURCE_DIR})
add_library(wait_after_fork MODULE ${CMAKE_CURRENT_LIST_DIR}/commands/wait_after_fork.c)
target_compile_definitions(wait_after_fork PRIVATE _GNU_SOURCE=)
target_link_libraries(wait_after_fork PRIVATE Threads::Threads)
add_test(NAME unit.report_progress
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/commands/report_progress.py $<TARGET_FILE:gpumem>
                 $<TARGET_FILE:wait_after_fork> ${PROJECT_SOURCE_DIR})
add_test(NAME unit.report_ranks
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/commands/report_ranks.py $<TARGET_FILE:gpumem>
                 ${PROJECT_BINARY_DIR}/tests/training_loop ${PROJECT_BINARY_DIR}/sim)
add_test(NAME unit.report_run
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/commands/report_run.py $<TARGET_FILE:gpumem>
                 ${PROJECT_BINARY_DIR}/tests/training_loop ${PROJECT_BINARY_DIR}/sim)

add_test(NAME unit.report_snapshots
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/torch/snapshots.py $<TARGET_FILE:gpumem>
                 ${PROJECT_SOURCE_DIR}/../shared/realgpu)
add_test(NAME unit.report_whatif
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/replica/whatif.py $<TARGET_FILE:gpumem>
                 ${PROJECT_SOURCE_DIR}/tests/corpus ${PROJECT_SOURCE_DIR}/../shared/realgpu)
