# The random programs: random_program, whose threads take turns, and random_race, whose threads do not.
set(GPUMEM_RANDOM ${CMAKE_CURRENT_LIST_DIR})

# Files that are compiled a second time, for the per-thread default stream.
set(GPUMEM_RANDOM_PER_THREAD array_copy async copy graph hint set work)
set(GPUMEM_RANDOM_FAMILIES ${GPUMEM_RANDOM_PER_THREAD} array context host linear mistake module pool process shared vmm)

function(gpumem_random_program name)
  list(TRANSFORM GPUMEM_RANDOM_FAMILIES REPLACE "(.+)" "${GPUMEM_RANDOM}/random_\\1.c" OUTPUT_VARIABLE families)
  list(TRANSFORM GPUMEM_RANDOM_PER_THREAD REPLACE "(.+)" "${GPUMEM_RANDOM}/random_\\1.c" OUTPUT_VARIABLE per_thread)
  add_library(${name}_per_thread OBJECT ${per_thread})
  target_include_directories(${name}_per_thread SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_compile_options(${name}_per_thread PRIVATE -g -O0)
  target_compile_definitions(${name}_per_thread PRIVATE _GNU_SOURCE= CUDA_API_PER_THREAD_DEFAULT_STREAM= ${ARGN})
  gpumem_cuda_program(${name} "gpumem_sim_runtime_13;gpumem_sim_driver" ${GPUMEM_RANDOM}/random_program.c ${families}
                      $<TARGET_OBJECTS:${name}_per_thread>)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/sim/driver)
  target_compile_definitions(${name} PRIVATE ${ARGN})
endfunction()

gpumem_random_program(random_program)
gpumem_random_program(random_race RACING)
