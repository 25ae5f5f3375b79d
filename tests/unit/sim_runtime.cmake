# Tests of the simulated runtime, shared and static, on the simulated driver.
function(_gpumem_sim_runtime_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  add_dependencies(${name} gpumem_sim_driver)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_include_directories(${name} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_link_libraries(${name} PRIVATE gpumem_options ${arg_LIBRARIES} ${GPUMEM_CMOCKA}
                        Threads::Threads ${CMAKE_DL_LIBS})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT
    "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/sim;GPUMEM_SIM_DEVICES=2;GPUMEM_SIM_MEMORY=64M")
endfunction()

_gpumem_sim_runtime_test(test_sim_runtime
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_sim_runtime.c LIBRARIES gpumem_sim_runtime_13)
_gpumem_sim_runtime_test(test_sim_runtime_static
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_sim_runtime.c LIBRARIES gpumem_sim_runtime_static)
_gpumem_sim_runtime_test(test_sim_runtime_unloading
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_sim_runtime_unloading.c
  LIBRARIES gpumem_sim_runtime_static)
_gpumem_sim_runtime_test(test_sim_runtime_12
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_sim_runtime_12.c)
add_dependencies(test_sim_runtime_12 gpumem_sim_runtime_12)
