# The simulator and api.table against what NVIDIA's drivers were seen to do; `make test-genuine` looks at them.
add_executable(genuine_probe ${CMAKE_CURRENT_LIST_DIR}/probe.c)
target_link_libraries(genuine_probe PRIVATE ${CMAKE_DL_LIBS} -no-pie) # addresses of its arguments are the same each time
target_compile_options(genuine_probe PRIVATE -fno-pie)
add_library(genuine_questions MODULE ${CMAKE_CURRENT_LIST_DIR}/questions.c)
target_link_libraries(genuine_questions PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(genuine_questions PROPERTIES PREFIX "")
add_test(NAME genuine.interface COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_interface.py
         ${PROJECT_BINARY_DIR} $<TARGET_FILE:genuine_probe>)
