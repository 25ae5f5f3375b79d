# File systems for a trace: a real btrfs that becomes full. Uses gpumem_cuda_program.
gpumem_cuda_program(fill gpumem_sim_driver ${CMAKE_CURRENT_LIST_DIR}/fill.c)
add_test(NAME e2e.place COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/place.py ${PROJECT_BINARY_DIR})
set_tests_properties(e2e.place PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
