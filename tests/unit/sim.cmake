# Tests of the simulated driver: every family, its errors and its oracle.
foreach(_name memory array pool vmm graph context process)
  set(_sources ${CMAKE_CURRENT_LIST_DIR}/sim_driver/${_name}.c
      ${CMAKE_CURRENT_LIST_DIR}/sim_driver/support.c)
  gpumem_unit_test(test_sim_driver_${_name} SOURCES ${_sources}
                   LIBRARIES gpumem_sim_driver ${CMAKE_DL_LIBS})
  target_include_directories(test_sim_driver_${_name} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_include_directories(test_sim_driver_${_name} PRIVATE
                             ${CMAKE_CURRENT_LIST_DIR}/../../sim)
  set_tests_properties(test_sim_driver_${_name} PROPERTIES TIMEOUT 120)
endforeach()

gpumem_unit_test(test_sim_driver_exit SOURCES ${CMAKE_CURRENT_LIST_DIR}/sim_driver/exit.c
                 LIBRARIES ${CMAKE_DL_LIBS})
add_dependencies(test_sim_driver_exit gpumem_sim_driver)
target_include_directories(test_sim_driver_exit SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
set_tests_properties(test_sim_driver_exit PROPERTIES TIMEOUT 60
                     ENVIRONMENT LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/sim)
