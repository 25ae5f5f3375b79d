# NVTX marks and ranges, alone and before another tool. NVTX's headers come with the CUDA toolkit, or with pip's CUDA.
find_path(GPUMEM_NVTX_INCLUDE nvtx3/nvToolsExt.h
  HINTS ${GPUMEM_CUDA_INCLUDE} $ENV{CUDA_HOME}/include /usr/local/cuda/include)
if(NOT GPUMEM_NVTX_INCLUDE)
  add_test(NAME nvtx COMMAND ${CMAKE_COMMAND} -E echo "SKIP: no NVTX headers: no CUDA toolkit, and pip has none")
  set_tests_properties(nvtx PROPERTIES SKIP_REGULAR_EXPRESSION "SKIP")
  return()
endif()

set(NVTX ${CMAKE_CURRENT_LIST_DIR})
set(NVTX_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/nvtx)
function(gpumem_nvtx_target target)
  target_include_directories(${target} SYSTEM PRIVATE ${GPUMEM_NVTX_INCLUDE} ${GPUMEM_CUDA_INCLUDE})
  target_link_libraries(${target} PRIVATE gpumem_options ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${NVTX_FOLDER}
                        RUNTIME_OUTPUT_DIRECTORY ${NVTX_FOLDER})
endfunction()

add_library(nvtx_layout OBJECT ${NVTX}/layout.c)
target_include_directories(nvtx_layout PRIVATE ${GPUMEM_PRELOAD_DIR})
gpumem_nvtx_target(nvtx_layout)
add_library(nvtx_tool MODULE ${NVTX}/tool.c)
gpumem_nvtx_target(nvtx_tool)
add_library(nvtx_library SHARED ${NVTX}/library.c)
gpumem_nvtx_target(nvtx_library)
add_executable(nvtx_program ${NVTX}/program.c)
gpumem_nvtx_target(nvtx_program)
target_link_libraries(nvtx_program PRIVATE nvtx_library gpumem_sim_runtime_13)

add_test(NAME nvtx COMMAND ${Python3_EXECUTABLE} ${NVTX}/test_nvtx.py ${PROJECT_BINARY_DIR} ${NVTX_FOLDER})
