# The symbolizer's test and its samples. Each sample is one small program, built and then treated in the ways in which
# programs are shipped.
find_library(GPUMEM_LIBDW dw REQUIRED)
find_library(GPUMEM_LIBELF elf REQUIRED)
find_library(GPUMEM_LIBIBERTY iberty REQUIRED)
find_program(GPUMEM_OBJCOPY objcopy REQUIRED)
find_program(GPUMEM_GCC gcc REQUIRED)
find_program(GPUMEM_GXX g++ REQUIRED)
find_program(GPUMEM_CLANG clang) # without it, its samples are left out
find_program(GPUMEM_CLANGXX clang++)
find_program(GPUMEM_XZ xz)

set(symbolize_sources ${CMAKE_CURRENT_LIST_DIR}/symbolize_samples)
set(symbolize_samples ${CMAKE_CURRENT_BINARY_DIR}/symbolize_samples)
set(symbolize_outputs "")
file(MAKE_DIRECTORY ${symbolize_samples}/damaged)

# symbolize_sample(NAME SOURCE COMPILER [FLAG...])
function(symbolize_sample name source compiler)
  if(NOT compiler)
    return()
  endif()
  add_custom_command(
    OUTPUT ${symbolize_samples}/${name}
    COMMAND ${compiler} -O2 -g -Wl,--build-id=sha1 ${ARGN} ${symbolize_sources}/${source} -o ${name}
    DEPENDS ${symbolize_sources}/${source} ${symbolize_sources}/marks.h
    WORKING_DIRECTORY ${symbolize_samples}
    VERBATIM)
  set(symbolize_outputs ${symbolize_outputs} ${symbolize_samples}/${name} PARENT_SCOPE)
endfunction()

# symbolize_copy(NAME FROM [COMMAND...]...): a sample made from another one
function(symbolize_copy name from)
  add_custom_command(
    OUTPUT ${symbolize_samples}/${name}
    ${ARGN}
    DEPENDS ${symbolize_samples}/${from}
    WORKING_DIRECTORY ${symbolize_samples}
    VERBATIM)
  set(symbolize_outputs ${symbolize_outputs} ${symbolize_samples}/${name} PARENT_SCOPE)
endfunction()

symbolize_sample(gcc nested.c ${GPUMEM_GCC})
symbolize_sample(gcc-dwarf4 nested.c ${GPUMEM_GCC} -gdwarf-4)
symbolize_sample(gcc-unoptimized nested.c ${GPUMEM_GCC} -O0)
symbolize_sample(gcc-fixed-address nested.c ${GPUMEM_GCC} -no-pie -fno-pie)
symbolize_sample(gcc-lto nested.c ${GPUMEM_GCC} -flto)
symbolize_sample(gcc-compressed nested.c ${GPUMEM_GCC} -gz=zlib)
symbolize_sample(gcc-lines-only nested.c ${GPUMEM_GCC} -g1)
symbolize_sample(gcc-no-build-id nested.c ${GPUMEM_GCC} -Wl,--build-id=none)
symbolize_sample(gcc-split nested.c ${GPUMEM_GCC} -gsplit-dwarf)
symbolize_sample(gcc-split-dwarf4 nested.c ${GPUMEM_GCC} -gsplit-dwarf -gdwarf-4)
symbolize_sample(clang nested.c "${GPUMEM_CLANG}")
symbolize_sample(clang-dwarf4 nested.c "${GPUMEM_CLANG}" -gdwarf-4)
symbolize_sample(clang-split nested.c "${GPUMEM_CLANG}" -gsplit-dwarf)
symbolize_sample(gxx shapes.cpp ${GPUMEM_GXX})
symbolize_sample(gxx-lines-only shapes.cpp ${GPUMEM_GXX} -g1)
symbolize_sample(clangxx shapes.cpp "${GPUMEM_CLANGXX}")
symbolize_sample(clangxx-lines-only shapes.cpp "${GPUMEM_CLANGXX}" -g1)

set(objcopy COMMAND ${GPUMEM_OBJCOPY})
symbolize_copy(gcc-symbols-only gcc ${objcopy} --strip-debug gcc gcc-symbols-only)
symbolize_copy(gxx-symbols-only gxx ${objcopy} --strip-debug gxx gxx-symbols-only)
symbolize_copy(gcc-bare gcc ${objcopy} --strip-all gcc gcc-bare)
symbolize_copy(gcc-compressed-old gcc ${objcopy} --compress-debug-sections=zlib-gnu gcc
               gcc-compressed-old)
# As a compiler that a build tool starts in its own folder names the source: ../../src/nested.c.
file(RELATIVE_PATH relative_sources ${symbolize_samples} ${symbolize_sources})
symbolize_copy(gcc-relative gcc
               COMMAND ${GPUMEM_GCC} -O2 -g ./${relative_sources}/nested.c -Wl,--build-id=sha1 -o gcc-relative)
# Its .dwo file is named after the program; other compilers may use another name.
symbolize_copy(gcc-split-lost gcc-split
               COMMAND ${GPUMEM_GCC} -O2 -g -gsplit-dwarf ${symbolize_sources}/nested.c
                       -Wl,--build-id=sha1 -o gcc-split-lost
               COMMAND ${CMAKE_COMMAND} -E remove gcc-split-lost-nested.dwo)
# To a reader without zstd this is a file with zstd sections; the test changes the method's number, so it needs no tool
# that can write zstd.
symbolize_copy(gcc-other-compression gcc ${objcopy} --compress-debug-sections=zlib gcc
               gcc-other-compression)
# Without a build-id only the debug link leads to the debug file.
symbolize_copy(gcc-linked gcc-no-build-id
               ${objcopy} --only-keep-debug gcc-no-build-id gcc-linked.debug
               ${objcopy} --strip-all --add-gnu-debuglink=gcc-linked.debug gcc-no-build-id
               gcc-linked)
# As if dwz had moved what this file and others have in common to a file gcc-sharing: its name, then its build-id.
symbolize_copy(gcc-shared gcc
               COMMAND ${Python3_EXECUTABLE} -c "open('sharing', 'wb').write(b'gcc-sharing\\0' + bytes(20))"
               ${objcopy} --add-section .gnu_debugaltlink=sharing gcc gcc-shared)
symbolize_copy(gcc-only-debug gcc ${objcopy} --only-keep-debug gcc gcc-only-debug)
if(GPUMEM_XZ)
  symbolize_copy(gcc-mini-symbols gcc
                 ${objcopy} --strip-debug --remove-section=.comment gcc mini-symbols
                 COMMAND ${GPUMEM_XZ} --force mini-symbols
                 ${objcopy} --strip-all --add-section .gnu_debugdata=mini-symbols.xz gcc
                 gcc-mini-symbols)
endif()

add_custom_target(symbolize_samples DEPENDS ${symbolize_outputs})

add_executable(test_symbolize ${CMAKE_CURRENT_LIST_DIR}/test_symbolize.c)
target_compile_definitions(test_symbolize PRIVATE
  SAMPLES="${symbolize_samples}" SAMPLE_SOURCES="${symbolize_sources}")
target_include_directories(test_symbolize PRIVATE ${GPUMEM_TEST_SUPPORT})
target_link_libraries(test_symbolize PRIVATE gpumem_report_checked gpumem_cmocka)
add_dependencies(test_symbolize symbolize_samples)
add_test(NAME unit.symbolize COMMAND test_symbolize)
# Some of its inputs could make a faulty symbolizer wait for ever.
set_tests_properties(unit.symbolize PROPERTIES TIMEOUT 120)
