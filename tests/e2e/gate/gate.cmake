# gpumem check end to end.
add_library(vendor_library SHARED ${CMAKE_CURRENT_LIST_DIR}/vendor_library.c)
target_include_directories(vendor_library SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_compile_options(vendor_library PRIVATE -O0)
target_link_libraries(vendor_library PRIVATE gpumem_options gpumem_sim_runtime_13)
set_target_properties(vendor_library PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME libcublas.so.13
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/vendor)
gpumem_cuda_program(vendor_program vendor_library ${CMAKE_CURRENT_LIST_DIR}/vendor_program.c)
gpumem_cuda_program(threads_program gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/threads_program.c)
add_test(NAME e2e.gate COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/gate.py ${PROJECT_BINARY_DIR}
         ${GPUMEM_PACKAGES})
gpumem_needs_packages(e2e.gate)
add_test(NAME e2e.gate_repeats COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/repeats.py ${PROJECT_BINARY_DIR} 2)
