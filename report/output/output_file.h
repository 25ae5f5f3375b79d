/* A file that a command writes instead of stdout: it is there whole, or what was there before is. */
#ifndef GPUMEM_REPORT_RENDER_OUTPUT_FILE_H
#define GPUMEM_REPORT_RENDER_OUTPUT_FILE_H

#include <stdbool.h>

struct gm_output_file {
    const char *path;
    char *temporary; /* NULL: `path` is written in place, as it is no file */
};

/* What is printed from here on goes to the file. "-" is stdout itself. False after one line. */
bool gm_output_file_open(struct gm_output_file *file, const char *path);

/* All is printed; `is_good`: the file is to stay. False after one line if it could not be written. */
bool gm_output_file_close(struct gm_output_file *file, bool is_good);

#endif
