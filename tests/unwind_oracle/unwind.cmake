# The unwinder: its unit test, the random oracle that compares it with libunwind, its benchmark.
set(oracle_dir ${CMAKE_CURRENT_LIST_DIR})
set(unwind_sources
  ${GPUMEM_PRELOAD_SOURCES})
list(FILTER unwind_sources INCLUDE REGEX "^stack/(known_stacks|native/)|^loader/(libc_dlsym|objects|redirect)")
list(TRANSFORM unwind_sources PREPEND ${GPUMEM_PRELOAD_DIR}/)

add_library(unwind_for_tests STATIC ${unwind_sources})
target_compile_definitions(unwind_for_tests PUBLIC _GNU_SOURCE=)
target_include_directories(unwind_for_tests PUBLIC ${GPUMEM_PRELOAD_DIR})
target_link_libraries(unwind_for_tests PUBLIC gpumem_options ${CMAKE_DL_LIBS} Threads::Threads)

# Two builds of one library, alike up to the size of a frame.
foreach(build 0 1)
  math(EXPR frame "1000 + 3000 * ${build}")
  add_library(oracle_plugin_${build} MODULE ${oracle_dir}/plugin.c)
  set_target_properties(oracle_plugin_${build} PROPERTIES PREFIX "" SUFFIX ".so")
  target_compile_definitions(oracle_plugin_${build} PRIVATE PLUGIN_FRAME=${frame})
  target_compile_options(oracle_plugin_${build} PRIVATE -O2 -fomit-frame-pointer)
  target_link_libraries(oracle_plugin_${build} PRIVATE gpumem_options)
endforeach()

find_library(GPUMEM_LIBUNWIND unwind)
find_path(GPUMEM_LIBUNWIND_INCLUDE libunwind.h)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|aarch64|arm64)$" AND GPUMEM_LIBUNWIND AND GPUMEM_LIBUNWIND_INCLUDE)
  enable_language(CXX)
  # The project's options are for C.
  add_library(oracle_throw OBJECT ${oracle_dir}/throw.cpp)
  target_compile_options(oracle_throw PRIVATE -Wall -Wextra -O2 -fomit-frame-pointer)
  # Optimised whatever the build: the frames of unoptimised code are all of one shape.
  add_executable(unwind_oracle
    ${oracle_dir}/oracle.c ${oracle_dir}/tree.c ${oracle_dir}/coroutine.c ${oracle_dir}/plugin_swap.c
    $<TARGET_OBJECTS:oracle_throw>)
  set_target_properties(unwind_oracle PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_options(unwind_oracle PRIVATE -O2 -fomit-frame-pointer -falign-functions=1 -fexceptions)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    # As the library itself: a walk starts at a frame record, which is found through those of the functions it calls.
    set_source_files_properties(${oracle_dir}/oracle.c PROPERTIES COMPILE_OPTIONS -fno-omit-frame-pointer)
    target_link_options(unwind_oracle PRIVATE -static-libstdc++) # cross compilers have it, root folders do not
  endif()
  target_include_directories(unwind_oracle PRIVATE ${GPUMEM_LIBUNWIND_INCLUDE})
  target_link_libraries(unwind_oracle PRIVATE unwind_for_tests ${GPUMEM_LIBUNWIND})
  add_dependencies(unwind_oracle oracle_plugin_0 oracle_plugin_1)
  add_test(NAME unwind_oracle
           COMMAND unwind_oracle -p ${CMAKE_CURRENT_BINARY_DIR} 200000)

  add_executable(bench_unwind ${oracle_dir}/bench_unwind.c)
  target_compile_options(bench_unwind PRIVATE -O2 -fomit-frame-pointer)
  target_include_directories(bench_unwind PRIVATE ${GPUMEM_LIBUNWIND_INCLUDE})
  target_link_libraries(bench_unwind PRIVATE unwind_for_tests ${GPUMEM_LIBUNWIND})
endif()

gpumem_unit_test(test_unwind SOURCES ${CMAKE_CURRENT_LIST_DIR}/../unit/preload/stack/test_unwind.c
                 LIBRARIES unwind_for_tests)
target_include_directories(test_unwind PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
add_dependencies(test_unwind oracle_plugin_0 oracle_plugin_1)
target_compile_definitions(test_unwind PRIVATE PLUGIN_FOLDER="${CMAKE_CURRENT_BINARY_DIR}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  # With signed return addresses, as distributions build. libunwind 1.6, the oracle's reference, does not know them.
  target_compile_options(test_unwind PRIVATE -mbranch-protection=standard)
endif()
