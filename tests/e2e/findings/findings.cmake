# Realistic programs, sound and not, and the findings of their reports.
gpumem_cuda_program(findings_programs gpumem_sim_runtime_13 ${CMAKE_CURRENT_LIST_DIR}/main.c
  ${CMAKE_CURRENT_LIST_DIR}/sound.c ${CMAKE_CURRENT_LIST_DIR}/sick.c)
target_include_directories(findings_programs PRIVATE ${PROJECT_SOURCE_DIR}/include)
add_test(NAME e2e.findings COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/findings.py ${PROJECT_BINARY_DIR})
