/* Preloaded in pairs: the first (LAST not defined) reaches the second by RTLD_NEXT or never. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int roads_chain(void);

#ifdef LAST
int roads_chain(void)
{
    return 2;
}
#else
int roads_chain(void)
{
    static int depth;
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "roads_chain");
    if (next == NULL || depth > 0)
        return -1; /* the call came back to us */
    depth++;
    int result = next() * 10 + 1;
    depth--;
    return result;
}
#endif
