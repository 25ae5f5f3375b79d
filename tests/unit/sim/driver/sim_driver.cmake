# Tests of the simulated driver: every family, its errors and its oracle.
foreach(_name memory array pool vmm graph context process contents)
  set(_sources ${CMAKE_CURRENT_LIST_DIR}/${_name}.c
      ${CMAKE_CURRENT_LIST_DIR}/support.c)
  gpumem_unit_test(test_sim_driver_${_name} SOURCES ${_sources}
                   LIBRARIES gpumem_sim_driver ${CMAKE_DL_LIBS})
  target_include_directories(test_sim_driver_${_name} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_include_directories(test_sim_driver_${_name} PRIVATE
                             ${CMAKE_CURRENT_LIST_DIR}/../../../../sim)
  set_tests_properties(test_sim_driver_${_name} PROPERTIES TIMEOUT 120)
endforeach()

gpumem_unit_test(test_sim_driver_exit SOURCES ${CMAKE_CURRENT_LIST_DIR}/exit.c
                 LIBRARIES ${CMAKE_DL_LIBS})
add_dependencies(test_sim_driver_exit gpumem_sim_driver)
target_include_directories(test_sim_driver_exit SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
set_tests_properties(test_sim_driver_exit PROPERTIES TIMEOUT 60
                     ENVIRONMENT LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/sim)

add_library(sim_driver_injection MODULE ${CMAKE_CURRENT_LIST_DIR}/injection.c)
target_link_libraries(sim_driver_injection PRIVATE gpumem_options)
add_dependencies(test_sim_driver_process sim_driver_injection)
target_compile_definitions(test_sim_driver_process PRIVATE
                           INJECTION="$<TARGET_FILE:sim_driver_injection>")

# A sanitizer makes the driver export names of its own.
if(NOT GPUMEM_SANITIZE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  find_file(GPUMEM_STUB_LIBCUDA libcuda.so HINTS ${GPUMEM_CUDA_INCLUDE}/../lib64/stubs
            ${GPUMEM_CUDA_INCLUDE}/../lib/stubs NO_DEFAULT_PATH)
  set(_stub ${GPUMEM_STUB_LIBCUDA})
  list(FILTER _stub EXCLUDE REGEX NOTFOUND$) # pass no argument at all: CMake 3.31 and later pass on an empty one
  add_test(NAME test_sim_driver_exports
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/exports.py ${CMAKE_OBJDUMP}
            $<TARGET_FILE:gpumem_sim_driver>
            ${_stub})
endif()
