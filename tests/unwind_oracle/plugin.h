/* A library that is built twice: the same code, but with frames of another size. */
#ifndef GPUMEM_TESTS_UNWIND_ORACLE_PLUGIN_H
#define GPUMEM_TESTS_UNWIND_ORACLE_PLUGIN_H

/* Calls function(data, depth) from a frame whose size is this build's. */
void plugin_call(void (*function)(void *data, unsigned depth), void *data, unsigned depth);

#endif
