# gpumem dry-run without a wheel: a C program and a math library that must never be mapped. The real PyTorch: `make
# test-dry-run`.
set(DRY ${CMAKE_CURRENT_LIST_DIR})
set(DRY_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/dry)

# Stands for one of NVIDIA's libraries, as a wheel lays it out: lib/ and include/ side by side. `exports`: by version node.
function(dry_library name library exports)
  add_library(dry_${name} SHARED ${DRY}/${name}.c)
  target_link_libraries(dry_${name} PRIVATE gpumem_options)
  file(WRITE ${DRY_FOLDER}/${name}.map "${exports}\n")
  target_link_options(dry_${name} PRIVATE -Wl,--version-script=${DRY_FOLDER}/${name}.map)
  set_target_properties(dry_${name} PROPERTIES OUTPUT_NAME ${library} VERSION 13 SOVERSION 13
    LIBRARY_OUTPUT_DIRECTORY ${DRY_FOLDER}/lib)
endfunction()

file(COPY ${DRY}/include DESTINATION ${DRY_FOLDER})
dry_library(original cublas "libcublas.so.13 { global: cublas*; local: *; };")
dry_library(linker nvJitLink "libnvJitLink.so.13 { global: nvJitLink*; __nvJitLink*; local: *; };")

# A runtime of a wheel's own, renamed as bundling does it, and a library that needs it by that name.
dry_library(bundled cudart.0123abcd "libcudart.so.13 { global: cuda*; local: *; };")
add_library(dry_plugin MODULE ${DRY}/plugin.c)
target_include_directories(dry_plugin SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_link_libraries(dry_plugin PRIVATE gpumem_options dry_bundled)
set_target_properties(dry_plugin PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${DRY_FOLDER}/lib)

add_executable(dry_program ${DRY}/program.c)
target_include_directories(dry_program SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_link_libraries(dry_program PRIVATE gpumem_options dry_original gpumem_sim_runtime_13 ${CMAKE_DL_LIBS})
set_target_properties(dry_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${DRY_FOLDER})

add_test(NAME e2e.dry COMMAND ${Python3_EXECUTABLE} ${DRY}/test_dry_run.py ${PROJECT_BINARY_DIR} ${DRY_FOLDER})
add_test(NAME e2e.dry.fit COMMAND ${Python3_EXECUTABLE} ${DRY}/test_fit.py ${PROJECT_BINARY_DIR} ${DRY_FOLDER})
add_test(NAME e2e.dry.kept COMMAND ${Python3_EXECUTABLE} ${DRY}/test_kept.py ${PROJECT_BINARY_DIR} ${DRY_FOLDER})
