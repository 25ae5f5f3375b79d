# Calls that are no allocations and are refused, and a device that fails.
gpumem_cuda_program(refusals "gpumem_sim_runtime_13;gpumem_sim_driver" ${CMAKE_CURRENT_LIST_DIR}/refusals.c)
add_test(NAME e2e.refusals
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/refusals.py ${PROJECT_BINARY_DIR})
