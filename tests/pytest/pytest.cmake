# The recipes of docs/gate-in-tests.md; the pytest plugin, with pytest and pytest-xdist as pip has them.
set(_packages ${CMAKE_BINARY_DIR}/pytest_packages)
if(NOT EXISTS ${_packages}/tried)
  message(STATUS "Taking pytest and pytest-xdist from pip")
  execute_process(COMMAND python3 -m pip install -q --disable-pip-version-check --target ${_packages} pytest pytest-xdist
                  RESULT_VARIABLE _result)
  file(WRITE ${_packages}/tried "")
endif()
if(NOT GPUMEM_SANITIZE AND NOT GPUMEM_COVERAGE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME e2e.inside.recipes COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/recipes.py
           ${PROJECT_BINARY_DIR} ${GPUMEM_CUDA_INCLUDE})
  add_test(NAME pytest.plugin COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/plugin.py ${PROJECT_BINARY_DIR}
           ${_packages})
  set_tests_properties(pytest.plugin PROPERTIES TIMEOUT 900)
endif()
