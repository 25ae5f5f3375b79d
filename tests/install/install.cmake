# What users get: the installed tree, the wheel, and the commands that the documentation shows.
if(NOT GPUMEM_SANITIZE AND NOT GPUMEM_COVERAGE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME install.tree COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/installed.py ${PROJECT_BINARY_DIR})
  add_test(NAME install.portable COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/portable.py ${PROJECT_BINARY_DIR})
  add_test(NAME install.documented
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/documented.py ${PROJECT_BINARY_DIR})
  add_test(NAME install.reach COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/reach.py ${PROJECT_BINARY_DIR})
  set_tests_properties(install.portable PROPERTIES TIMEOUT 900)
endif()
