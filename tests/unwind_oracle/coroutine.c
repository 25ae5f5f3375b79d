/*
 * Stacks that come and go: each coroutine gets new memory of a random size, and gives it back at
 * its end, so that the next one, or nothing, takes its place.
 */
#include "tree.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

struct coroutine {
    ucontext_t own;
    ucontext_t starter;
    struct tree *tree;
    unsigned depth;
    bool ended;
};

static void enter(unsigned high, unsigned low)
{
    struct coroutine *self = (struct coroutine *)(((uintptr_t)high << 32) | low);
    tree_descend(self->tree, self->depth);
    self->ended = true;
    swapcontext(&self->own, &self->starter);
}

/* Runs it until it ends or yields. Exceptions do not cross from one stack to another. */
static void resume(struct coroutine *self)
{
    struct tree *tree = self->tree;
    struct coroutine *outer = tree->coroutine;
    unsigned catchers = tree->catchers;
    tree->coroutine = self;
    tree->catchers = 0;
    swapcontext(&self->starter, &self->own);
    tree->coroutine = outer;
    tree->catchers = catchers;
}

void tree_yield(struct tree *tree)
{
    struct coroutine *self = tree->coroutine;
    unsigned catchers = tree->catchers;
    swapcontext(&self->own, &self->starter);
    tree->catchers = catchers;
}

static void run_all(struct tree *tree, unsigned depth, void *memory, size_t size)
{
    struct coroutine self = {.tree = tree, .depth = depth + 1};
    getcontext(&self.own);
    self.own.uc_stack.ss_sp = memory;
    self.own.uc_stack.ss_size = size;
    makecontext(&self.own, (void (*)(void))enter, 2, (unsigned)((uintptr_t)&self >> 32),
                (unsigned)(uintptr_t)&self);
    unsigned own_catchers = tree->catchers;
    tree->catchers = 0; /* no exception may pass: the coroutine would stay unfinished */
    while (!self.ended) {
        resume(&self);
        tree_see(tree);
        if (!self.ended && tree_random(tree, 4) == 0)
            tree_descend(tree, depth + 1);
    }
    tree->catchers = own_catchers;
}

void tree_coroutine(struct tree *tree, unsigned depth)
{
    if (tree_random(tree, 20) != 0) /* system calls: not too often */
        return;
    size_t size = (12 + tree_random(tree, 12)) << 16;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    tree->coroutines++;
    run_all(tree, depth, memory, size);
    munmap(memory, size);
}
