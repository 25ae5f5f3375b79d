# The HTML page in a headless Chromium, by mouse and keyboard. Figures: test_html.py ... --figures.
add_test(NAME html.page COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/test_html.py $<TARGET_FILE:gpumem>
         ${PROJECT_SOURCE_DIR} $<TARGET_FILE:export_traces>)
set_tests_properties(html.page PROPERTIES SKIP_REGULAR_EXPRESSION "SKIP" TIMEOUT 300)
