# The limits of the recorder, each come upon by a program. Uses gpumem_cuda_program.
set(_limits ${CMAKE_CURRENT_LIST_DIR})
gpumem_cuda_program(limits gpumem_sim_driver ${_limits}/limits.c)
target_link_libraries(limits PRIVATE ${CMAKE_DL_LIBS})
foreach(_case contexts contexts_beyond_the_numbers contexts_in_flight)
  add_test(NAME e2e.limits.${_case} COMMAND ${Python3_EXECUTABLE} ${_limits}/limits.py ${PROJECT_BINARY_DIR} ${_case})
endforeach()
