/* C++ names as people say them: without return type, parameters and template arguments.
 *
 * Guarantees: bounded time and output whatever the name holds; nothing is allocated; a name that is
 * no C++ declaration stays as it is. */
#ifndef GPUMEM_REPORT_BASE_SHORT_NAME_H
#define GPUMEM_REPORT_BASE_SHORT_NAME_H

#include <stddef.h>

enum { GM_SHORT_NAME_SIZE = 256 };

/* Writes the short form of `name`, cut if it does not fit, NUL-terminated. */
void gm_short_name(const char *name, char text[GM_SHORT_NAME_SIZE]);

#endif
