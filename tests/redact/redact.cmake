# What --redact leaves out of every output.
add_test(NAME redact COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_redact.py ${PROJECT_BINARY_DIR})
