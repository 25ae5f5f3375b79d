# The protocol of the ring in every order of its steps, killed at each; and that a weaker one fails.
add_executable(ring_model ${CMAKE_CURRENT_LIST_DIR}/ring_model.c)
target_compile_options(ring_model PRIVATE -O2)
target_link_libraries(ring_model PRIVATE gpumem_options)
add_test(NAME ring_model COMMAND ring_model)
