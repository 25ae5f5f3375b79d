# gpumem dry-run without a wheel: a C program and a math library that must never be mapped. The real PyTorch: `make
# test-dry-run`.
set(DRY ${CMAKE_CURRENT_LIST_DIR})
set(DRY_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/dry)

# As a wheel lays it out: lib/ and include/ side by side.
file(COPY ${DRY}/include DESTINATION ${DRY_FOLDER})
add_library(dry_original SHARED ${DRY}/original.c)
target_link_libraries(dry_original PRIVATE gpumem_options)
file(WRITE ${DRY_FOLDER}/original.map "libcublas.so.13 { global: cublas*; local: *; };\n")
target_link_options(dry_original PRIVATE -Wl,--version-script=${DRY_FOLDER}/original.map)
set_target_properties(dry_original PROPERTIES OUTPUT_NAME cublas VERSION 13 SOVERSION 13
  LIBRARY_OUTPUT_DIRECTORY ${DRY_FOLDER}/lib)

add_library(dry_linker SHARED ${DRY}/linker.c)
target_link_libraries(dry_linker PRIVATE gpumem_options)
file(WRITE ${DRY_FOLDER}/linker.map "libnvJitLink.so.13 { global: nvJitLink*; __nvJitLink*; local: *; };\n")
target_link_options(dry_linker PRIVATE -Wl,--version-script=${DRY_FOLDER}/linker.map)
set_target_properties(dry_linker PROPERTIES OUTPUT_NAME nvJitLink VERSION 13 SOVERSION 13
  LIBRARY_OUTPUT_DIRECTORY ${DRY_FOLDER}/lib)

# A runtime of a wheel's own, renamed as bundling does it, and a library that needs it by that name.
add_library(dry_bundled SHARED ${DRY}/bundled.c)
file(WRITE ${DRY_FOLDER}/bundled.map "libcudart.so.13 { global: cuda*; local: *; };\n")
target_link_options(dry_bundled PRIVATE -Wl,--version-script=${DRY_FOLDER}/bundled.map)
set_target_properties(dry_bundled PROPERTIES OUTPUT_NAME cudart.0123abcd VERSION 13 SOVERSION 13
  LIBRARY_OUTPUT_DIRECTORY ${DRY_FOLDER}/lib)
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
