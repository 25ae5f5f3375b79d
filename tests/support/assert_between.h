/* cmocka 2 deprecates assert_in_range, cmocka 1 has nothing in its place. Needs cmocka.h before it. */
#ifndef GPUMEM_TESTS_ASSERT_BETWEEN_H
#define GPUMEM_TESTS_ASSERT_BETWEEN_H

#define assert_between(value, least, most)                                                         \
    do {                                                                                           \
        const unsigned long long between_value = (unsigned long long)(value);                      \
        if (between_value < (unsigned long long)(least) ||                                         \
            between_value > (unsigned long long)(most))                                            \
            fail_msg("%s is %llu, not between %s and %s", #value, between_value, #least, #most);   \
    } while (0)

#endif
