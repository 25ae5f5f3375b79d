gpumem_cuda_program(extremes gpumem_sim_driver ${CMAKE_CURRENT_LIST_DIR}/extremes.c)
add_test(NAME e2e.extremes
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/extremes.py ${PROJECT_BINARY_DIR})
