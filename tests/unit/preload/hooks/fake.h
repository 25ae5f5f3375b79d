/*
 * The tests' own recorder and CUDA around the generated hooks: a list keeps the records that the
 * hooks commit, and the test chooses the functions to which they forward.
 */
#ifndef GPUMEM_TESTS_HOOKS_FAKE_H
#define GPUMEM_TESTS_HOOKS_FAKE_H

#include "gm_api.h"
#include "hooks/effects.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* needs the headers above */

#include "assert_between.h"

/* Real functions of tests look at few of their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REAL_ERRNO 4711 /* the errno that every real function leaves */
#define FAKE_NS 1234    /* the duration of every call that is timed */

/* Record number `index`, in the order of their commits. A DETAIL is a record too. */
const struct gm_record *record_at(uint32_t index);
uint32_t record_count(void);
uint64_t counted(enum gm_counter counter); /* of the trace's header */

/* Forgets records, contexts, pools and so on; every call succeeds again. */
int start_over(void **unused);

/* Sets whether the process is recorded, which it is at first. */
void calls_are_fast(uint16_t calls_left); /* so many are not timed that take memory */
void set_recorded(bool recorded);

/* Sets the function to which hook `api` forwards; NULL: there is none. */
void set_real(uint16_t api, void *function);

/* Real functions call this: it notes the number of records, changes errno and returns the result
 * that the test has set. */
int real_called(void);
extern int real_result;          /* the next real calls return this */
extern uint32_t calls;           /* real calls made */
extern uint32_t records_at_call; /* records committed when the last real call was made */

/* Defines a real function; the code after the parameters runs if the call succeeds. */
#define REAL(type, name, parameters, ...)                                                          \
    static type real_##name parameters                                                             \
    {                                                                                              \
        int result = real_called();                                                                \
        if (result == 0) {                                                                         \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        return (type)result;                                                                       \
    }
#define USE(name) set_real(GM_API_##name, (void *)real_##name)

/* Fails at the caller's line unless record `index` has this type, address and size. */
#define assert_record(index, type_, address_, size_)                                               \
    do {                                                                                           \
        assert_between((index) + 1, 1, record_count());                                            \
        assert_int_equal(record_at(index)->type, type_);                                           \
        assert_int_equal(record_at(index)->address, (uint64_t)(uintptr_t)(address_));              \
        assert_int_equal(record_at(index)->size, size_);                                           \
    } while (0)

#endif
