# The recorder without hooks: what it writes is read back by the report's own reader.
# Left out is what stands in the way of the program's own calls, and the stack, which the tests say themselves.
set(_core ${GPUMEM_PRELOAD_SOURCES} ${GPUMEM_PRELOAD_VALIDATORS})
list(FILTER _core EXCLUDE REGEX "interpose/(dlclose|dlsym|get_proc_address|injection)|process/(ends|fork)|stack/stack\\.c")
list(FILTER _core EXCLUDE REGEX "sources/(nvtx\\.c|torch|inside)")
list(TRANSFORM _core PREPEND ${GPUMEM_PRELOAD_DIR}/)
get_target_property(_made gpumem_preload BINARY_DIR)
add_library(recorder_for_tests OBJECT ${_core} ${GPUMEM_PRELOAD_DIR}/base/lock_order.c
  ${CMAKE_CURRENT_LIST_DIR}/fake.c)
target_compile_definitions(recorder_for_tests PRIVATE _GNU_SOURCE= GPUMEM_CHECK_LOCKS GPUMEM_CHECKED)
target_include_directories(recorder_for_tests PRIVATE ${GPUMEM_PRELOAD_DIR}
                           ${_made}) # version.h
target_link_libraries(recorder_for_tests PRIVATE gpumem_options)

gpumem_unit_test(test_recorder
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_recorder.c ${CMAKE_CURRENT_LIST_DIR}/scene.c
          $<TARGET_OBJECTS:recorder_for_tests>
  LIBRARIES gpumem_report_checked)
target_include_directories(test_recorder PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR}
  ${CMAKE_CURRENT_LIST_DIR})
target_link_options(test_recorder PRIVATE # tests refuse the drainer its thread, and close descriptors
  -Wl,--wrap=pthread_create,--wrap=syscall)

gpumem_unit_test(test_calls
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_calls.c ${CMAKE_CURRENT_LIST_DIR}/scene.c
          $<TARGET_OBJECTS:recorder_for_tests>
  LIBRARIES gpumem_report_checked)
target_include_directories(test_calls PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR}
  ${CMAKE_CURRENT_LIST_DIR})
target_link_options(test_calls PRIVATE -Wl,--wrap=pthread_create)

gpumem_unit_test(test_limits
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_limits.c ${CMAKE_CURRENT_LIST_DIR}/scene.c
          $<TARGET_OBJECTS:recorder_for_tests>
  LIBRARIES gpumem_report_checked)
target_include_directories(test_limits PRIVATE ${PROJECT_SOURCE_DIR} ${GPUMEM_PRELOAD_DIR}
  ${CMAKE_CURRENT_LIST_DIR})
target_link_options(test_limits PRIVATE -Wl,--wrap=pthread_create,--wrap=syscall) # threads that never end
add_test(NAME unit.limits COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/limits.py ${PROJECT_SOURCE_DIR})

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT GPUMEM_SANITIZE)
  add_test(NAME shadow_stack COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/shadow_stack.py
           $<TARGET_FILE:gpumem_preload>)
endif()

# What a forked child finds in the library's variables. Sanitizers add variables of their own.
if(NOT GPUMEM_SANITIZE AND NOT GPUMEM_WHY AND NOT GPUMEM_CHECKED)
  add_test(NAME unit.statics COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/statics.py
           $<TARGET_FILE:gpumem_preload> ${GPUMEM_PRELOAD_DIR} ${CMAKE_CURRENT_LIST_DIR}/statics.list)
endif()

# The order of the locks, which all tests with recorder_for_tests check besides.
gpumem_unit_test(test_lock_order SOURCES ${CMAKE_CURRENT_LIST_DIR}/../base/test_lock_order.c
                 ${GPUMEM_PRELOAD_DIR}/base/lock_order.c ${GPUMEM_PRELOAD_DIR}/base/change.c
                 ${GPUMEM_PRELOAD_DIR}/base/process_state.c)
target_compile_definitions(test_lock_order PRIVATE GPUMEM_CHECK_LOCKS)
target_include_directories(test_lock_order PRIVATE ${GPUMEM_PRELOAD_DIR})

gpumem_unit_test(test_why SOURCES ${CMAKE_CURRENT_LIST_DIR}/../writer/test_why.c ${GPUMEM_PRELOAD_DIR}/writer/why.c
                 ${GPUMEM_PRELOAD_DIR}/base/lock_order.c ${GPUMEM_PRELOAD_DIR}/base/process_state.c)
target_compile_definitions(test_why PRIVATE GPUMEM_WHY GPUMEM_CHECK_LOCKS)
target_include_directories(test_why PRIVATE ${GPUMEM_PRELOAD_DIR})

# What is read of PyTorch's structure of a block.
gpumem_unit_test(test_torch_block SOURCES ${CMAKE_CURRENT_LIST_DIR}/../sources/test_torch_block.c
                 ${GPUMEM_PRELOAD_DIR}/sources/torch_block.c ${GPUMEM_PRELOAD_DIR}/stack/native/stack_bounds.c
                 ${GPUMEM_PRELOAD_DIR}/stack/native/unwind_maps.c)
target_include_directories(test_torch_block PRIVATE ${GPUMEM_PRELOAD_DIR})

gpumem_unit_test(test_environment SOURCES ${CMAKE_CURRENT_LIST_DIR}/../base/test_environment.c
                 ${GPUMEM_PRELOAD_DIR}/base/environment.c)
target_include_directories(test_environment PRIVATE ${GPUMEM_PRELOAD_DIR})
target_link_options(test_environment PRIVATE -Wl,--wrap=syscall) # the kernel refuses
