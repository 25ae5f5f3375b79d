/* See plugin.h. PLUGIN_FRAME: bytes of the frame, above 127 so that its size takes four bytes. */
#include "plugin.h"

__attribute__((visibility("default"))) void
plugin_call(void (*function)(void *data, unsigned depth), void *data, unsigned depth)
{
    char memory[PLUGIN_FRAME];
    __asm__ volatile("" : : "r"(memory) : "memory");
    function(data, depth);
    __asm__ volatile("" : : "r"(memory) : "memory");
}
