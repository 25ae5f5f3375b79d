# End-to-end: each program runs without and with the preload, and its report is held against the oracle.
set(GPUMEM_E2E_RUN ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/run.py --build ${PROJECT_BINARY_DIR})

# gpumem_e2e(name COMMAND...): one program under the harness.
function(gpumem_e2e name)
  add_test(NAME e2e.${name} COMMAND ${GPUMEM_E2E_RUN} -- ${ARGN})
endfunction()

# gpumem_cuda_program(name LIBRARY SOURCES...): a C program linked to the simulated runtime or driver.
# -O0: the line of a call is the line of its return address.
function(gpumem_cuda_program name library)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_compile_options(${name} PRIVATE -g -O0)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE=)
  target_link_libraries(${name} PRIVATE ${library} Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endfunction()

gpumem_cuda_program(training_loop gpumem_sim_runtime_13 ${CMAKE_CURRENT_SOURCE_DIR}/demo/training_loop.c)
gpumem_cuda_program(training_loop_edited gpumem_sim_runtime_13 ${CMAKE_CURRENT_SOURCE_DIR}/demo/training_loop.c)
target_link_options(training_loop_edited PRIVATE -Wl,--build-id=sha1,-T,${CMAKE_CURRENT_SOURCE_DIR}/demo/edited.ld)
gpumem_cuda_program(families gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/programs/families.c)
gpumem_cuda_program(keep gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/life/keep.c)

include(${CMAKE_CURRENT_LIST_DIR}/random/random.cmake)

gpumem_cuda_program(life gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/life/life.c)

gpumem_cuda_program(named gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/life/named.c)
add_test(NAME e2e.life.named COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/life/named.py ${PROJECT_BINARY_DIR})

gpumem_cuda_program(environment gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/life/environment.c)
if(NOT GPUMEM_SANITIZE AND NOT CMAKE_CROSSCOMPILING) # Python loads no instrumented library
  add_test(NAME e2e.life.environment COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/life/environment.py
           ${PROJECT_BINARY_DIR})
endif()

gpumem_cuda_program(driver_families gpumem_sim_driver ${CMAKE_CURRENT_LIST_DIR}/programs/driver_families.c)
add_test(NAME e2e.driver_families COMMAND ${GPUMEM_E2E_RUN} --env GPUMEM_SIM_DEVICES=2 -- $<TARGET_FILE:driver_families>)
gpumem_cuda_program(objects gpumem_sim_driver ${CMAKE_CURRENT_LIST_DIR}/programs/objects.c)
foreach(_flight full flight)
  foreach(_mode pools green sparse external_events)
    add_test(NAME e2e.objects.${_mode}.${_flight}
             COMMAND ${GPUMEM_E2E_RUN} --env GPUMEM_MODE=${_flight} -- $<TARGET_FILE:objects> ${_mode})
  endforeach()
  foreach(_mode contexts_race graphs_race pools_race)
    add_test(NAME e2e.objects.${_mode}.${_flight}
             COMMAND ${GPUMEM_E2E_RUN} --racing --env GPUMEM_MODE=${_flight} -- $<TARGET_FILE:objects> ${_mode})
  endforeach()
endforeach()
gpumem_cuda_program(cuda_13 gpumem_sim_driver ${CMAKE_CURRENT_LIST_DIR}/programs/cuda_13.c)
target_include_directories(cuda_13 PRIVATE ${PROJECT_SOURCE_DIR}/sim/driver)
foreach(_version "" 13040 13050) # linked, and asked for at that version
  add_test(NAME e2e.cuda_13.${_version} COMMAND ${GPUMEM_E2E_RUN} --env GPUMEM_SIM_DEVICES=2
           --env GPUMEM_SIM_DRIVER_VERSION=13050 -- $<TARGET_FILE:cuda_13> ${_version})
endforeach()
gpumem_e2e(families $<TARGET_FILE:families>)
gpumem_cuda_program(plugin_swap gpumem_sim_driver ${CMAKE_CURRENT_LIST_DIR}/programs/plugin_swap.c)
target_link_libraries(plugin_swap PRIVATE ${CMAKE_DL_LIBS})
foreach(_name first other)
  add_library(plugin_swap_${_name} MODULE ${CMAKE_CURRENT_LIST_DIR}/programs/plugin_swap_library.c)
  target_include_directories(plugin_swap_${_name} SYSTEM PRIVATE ${GPUMEM_CUDA_INCLUDE})
  target_compile_options(plugin_swap_${_name} PRIVATE -g -O0)
  target_compile_definitions(plugin_swap_${_name} PRIVATE ALLOCATE=allocate_in_${_name})
  target_link_libraries(plugin_swap_${_name} PRIVATE gpumem_sim_driver)
  set_target_properties(plugin_swap_${_name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()
gpumem_e2e(plugin_swap $<TARGET_FILE:plugin_swap> $<TARGET_FILE:plugin_swap_first> $<TARGET_FILE:plugin_swap_other>)
add_executable(flip_bits ${CMAKE_CURRENT_LIST_DIR}/life/flip_bits.c)
target_compile_definitions(flip_bits PRIVATE _GNU_SOURCE=)
target_link_libraries(flip_bits PRIVATE gpumem_report)
set_target_properties(flip_bits PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
gpumem_tries(_tries 8000 40000)
add_test(NAME e2e.flipped_bits
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/life/flip_bits.py ${PROJECT_BINARY_DIR} ${_tries})
add_test(NAME e2e.no_cuda COMMAND ${GPUMEM_E2E_RUN} --expect-no-trace -- /bin/sh -c "ls / > /dev/null; echo quiet")
add_test(NAME e2e.loss COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/life/loss.py ${PROJECT_BINARY_DIR})
foreach(mode closed_descriptors descriptor_numbers threads_end quiet_child exit_handler)
  gpumem_e2e(life.${mode} $<TARGET_FILE:life> ${mode})
endforeach()
# The smallest ring: every few calls it is full, and the thread packs it itself.
add_test(NAME e2e.life.small_ring COMMAND ${GPUMEM_E2E_RUN} --env GPUMEM_RING=4K -- $<TARGET_FILE:life> threads_end)
add_test(NAME e2e.life.early COMMAND ${GPUMEM_E2E_RUN} --env LIFE_EARLY=1 -- $<TARGET_FILE:life>)
add_test(NAME e2e.cli COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/cli/cli.py ${PROJECT_BINARY_DIR})
add_test(NAME e2e.random COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/random/random_runs.py
         ${PROJECT_BINARY_DIR} --count 1000 --jobs 2 --coverage)
add_test(NAME e2e.race COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/random/random_runs.py
         ${PROJECT_BINARY_DIR} --racing --count 200 --jobs 2)
# Flight recorder: areas so small that the history is overwritten many times.
add_test(NAME e2e.flight.random COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/random/random_runs.py
         ${PROJECT_BINARY_DIR} --flight 72K --steps 4000 --count 150 --jobs 2)
add_test(NAME e2e.flight.long COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/random/random_runs.py
         ${PROJECT_BINARY_DIR} --flight 256K --steps 20000 --count 20 --jobs 2)
add_test(NAME e2e.flight.race COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/random/random_runs.py
         ${PROJECT_BINARY_DIR} --flight 256K --steps 3000 --racing --count 40 --jobs 2)
gpumem_cuda_program(churn gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/flight/churn.c)
add_test(NAME e2e.flight.churn COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/flight/flight.py ${PROJECT_BINARY_DIR})
add_test(NAME e2e.flight.limits COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/flight/limits.py ${PROJECT_BINARY_DIR})
# The loss matrix once more: no ending may cost a flight trace its live allocations.
add_test(NAME e2e.flight.loss COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/life/loss.py ${PROJECT_BINARY_DIR})
set_tests_properties(e2e.flight.loss PROPERTIES ENVIRONMENT "GPUMEM_MODE=flight;GPUMEM_FLIGHT_SIZE=4M;GPUMEM_RING=4K")
# By the debug build, which asserts, and the report that does.
if(TARGET gpumem_preload_why)
  set(_checked_preload $<TARGET_FILE:gpumem_preload_why>)
else()
  set(_checked_preload $<TARGET_FILE:gpumem_preload>)
endif()
set_tests_properties(e2e.random e2e.race e2e.flight.random e2e.flight.long e2e.flight.race PROPERTIES TIMEOUT 1200 PROCESSORS 2
  ENVIRONMENT "GPUMEM_TEST_PRELOAD=${_checked_preload};GPUMEM_TEST_REPORT=$<TARGET_FILE:gpumem_checked>")
add_test(NAME e2e.nvml COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/nvml/nvml.py ${PROJECT_BINARY_DIR})
add_test(NAME e2e.nvml.python COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/nvml/nvml.py ${PROJECT_BINARY_DIR} python)
include(${CMAKE_CURRENT_LIST_DIR}/diff/diff.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/endings/endings.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/extremes/extremes.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/findings/findings.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/gate/gate.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/guest/guest.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/libraries/libraries.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/limits/limits.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/inside/inside.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/place/place.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/refusals/refusals.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/roads/roads.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/stub/stub.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/why/why.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/xla/xla.cmake)
