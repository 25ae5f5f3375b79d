/*
 * A random call tree: functions whose frames are of every shape a compiler makes, calling each
 * other in random order and showing their stacks to the oracle on the way.
 */
#ifndef GPUMEM_TESTS_UNWIND_ORACLE_TREE_H
#define GPUMEM_TESTS_UNWIND_ORACLE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct coroutine;

struct tree {
    uint64_t random;
    unsigned depth_limit;
    unsigned calls_left;            /* of this tree; bounds its size */
    unsigned catchers;              /* of exceptions, since the last frame that none may cross */
    unsigned handlers;              /* of signals, that have not returned yet */
    bool plugin_open;               /* the plugin's functions may be on the stack */
    struct coroutine *coroutine;    /* the one running, NULL on the thread's own stack */
    void (*see)(const void *frame); /* called with each stack */
    /* what happened */
    uint64_t signals, coroutines, throws, swaps, swaps_in_place;
};

typedef void tree_function(struct tree *tree, unsigned depth);

uint64_t tree_random(struct tree *tree, uint64_t below);

/* Shows the stack from the caller outwards. */
void tree_see(struct tree *tree);

/* Calls some function of the tree, or none at the end of it. */
void tree_descend(struct tree *tree, unsigned depth);

/* One whole tree. */
void tree_grow(struct tree *tree);

/* In files of their own */
void tree_catch(struct tree *tree, unsigned depth); /* C++: catches exceptions from below */
/* C++: to be called only if someone catches */
void tree_throw(struct tree *tree) __attribute__((noreturn));
void tree_coroutine(struct tree *tree, unsigned depth); /* goes on on another stack */
void tree_yield(struct tree *tree);                     /* yields to its starter for a while */
void tree_plugin(struct tree *tree, unsigned depth);    /* through a library that comes and goes */
bool tree_plugin_open(const char *folder);
/* Where the plugin is or was, for an oracle that remembers code. */
bool tree_is_plugin(uint64_t pc);

#ifdef __cplusplus
}
#endif

#endif
