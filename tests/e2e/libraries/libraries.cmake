# Memory by library: shared libraries with the names of known ones, all of one source.
set(_libraries ${CMAKE_CURRENT_LIST_DIR})
set(_folder ${CMAKE_CURRENT_BINARY_DIR}/libraries)
gpumem_cuda_program(library_owners gpumem_sim_runtime_13 ${_libraries}/program.c)
foreach(pair nccl=libnccl.so.2 cudnn=libcudnn_ops.so.9 torch=libtorch_cuda.so c10=libc10_cuda.so mine=libmine.so)
  string(REGEX MATCH "^([^=]*)=(.*)$" _ ${pair})
  set(_target library_${CMAKE_MATCH_1})
  add_library(${_target} SHARED ${_libraries}/allocate.c)
  target_include_directories(${_target} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_compile_definitions(${_target} PRIVATE ALLOCATE=allocate_${CMAKE_MATCH_1})
  target_compile_options(${_target} PRIVATE -O0) # every call leaves a frame
  target_link_libraries(${_target} PRIVATE gpumem_options gpumem_sim_runtime_13)
  set_target_properties(${_target} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${CMAKE_MATCH_2}
                        LIBRARY_OUTPUT_DIRECTORY ${_folder})
  target_link_libraries(library_owners PRIVATE ${_target})
endforeach()
add_test(NAME e2e.libraries COMMAND ${Python3_EXECUTABLE} ${_libraries}/libraries.py ${PROJECT_BINARY_DIR}
         $<TARGET_FILE:library_owners>)
