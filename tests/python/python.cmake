# Python stacks: refusals (fake interpreters), and every real interpreter found.
set(GPUMEM_PYTHON_SOURCES)
foreach(source stack/python/python stack/python/python_attach stack/python/python_lines stack/python/python_text
        stack/python/python_told stack/native/unwind_maps stack/native/stack_bounds)
  list(APPEND GPUMEM_PYTHON_SOURCES ${GPUMEM_PRELOAD_DIR}/${source}.c)
endforeach()

gpumem_unit_test(test_python SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_python.c ${GPUMEM_PYTHON_SOURCES}
                 LIBRARIES ${CMAKE_DL_LIBS})
target_include_directories(test_python PRIVATE ${GPUMEM_PRELOAD_DIR})

add_library(python_probe MODULE ${CMAKE_CURRENT_LIST_DIR}/probe.c ${GPUMEM_PYTHON_SOURCES})
set_target_properties(python_probe PROPERTIES C_VISIBILITY_PRESET hidden)
target_compile_definitions(python_probe PRIVATE _GNU_SOURCE=)
# Not -I: the compiler's own <unwind.h> is wanted there, not the preload's.
target_compile_options(python_probe PRIVATE -iquote ${GPUMEM_PRELOAD_DIR})
target_link_libraries(python_probe PRIVATE gpumem_options Threads::Threads ${CMAKE_DL_LIBS})

# An interpreter without instrumentation cannot load an instrumented library.
if(NOT GPUMEM_SANITIZE)
  add_test(NAME python_turns COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/turns.py ${PROJECT_BINARY_DIR})
  add_test(NAME python_stacks COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/run.py
                                      $<TARGET_FILE:python_probe>)
  set_tests_properties(python_stacks PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()

# Builds that are not available, made from their own headers.
add_test(NAME python_image COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/image.py ${CMAKE_C_COMPILER}
                                   ${GPUMEM_PRELOAD_DIR})
set_tests_properties(python_image PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
