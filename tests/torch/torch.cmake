# Blocks of PyTorch's allocator, on a replica of the two libraries that report them, and the marks of
# include/gpumem/gpumem.h. The real wheel: `make test-pytorch` (run_wheel).
enable_language(CXX)
set(TORCH ${CMAKE_CURRENT_LIST_DIR})
set(TORCH_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/torch)

# torch_replica(name OPTIONS...): libc10.so and libc10_cuda.so, compiled and linked with the options.
function(torch_replica name)
  cmake_parse_arguments(arg "" "" "COMPILE;LINK" ${ARGN})
  foreach(part c10 c10_cuda)
    set(target torch_${name}_${part})
    add_library(${target} SHARED ${TORCH}/replica/${part}.cpp)
    target_compile_features(${target} PRIVATE cxx_std_17)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow ${arg_COMPILE})
    target_link_options(${target} PRIVATE ${arg_LINK})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${part} CXX_VISIBILITY_PRESET hidden
      LIBRARY_OUTPUT_DIRECTORY ${TORCH_FOLDER}/${name} BUILD_RPATH "$ORIGIN" BUILD_RPATH_USE_ORIGIN ON)
  endforeach()
  target_include_directories(torch_${name}_c10_cuda SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_link_libraries(torch_${name}_c10_cuda PRIVATE torch_${name}_c10 gpumem_sim_runtime_13)
endfunction()

torch_replica(default) # as the wheels are built: lazy PLT
torch_replica(bsymbolic LINK -Wl,-Bsymbolic)
torch_replica(noplt COMPILE -fno-plt LINK -Wl,-z,now)

foreach(variant default bsymbolic noplt)
  add_test(NAME torch.replica.${variant} COMMAND ${Python3_EXECUTABLE} ${TORCH}/test_replica.py
    ${PROJECT_BINARY_DIR} ${TORCH_FOLDER}/${variant})
endforeach()
gpumem_tries(_tries 200000 1000000)
add_test(NAME torch.replica.long COMMAND ${Python3_EXECUTABLE} ${TORCH}/test_replica.py
  ${PROJECT_BINARY_DIR} ${TORCH_FOLDER}/default --events ${_tries})

add_test(NAME torch.findings COMMAND ${Python3_EXECUTABLE} ${TORCH}/test_findings.py
  ${PROJECT_BINARY_DIR} ${TORCH_FOLDER}/default)

# Programs whose memory grows, as it should and as it should not.
add_test(NAME torch.growth COMMAND ${Python3_EXECUTABLE} ${TORCH}/test_growth.py
  ${PROJECT_BINARY_DIR} ${TORCH_FOLDER}/default)

# Physical memory that comes and goes under a live pool, here on the replica, in run_wheel on the real wheel.
add_library(torch_sleep_allocator SHARED ${TORCH}/sleep_allocator.c)
target_include_directories(torch_sleep_allocator SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_link_libraries(torch_sleep_allocator PRIVATE gpumem_options gpumem_sim_driver)
set_target_properties(torch_sleep_allocator PROPERTIES OUTPUT_NAME sleep_allocator
  LIBRARY_OUTPUT_DIRECTORY ${TORCH_FOLDER})
add_test(NAME torch.sleep COMMAND ${Python3_EXECUTABLE} ${TORCH}/test_sleep.py ${PROJECT_BINARY_DIR}
  ${TORCH_FOLDER}/default)

# Marks: code with both kinds of addresses finds the library, and works without it.
foreach(kind pie fixed)
  add_executable(torch_marks_${kind} ${TORCH}/marks.c)
  target_link_libraries(torch_marks_${kind} PRIVATE gpumem_options Threads::Threads ${CMAKE_DL_LIBS})
  add_test(NAME torch.marks.${kind} COMMAND ${Python3_EXECUTABLE} ${TORCH}/test_marks.py
    ${PROJECT_BINARY_DIR} $<TARGET_FILE:torch_marks_${kind}>)
endforeach()
target_compile_options(torch_marks_pie PRIVATE -fPIE)
target_link_options(torch_marks_pie PRIVATE -pie)
target_compile_options(torch_marks_fixed PRIVATE -fno-pie)
target_link_options(torch_marks_fixed PRIVATE -no-pie)

# The same from Python, with blocks.
add_test(NAME torch.phases COMMAND ${Python3_EXECUTABLE} ${TORCH}/test_phases.py ${PROJECT_BINARY_DIR}
  ${TORCH_FOLDER}/default ${PROJECT_SOURCE_DIR})

# For run_wheel: see nvml.c.
add_library(torch_nvml SHARED ${TORCH}/nvml.c)
target_link_libraries(torch_nvml PRIVATE gpumem_options)
set_target_properties(torch_nvml PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME libnvidia-ml.so.1 NO_SONAME ON
  LIBRARY_OUTPUT_DIRECTORY ${TORCH_FOLDER}/nvml)
target_link_options(torch_nvml PRIVATE -Wl,-soname,libnvidia-ml.so.1)
