/* gzip (RFC 1952), the same bytes for the same input: no time, no name. */
#ifndef GPUMEM_REPORT_RENDER_GZIP_H
#define GPUMEM_REPORT_RENDER_GZIP_H

#include <stddef.h>

/* The compressed bytes, whose number goes to `compressed`; the caller frees them. */
unsigned char *gm_gzip(const void *bytes, size_t size, size_t *compressed);

#endif
