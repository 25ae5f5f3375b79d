/*
 * A recorder and a CUDA of the tests' own around the generated hooks: what the hooks commit is kept
 * in a list, what they forward to is what the test says.
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

#include <cmocka.h> /* needs what stands above */

#include "assert_between.h"

/* Real functions of tests look at few of their parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REAL_ERRNO 4711 /* what every real function leaves in errno */
#define FAKE_NS 1234    /* how long every copy takes */

/* Record number `index`, in the order of their commits. A DETAIL is a record too. */
const struct gm_record *record_at(uint32_t index);
uint32_t record_count(void);
uint64_t counted(enum gm_counter counter); /* of the trace's header */

/* Forgets records, contexts, pools and so on; every call succeeds again. */
int start_over(void **unused);

/* Whether the process is recorded; true until said otherwise. */
void set_recorded(bool recorded);

/* The function that hook `api` forwards to; NULL: there is none. */
void set_real(uint16_t api, void *function);

/* To be called by real functions: notes how many records there were, disturbs errno and returns
 * what the test wants. */
int real_called(void);
extern int real_result;          /* the next real calls return this */
extern uint32_t calls;           /* real calls made */
extern uint32_t records_at_call; /* records committed when the last real call was made */

/* Defines a real function; what follows the parameters runs when the call succeeds. */
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
