# `gpumem top` beside a program that runs.
gpumem_cuda_program(top_steps gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/steps.c)
add_test(NAME top COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_top.py ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})

add_test(NAME running COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_running.py ${PROJECT_BINARY_DIR})
add_test(NAME top.keys COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_keys.py ${PROJECT_BINARY_DIR})
