# The benchmark loop, for malloc and for CUDA. Not a test: scripts/bench runs it.
foreach(kind malloc cuda)
  add_executable(loop_${kind} ${CMAKE_CURRENT_LIST_DIR}/loop.c)
  target_compile_options(loop_${kind} PRIVATE -O2 -g)
  target_compile_definitions(loop_${kind} PRIVATE _GNU_SOURCE=)
  target_link_libraries(loop_${kind} PRIVATE Threads::Threads)
  set_target_properties(loop_${kind} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()
target_compile_definitions(loop_cuda PRIVATE LOOP_CUDA)
target_include_directories(loop_cuda SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_link_libraries(loop_cuda PRIVATE gpumem_sim_driver)

add_executable(bench_clock ${CMAKE_CURRENT_LIST_DIR}/clock.c)
target_compile_options(bench_clock PRIVATE -O2)
target_compile_definitions(bench_clock PRIVATE _GNU_SOURCE=)
target_include_directories(bench_clock PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR} ${PROJECT_SOURCE_DIR}/include)
set_target_properties(bench_clock PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

# A program that loads and unloads a library again and again, and that library.
add_executable(bench_reload ${CMAKE_CURRENT_LIST_DIR}/reload.c)
target_link_libraries(bench_reload PRIVATE ${CMAKE_DL_LIBS})
add_library(bench_reloaded MODULE ${CMAKE_CURRENT_LIST_DIR}/reload.c)
target_compile_definitions(bench_reloaded PRIVATE RELOADED)
foreach(target bench_reload bench_reloaded)
  target_compile_options(${target} PRIVATE -O2 -g)
  target_include_directories(${target} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_link_libraries(${target} PRIVATE gpumem_sim_driver)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()

# What reading a trace takes at least.
add_executable(bench_read ${CMAKE_CURRENT_LIST_DIR}/read.c)
target_compile_options(bench_read PRIVATE -O2 -g)
target_link_libraries(bench_read PRIVATE gpumem_report)
set_target_properties(bench_read PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

# What noting PyTorch's blocks takes at least.
add_library(bench_blocks MODULE ${CMAKE_CURRENT_LIST_DIR}/blocks.c)
target_compile_options(bench_blocks PRIVATE -O2)
target_compile_definitions(bench_blocks PRIVATE _GNU_SOURCE=)
target_include_directories(bench_blocks PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR} ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(bench_blocks PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(bench_blocks PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
