/*
 * Calls through plugin.c's library: opens one of its two builds each time, calls through it and
 * closes it; the loader mostly puts it where the other one was.
 */
#include "plugin.h"
#include "stack/native/unwind.h"
#include "tree.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLUGIN_REACH 65536 /* more than the library is long */

static char paths[2][4096];
static _Atomic uint64_t place; /* of plugin_call, when it was last there; other threads ask */
static unsigned opened;        /* which of the two */

bool tree_plugin_open(const char *folder)
{
    for (int i = 0; i < 2; i++) {
        int length = snprintf(paths[i], sizeof paths[i], "%s/oracle_plugin_%d.so", folder, i);
        if (length < 0 || (size_t)length >= sizeof paths[i])
            return false;
    }
    return true;
}

bool tree_is_plugin(uint64_t pc)
{
    return pc - place + PLUGIN_REACH < 2 * PLUGIN_REACH;
}

static void go_on(void *data, unsigned depth)
{
    tree_descend(data, depth);
}

void tree_plugin(struct tree *tree, unsigned depth)
{
    if (tree->plugin_open || paths[0][0] == '\0' || tree_random(tree, 100) != 0)
        return;
    unsigned which = (unsigned)tree_random(tree, 2);
    void *library = dlopen(paths[which], RTLD_NOW | RTLD_LOCAL);
    void (*call)(void (*)(void *, unsigned), void *, unsigned) = NULL;
    if (library) {
        void *symbol = dlsym(library, "plugin_call");
        memcpy(&call, &symbol, sizeof call);
    }
    if (!call) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    tree->swaps++;
    if (place == (uint64_t)(uintptr_t)call && which != opened)
        tree->swaps_in_place++;
    place = (uint64_t)(uintptr_t)call;
    opened = which;
    unsigned catchers = tree->catchers;
    tree->catchers = 0; /* an exception would leave it open */
    tree->plugin_open = true;
    call(go_on, tree, depth + 1);
    tree->plugin_open = false;
    tree->catchers = catchers;
    gm_unwind_new_generation();
    dlclose(library);
    gm_unwind_new_generation();
}
