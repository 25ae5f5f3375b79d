/* Columns of a block (columns.h) back to records: the recorder reads what it wrote itself. */
#ifndef GPUMEM_PRELOAD_WRITER_COLUMNS_READ_H
#define GPUMEM_PRELOAD_WRITER_COLUMNS_READ_H

#include <gpumem/trace.h>
#include <stdbool.h>

/* Writes block->count records. `columns`: block->raw_size bytes. False if they are not what the
 * block says; then the records mean nothing. Reads nothing outside of the columns. */
bool gm_columns_decode(const struct gm_block *block, const unsigned char *columns,
                       struct gm_record *records);

#endif
