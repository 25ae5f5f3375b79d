# Programs that could notice a guest in their process. Uses gpumem_cuda_program and gpumem_e2e.
set(_guest ${CMAKE_CURRENT_LIST_DIR})
gpumem_cuda_program(guest gpumem_sim_runtime_13 ${_guest}/guest.c)
target_link_libraries(guest PRIVATE ${CMAKE_DL_LIBS})
add_library(waiting_plugin MODULE ${_guest}/waiting_plugin.c)
target_include_directories(waiting_plugin SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_compile_definitions(waiting_plugin PRIVATE _GNU_SOURCE=)
target_link_libraries(waiting_plugin PRIVATE gpumem_sim_runtime_13 Threads::Threads)
set_target_properties(waiting_plugin PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

foreach(mode descriptors_behind_generated_code generated_code_in_a_file no_standard_descriptors state_of_the_thread)
  gpumem_e2e(guest.${mode} $<TARGET_FILE:guest> ${mode})
endforeach()
gpumem_e2e(guest.constructor_that_waits $<TARGET_FILE:guest> constructor_that_waits $<TARGET_FILE:waiting_plugin>)
set_tests_properties(e2e.guest.constructor_that_waits PROPERTIES TIMEOUT 60) # a failure is a deadlock

# Threads call CUDA, with the first calls of the process among them, while a constructor or a callback over the loader's
# list waits for them. Without a guest none of this asks the loader. A failure is a deadlock.
add_library(calling_plugin MODULE ${_guest}/calling_plugin.c)
set_target_properties(calling_plugin PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
gpumem_cuda_program(loader_linked gpumem_sim_driver ${_guest}/loader.c)
target_compile_definitions(loader_linked PRIVATE LINKED)
add_executable(loader_opened ${_guest}/loader.c)
target_include_directories(loader_opened SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
target_compile_definitions(loader_opened PRIVATE _GNU_SOURCE=)
target_link_libraries(loader_opened PRIVATE Threads::Threads)
set_target_properties(loader_opened PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
foreach(_program loader_linked loader_opened)
  set_target_properties(${_program} PROPERTIES ENABLE_EXPORTS ON) # the plugin calls back
  target_link_libraries(${_program} PRIVATE ${CMAKE_DL_LIBS})
  gpumem_e2e(guest.${_program}.constructor $<TARGET_FILE:${_program}> constructor $<TARGET_FILE:calling_plugin>)
  gpumem_e2e(guest.${_program}.listing $<TARGET_FILE:${_program}> listing)
  set_tests_properties(e2e.guest.${_program}.constructor e2e.guest.${_program}.listing PROPERTIES TIMEOUT 120)
endforeach()
gpumem_e2e(guest.set_ids.loader $<TARGET_FILE:loader_opened> set_ids)

gpumem_cuda_program(guest_threads gpumem_sim_runtime_13 ${_guest}/threads.c)
foreach(mode main_leaves main_leaves_early main_leaves_by_system_call bound_thread worker_ends_first)
  gpumem_e2e(guest.threads.${mode} $<TARGET_FILE:guest_threads> ${mode})
  set_tests_properties(e2e.guest.threads.${mode} PROPERTIES TIMEOUT 120) # a process that never ends
endforeach()
foreach(thread drainer nvml)
  add_test(NAME e2e.guest.set_ids.${thread} COMMAND ${GPUMEM_E2E_RUN}
           --env LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/sim:${PROJECT_BINARY_DIR}/sim/nvml
           -- $<TARGET_FILE:guest_threads> set_ids_beside_${thread})
endforeach()
add_test(NAME e2e.guest.set_ids.python COMMAND ${GPUMEM_E2E_RUN}
         --env LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/sim:${PROJECT_BINARY_DIR}/sim/nvml
         -- ${Python3_EXECUTABLE} ${_guest}/set_ids.py)

# Thread-local memory that fills the stack of a thread of a megabyte, but for some KiB, and more than that.
foreach(_bytes 1000000 1036000 1040000 1044000 16000000)
  gpumem_cuda_program(guest_tls_${_bytes} gpumem_sim_runtime_13 ${_guest}/tls.c)
  target_compile_definitions(guest_tls_${_bytes} PRIVATE TLS_BYTES=${_bytes})
  gpumem_e2e(guest.tls.${_bytes} $<TARGET_FILE:guest_tls_${_bytes}>)
endforeach()

gpumem_cuda_program(guest_forks gpumem_sim_runtime_13 ${_guest}/forks.c)
if(NOT GPUMEM_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME e2e.guest.handler_that_forks COMMAND ${Python3_EXECUTABLE} ${_guest}/forks.py
           ${PROJECT_BINARY_DIR} $<TARGET_FILE:guest_forks>)
  add_library(as_if_no_wipe SHARED ${_guest}/as_if_no_wipe.c)
  target_compile_definitions(as_if_no_wipe PRIVATE _GNU_SOURCE=)
  set_target_properties(as_if_no_wipe PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME e2e.guest.handler_that_forks_unwiped COMMAND ${Python3_EXECUTABLE} ${_guest}/forks.py
           ${PROJECT_BINARY_DIR} $<TARGET_FILE:guest_forks> $<TARGET_FILE:as_if_no_wipe>)
  set_tests_properties(e2e.guest.handler_that_forks e2e.guest.handler_that_forks_unwiped PROPERTIES TIMEOUT 300)
endif()

# The recorder leaves a process alone that has rights its user lacks: it reads no environment and makes no file.
add_library(as_if_secure SHARED ${_guest}/as_if_secure.c)
target_compile_definitions(as_if_secure PRIVATE _GNU_SOURCE=)
target_link_libraries(as_if_secure PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(as_if_secure PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME e2e.guest.secure COMMAND ${GPUMEM_E2E_RUN} --expect-no-trace --preload $<TARGET_FILE:as_if_secure>
         --preload $<TARGET_FILE:gpumem_preload> -- $<TARGET_FILE:life> quiet_child)
gpumem_cuda_program(guest_secure gpumem_sim_driver ${_guest}/secure.c)
add_dependencies(guest_secure gpumem_preload)
target_link_options(guest_secure PRIVATE -Wl,--no-as-needed $<TARGET_FILE:gpumem_preload>)
set_target_properties(guest_secure PROPERTIES
  BUILD_RPATH "$<TARGET_FILE_DIR:gpumem_preload>;$<TARGET_FILE_DIR:gpumem_sim_driver>")
if(NOT GPUMEM_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME e2e.guest.set_user_id COMMAND ${Python3_EXECUTABLE} ${_guest}/secure.py $<TARGET_FILE:guest_secure>)
  set_tests_properties(e2e.guest.set_user_id PROPERTIES SKIP_RETURN_CODE 77)
endif()

# What a process that never calls CUDA has of the recorder. Sanitizers and emulators have memory of their own.
add_executable(locks_memory ${_guest}/locks_memory.c)
target_compile_definitions(locks_memory PRIVATE _GNU_SOURCE=)
set_target_properties(locks_memory PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
if(NOT GPUMEM_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME e2e.guest.locks_memory COMMAND ${GPUMEM_E2E_RUN} --expect-no-trace -- $<TARGET_FILE:locks_memory>)
endif()

# Allocators that are common in training, preloaded before and after gpumem. scripts/bootstrap installs the first; the
# others are tested where they are installed. Sanitizers have an allocator of their own.
foreach(_allocator jemalloc.so.2 tcmalloc_minimal.so.4 mimalloc.so.2)
  find_library(GPUMEM_TEST_${_allocator} lib${_allocator})
  set(_library ${GPUMEM_TEST_${_allocator}})
  string(REGEX REPLACE "\\..*" "" _name ${_allocator})
  if(_library AND NOT GPUMEM_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME e2e.guest.${_name}_before COMMAND ${GPUMEM_E2E_RUN} --preload ${_library}
             --preload $<TARGET_FILE:gpumem_preload> -- $<TARGET_FILE:life> threads_end)
    add_test(NAME e2e.guest.${_name}_behind COMMAND ${GPUMEM_E2E_RUN} --preload $<TARGET_FILE:gpumem_preload>
             --preload ${_library} -- $<TARGET_FILE:life> threads_end)
  endif()
endforeach()
