# The limits of the recorder, each reached by a program. Uses gpumem_cuda_program.
set(_limits ${CMAKE_CURRENT_LIST_DIR})
gpumem_cuda_program(limits gpumem_sim_driver ${_limits}/limits.c)
target_link_libraries(limits PRIVATE ${CMAKE_DL_LIBS})
target_include_directories(limits PRIVATE ${PROJECT_SOURCE_DIR}/include)
foreach(_room 100 9000 50000)
  add_library(limits_plugin_${_room} MODULE ${_limits}/plugin.c)
  target_include_directories(limits_plugin_${_room} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_compile_options(limits_plugin_${_room} PRIVATE -g -O0)
  target_compile_definitions(limits_plugin_${_room} PRIVATE ROOM=${_room})
  target_link_libraries(limits_plugin_${_room} PRIVATE gpumem_sim_driver)
  set_target_properties(limits_plugin_${_room} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()
foreach(_case contexts contexts_beyond_the_numbers contexts_in_flight threads marks generated_code_and_dlclose
        libraries_in_turn full_disk_that_passes)
  add_test(NAME e2e.limits.${_case} COMMAND ${Python3_EXECUTABLE} ${_limits}/limits.py ${PROJECT_BINARY_DIR} ${_case})
endforeach()
if(NOT GPUMEM_SANITIZE AND NOT GPUMEM_WHY) # which touch pages of their own
  add_test(NAME e2e.limits.pages_of_threads COMMAND ${Python3_EXECUTABLE} ${_limits}/limits.py ${PROJECT_BINARY_DIR}
           pages_of_threads)
endif()
