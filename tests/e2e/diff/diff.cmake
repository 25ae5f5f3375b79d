# gpumem diff. diff_moved is the same program from another folder, with other lines; diff_bare has no debug info.
gpumem_cuda_program(diff_program gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/diff_program.c)
configure_file(${CMAKE_CURRENT_LIST_DIR}/diff_program.c ${PROJECT_BINARY_DIR}/tests/elsewhere/diff_program.c COPYONLY)
gpumem_cuda_program(diff_moved gpumem_sim_runtime_13 ${PROJECT_BINARY_DIR}/tests/elsewhere/diff_program.c)
target_compile_definitions(diff_moved PRIVATE DIFF_MOVED)
gpumem_cuda_program(diff_bare gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/diff_program.c)
target_compile_options(diff_bare PRIVATE -g0)
foreach(_program diff_program diff_moved diff_bare)
  target_include_directories(${_program} PRIVATE ${PROJECT_SOURCE_DIR}/include)
endforeach()
add_test(NAME e2e.diff COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/diff.py ${PROJECT_BINARY_DIR}
         ${PROJECT_SOURCE_DIR}/tests/corpus)
