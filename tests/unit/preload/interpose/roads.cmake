# test_roads: the roads of the preload with a small table, together with other tools.
set(ROADS ${CMAKE_CURRENT_LIST_DIR}/roads)
set(ROADS_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/roads)

# roads_target(name SOURCES.. [DEFINE..] [LINK libraries..] [OPTIONS compile options..])
function(roads_target kind name)
  cmake_parse_arguments(arg "" "MAP" "SOURCES;DEFINE;LINK;OPTIONS" ${ARGN})
  if(kind STREQUAL PROGRAM)
    add_executable(${name} ${arg_SOURCES})
  else()
    add_library(${name} SHARED ${arg_SOURCES})
  endif()
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${ROADS_FOLDER}
    RUNTIME_OUTPUT_DIRECTORY ${ROADS_FOLDER} POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(${name} PRIVATE ${arg_DEFINE})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_link_libraries(${name} PRIVATE gpumem_options ${arg_LINK} ${CMAKE_DL_LIBS})
  if(arg_MAP)
    target_link_options(${name} PRIVATE -Wl,--version-script=${ROADS}/${arg_MAP})
  endif()
endfunction()

function(roads_soname name soname)
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${soname} NO_SONAME ON)
  target_link_options(${name} PRIVATE -Wl,-soname,${soname})
endfunction()

roads_target(LIBRARY roads_driver SOURCES ${ROADS}/fake_driver.c)
roads_soname(roads_driver libcuda.so.1)
roads_target(LIBRARY odd_driver SOURCES ${ROADS}/fake_driver.c DEFINE BASE=50000)
foreach(driver roads_driver odd_driver) # as the real one: its pointers are to its own functions
  target_link_options(${driver} PRIVATE -Wl,-Bsymbolic)
endforeach()

foreach(major 12 13)
  roads_target(LIBRARY roads_runtime_${major} SOURCES ${ROADS}/fake_runtime.c DEFINE NUMBER=${major}
    MAP runtime_${major}.map)
  roads_soname(roads_runtime_${major} libcudart.so.${major})
  roads_target(LIBRARY plugin_${major} SOURCES ${ROADS}/plugin.c LINK roads_runtime_${major})
endforeach()

roads_target(LIBRARY chain_first SOURCES ${ROADS}/chain.c)
roads_target(LIBRARY chain_last SOURCES ${ROADS}/chain.c DEFINE LAST)
roads_target(LIBRARY other_tool SOURCES ${ROADS}/other_tool.c)
roads_target(LIBRARY early SOURCES ${ROADS}/early.c)
roads_target(LIBRARY interposer_next SOURCES ${ROADS}/interposer.c DEFINE BY_NEXT)
roads_target(LIBRARY interposer_handle SOURCES ${ROADS}/interposer.c DEFINE BY_HANDLE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES aarch64)
  set(_dlsym_version GLIBC_2.17)
else()
  set(_dlsym_version GLIBC_2.2.5)
endif()
roads_target(LIBRARY interposer_dlsym SOURCES ${ROADS}/interposer.c
  DEFINE BY_DLSYM DLSYM_VERSION="${_dlsym_version}")

set(_interpose ${GPUMEM_PRELOAD_SOURCES})
list(FILTER _interpose INCLUDE REGEX "^interpose/|^loader/|^base/(change|count|process_state)")
list(TRANSFORM _interpose PREPEND ${GPUMEM_PRELOAD_DIR}/)

# The roads with both ways in which compilers treat a tail call.
foreach(level O0 O2)
  foreach(copy us us_again)
    roads_target(LIBRARY ${copy}_${level} MAP library.map OPTIONS -${level} -fvisibility=hidden
      SOURCES ${ROADS}/fake_table.c ${_interpose})
    target_include_directories(${copy}_${level} PRIVATE ${GPUMEM_PRELOAD_DIR})
    target_link_options(${copy}_${level} PRIVATE -Wl,-Bsymbolic-functions -Wl,-z,defs)
  endforeach()
endforeach()

roads_target(PROGRAM probe SOURCES ${ROADS}/probe.c LINK Threads::Threads)
roads_target(PROGRAM probe_linked SOURCES ${ROADS}/probe.c DEFINE LINKED
  LINK Threads::Threads roads_driver roads_runtime_13)
# Not position independent: an imported function's address is a place in the program. Bound at start: the loader then
# write-protects the imports.
roads_target(PROGRAM probe_fixed SOURCES ${ROADS}/probe.c DEFINE LINKED OPTIONS -fno-pie
  LINK Threads::Threads roads_driver roads_runtime_13)
set_target_properties(probe_fixed PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_link_options(probe_fixed PRIVATE -no-pie -Wl,-z,relro -Wl,-z,now)

gpumem_unit_test(test_roads SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_roads.c)
target_compile_definitions(test_roads PRIVATE ROADS_FOLDER="${ROADS_FOLDER}")
add_dependencies(test_roads roads_driver odd_driver roads_runtime_12 roads_runtime_13 plugin_12 plugin_13
  chain_first chain_last early other_tool interposer_next interposer_handle interposer_dlsym us_O0 us_O2 us_again_O0
  us_again_O2 probe probe_linked probe_fixed)
