# Checks the protocols of the ring, of the flight recorder and of the seal in every order of their steps, killed at
# each, and checks that weaker ones fail.
foreach(model ring_model flight_model seal_model)
  add_executable(${model} ${CMAKE_CURRENT_LIST_DIR}/${model}.c)
  target_compile_options(${model} PRIVATE -O2)
  target_link_libraries(${model} PRIVATE gpumem_options)
  add_test(NAME ${model} COMMAND ${model})
endforeach()
