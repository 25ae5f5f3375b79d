# The recipes of docs/gate-in-tests.md; the pytest plugin, with pytest and pytest-xdist as pip has them.
if(NOT GPUMEM_SANITIZE AND NOT GPUMEM_COVERAGE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME e2e.inside.recipes COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/recipes.py
           ${PROJECT_BINARY_DIR} ${GPUMEM_CUDA_INCLUDE})
  add_test(NAME pytest.plugin COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/plugin.py ${PROJECT_BINARY_DIR}
           ${GPUMEM_PACKAGES})
  gpumem_needs_packages(pytest.plugin)
  set_tests_properties(pytest.plugin PROPERTIES TIMEOUT 900)
endif()
