# Realistic programs, sound and not, and the findings of their reports.
gpumem_cuda_program(findings_programs "gpumem_sim_runtime_13;gpumem_sim_driver" ${CMAKE_CURRENT_LIST_DIR}/main.c
  ${CMAKE_CURRENT_LIST_DIR}/sound.c ${CMAKE_CURRENT_LIST_DIR}/sick.c)
gpumem_cuda_program(promise_programs gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/main.c
  ${CMAKE_CURRENT_LIST_DIR}/promise_sound.c ${CMAKE_CURRENT_LIST_DIR}/promise_sick.c)
foreach(programs findings_programs promise_programs)
  target_include_directories(${programs} PRIVATE ${PROJECT_SOURCE_DIR}/include)
endforeach()
add_test(NAME e2e.findings COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/findings.py ${PROJECT_BINARY_DIR})
add_test(NAME e2e.promise COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/promise.py ${PROJECT_BINARY_DIR})
