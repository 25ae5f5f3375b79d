# What the recorder declines, as the debug build tells it. Nothing is said of the program's code for unwinders.
gpumem_cuda_program(why_program gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/why.c)
target_compile_definitions(why_program PRIVATE PROGRAM)
target_compile_options(why_program PRIVATE -fno-asynchronous-unwind-tables -fno-unwind-tables)
add_library(why_thread MODULE ${CMAKE_CURRENT_LIST_DIR}/why.c)
target_include_directories(why_thread SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_link_libraries(why_thread PRIVATE gpumem_sim_runtime_13 Threads::Threads)
set_target_properties(why_thread PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT GPUMEM_SANITIZE)
  add_test(NAME e2e.why COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/why.py ${PROJECT_BINARY_DIR}
           $<$<BOOL:${GPUMEM_WHY}>:debug>)
endif()
