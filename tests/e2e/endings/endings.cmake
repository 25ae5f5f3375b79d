# How processes end: exit codes, signals, workers of a pool.
gpumem_cuda_program(endings gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/endings.c)
add_test(NAME e2e.endings
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/endings.py ${PROJECT_BINARY_DIR})
