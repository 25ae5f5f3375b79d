/* Answers that were given before, in the user's cache folder: a report need not be made again for them.
 *
 * Guarantees: an answer is given only for the very question, tool and files that it was made of, and for an hour,
 * because the files that symbols come from may change. What is damaged or another user's is as good as none. At most
 * 256 are kept. Whatever fails here costs time and nothing else. */
#ifndef GPUMEM_REPORT_COMMANDS_ASK_KEPT_H
#define GPUMEM_REPORT_COMMANDS_ASK_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What decides an answer, as one text: `out` gets what tells a file from others. False: it cannot be told, and nothing
 * is to be kept of it. */
bool gm_kept_add_file(FILE *out, const char *path);

/* The answer to a question of that identity, to be freed; NULL: there is none. */
char *gm_kept_find(const char *identity, size_t *size);
void gm_kept_keep(const char *identity, const char *answer, size_t size);

#endif
