# Every road from a program to the driver, once each. Uses gpumem_cuda_program and gpumem_e2e.
set(_roads ${CMAKE_CURRENT_LIST_DIR})

gpumem_cuda_program(road_runtime gpumem_sim_runtime_13 ${_roads}/runtime_road.c)
gpumem_cuda_program(road_runtime_static gpumem_sim_runtime_static ${_roads}/runtime_road.c)
target_link_libraries(road_runtime_static PRIVATE ${CMAKE_DL_LIBS} m)
gpumem_e2e(road.runtime $<TARGET_FILE:road_runtime>)
gpumem_e2e(road.runtime_static $<TARGET_FILE:road_runtime_static>)
gpumem_cuda_program(road_dlvsym ${CMAKE_DL_LIBS} ${_roads}/runtime_road.c)
target_compile_definitions(road_dlvsym PRIVATE ROAD_DLVSYM)
gpumem_e2e(road.dlvsym $<TARGET_FILE:road_dlvsym>)

foreach(road LINKED DLSYM PROC PROC_OLD PROC_SELF PER_THREAD ENTRY_POINT)
  string(TOLOWER ${road} name)
  if(road MATCHES "DLSYM|PROC_OLD")
    set(_library ${CMAKE_DL_LIBS})
  elseif(road STREQUAL ENTRY_POINT)
    set(_library gpumem_sim_runtime_13)
  else()
    set(_library gpumem_sim_driver)
  endif()
  gpumem_cuda_program(road_${name} "${_library}" ${_roads}/driver_road.c)
  target_compile_definitions(road_${name} PRIVATE ROAD_${road})
  gpumem_e2e(road.${name} $<TARGET_FILE:road_${name}>)
endforeach()

# ABIs that the table does not know.
gpumem_cuda_program(newer_abi gpumem_sim_runtime_13 ${_roads}/newer_abi.c)
target_link_libraries(newer_abi PRIVATE ${CMAKE_DL_LIBS})
gpumem_cuda_program(newer_abi_linked gpumem_sim_runtime_13 ${_roads}/newer_abi.c)
target_link_libraries(newer_abi_linked PRIVATE ${CMAKE_DL_LIBS} gpumem_sim_driver)
target_compile_definitions(newer_abi_linked PRIVATE LINKED)
add_test(NAME e2e.road.newer_abi COMMAND ${Python3_EXECUTABLE} ${_roads}/newer_abi.py ${PROJECT_BINARY_DIR})

add_executable(plugin_host ${_roads}/plugin_host.c)
target_compile_options(plugin_host PRIVATE -g -O0)
target_link_libraries(plugin_host PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(plugin_host PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
foreach(major 12 13)
  add_library(road_plugin_${major} MODULE ${_roads}/plugin_road.c)
  target_include_directories(road_plugin_${major} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_compile_options(road_plugin_${major} PRIVATE -g -O0)
  target_compile_definitions(road_plugin_${major} PRIVATE PLUGIN_BYTES=${major}000)
  target_link_libraries(road_plugin_${major} PRIVATE gpumem_sim_runtime_${major})
  set_target_properties(road_plugin_${major} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()

set(_plugins $<TARGET_FILE:road_plugin_12> $<TARGET_FILE:road_plugin_13>)
gpumem_e2e(road.plugin_local $<TARGET_FILE:plugin_host> local $<TARGET_FILE:road_plugin_13>)
gpumem_e2e(road.plugin_global $<TARGET_FILE:plugin_host> global $<TARGET_FILE:road_plugin_13>)
gpumem_e2e(road.plugins_of_two_runtimes $<TARGET_FILE:plugin_host> local ${_plugins})
gpumem_e2e(road.plugins_beyond_the_table $<TARGET_FILE:plugin_host> crowd ${_plugins})
# The loader hides these from us: the program must run as before, and the report says so.
foreach(mode deepbind namespace)
  add_test(NAME e2e.road.plugin_${mode} COMMAND ${GPUMEM_E2E_RUN} --expect-bypassed --
           $<TARGET_FILE:plugin_host> ${mode} $<TARGET_FILE:road_plugin_13>)
endforeach()

gpumem_e2e(road.ctypes ${Python3_EXECUTABLE} ${_roads}/ctypes_road.py)

# NVIDIA's own runtime, where there is one. It refuses the simulated driver, with the preload as without.
add_test(NAME e2e.road.real_runtime COMMAND ${Python3_EXECUTABLE} ${_roads}/real_runtime.py ${PROJECT_BINARY_DIR}
         ${CMAKE_C_COMPILER} ${GPUMEM_CUDA_INCLUDE})
set_tests_properties(e2e.road.real_runtime PROPERTIES SKIP_RETURN_CODE 77)
