# Tests of the simulated runtime, shared and static, on the simulated driver.
function(_gpumem_sim_runtime_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  add_dependencies(${name} gpumem_sim_driver)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_include_directories(${name} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_link_libraries(${name} PRIVATE gpumem_options ${arg_LIBRARIES} gpumem_cmocka
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

find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_file(GPUMEM_REAL_CUDART libcudart.so.13 HINTS ${GPUMEM_CUDA_INCLUDE}/../lib64
          ${GPUMEM_CUDA_INCLUDE}/../lib NO_DEFAULT_PATH)
set(_real ${GPUMEM_REAL_CUDART})
list(FILTER _real EXCLUDE REGEX NOTFOUND$) # as in sim_driver.cmake
add_test(NAME test_sim_runtime_exports
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/sim_runtime_exports.py ${CMAKE_OBJDUMP}
          ${CMAKE_BINARY_DIR}/sim ${_real})

# Programs built by nvcc. The shared ones are linked with the toolkit's runtime and run with the simulated one. Left out
# with a sanitizer, which would need its library in the executable, and for other machines, because nvcc builds for this
# one.
find_program(GPUMEM_NVCC nvcc HINTS ${GPUMEM_CUDA_INCLUDE}/../bin)
if(GPUMEM_NVCC AND NOT GPUMEM_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  # A toolkit refuses compilers, and fails on headers of a libc, that are newer than itself.
  if(NOT DEFINED GPUMEM_NVCC_WORKS)
    execute_process(COMMAND ${GPUMEM_NVCC} -c ${CMAKE_CURRENT_LIST_DIR}/sim_runtime_kernels.cu
                            -o ${CMAKE_CURRENT_BINARY_DIR}/nvcc_works.o
                    RESULT_VARIABLE _result OUTPUT_QUIET ERROR_VARIABLE _said)
    string(COMPARE EQUAL "${_result}" 0 _works)
    set(GPUMEM_NVCC_WORKS ${_works} CACHE BOOL "nvcc gets on with this machine's compiler and libc")
    if(NOT GPUMEM_NVCC_WORKS)
      message(STATUS "nvcc does not work here, its tests are skipped: ${_said}")
    endif()
  endif()
  function(_gpumem_nvcc_test name)
    set(_program ${CMAKE_CURRENT_BINARY_DIR}/${name})
    set(_source ${CMAKE_CURRENT_LIST_DIR}/sim_runtime_kernels.cu)
    if(NOT GPUMEM_NVCC_WORKS)
      add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "SKIP: nvcc does not work with this compiler and libc")
      set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIP")
      return()
    endif()
    add_custom_command(OUTPUT ${_program}
      COMMAND ${GPUMEM_NVCC} ${_source} -o ${_program} ${ARGN}
      DEPENDS ${_source} gpumem_sim_runtime_13 gpumem_sim_runtime_static VERBATIM)
    add_custom_target(${name}_program ALL DEPENDS ${_program})
    add_test(NAME ${name} COMMAND ${_program})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT
                         "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/sim")
  endfunction()
  _gpumem_nvcc_test(test_sim_runtime_nvcc_shared -cudart shared)
  _gpumem_nvcc_test(test_sim_runtime_nvcc_per_thread -cudart shared --default-stream per-thread)
  _gpumem_nvcc_test(test_sim_runtime_nvcc_static
    -cudart none ${CMAKE_BINARY_DIR}/sim/libcudart_sim_static.a -ldl -lpthread)
endif()
