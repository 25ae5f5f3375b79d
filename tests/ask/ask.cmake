# `gpumem ask`, and the MCP server that is made of it.
if(NOT GPUMEM_SANITIZE AND NOT GPUMEM_COVERAGE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME ask COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_ask.py ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  add_test(NAME ask.mcp COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_mcp.py ${PROJECT_BINARY_DIR}
           ${PROJECT_SOURCE_DIR} ${GPUMEM_PACKAGES})
  gpumem_needs_packages(ask.mcp)
  set_tests_properties(ask ask.mcp PROPERTIES TIMEOUT 300)
  set_tests_properties(ask.mcp PROPERTIES SKIP_RETURN_CODE 77)
endif()
