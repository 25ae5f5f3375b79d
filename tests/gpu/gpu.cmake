# The GPU check kit (scripts/gpu-check), tested without a GPU.
add_test(NAME gpu.kit COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_kit.py ${PROJECT_BINARY_DIR})
