# The documentation as a reader uses it: each page of docs/howto with its commands, and the links of all pages.
if(NOT GPUMEM_SANITIZE AND NOT GPUMEM_COVERAGE AND NOT CMAKE_CROSSCOMPILING)
  file(GLOB _pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/howto/*.md)
  foreach(_page ${_pages})
    get_filename_component(_name ${_page} NAME_WE)
    add_test(NAME docs.howto.${_name}
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/run_page.py ${PROJECT_BINARY_DIR} ${_page})
    set_tests_properties(docs.howto.${_name} PROPERTIES SKIP_REGULAR_EXPRESSION ": SKIP: " TIMEOUT 600)
  endforeach()
  add_test(NAME docs.runner COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_runner.py ${PROJECT_BINARY_DIR})
  add_test(NAME docs.ci COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_ci.py ${PROJECT_BINARY_DIR})
  set_tests_properties(docs.ci PROPERTIES SKIP_REGULAR_EXPRESSION ": SKIP: ")
  add_test(NAME docs.links COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_links.py)
endif()
