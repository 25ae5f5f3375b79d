/* How the tool tells its user what is wrong. */
#ifndef GPUMEM_REPORT_BASE_COMPLAIN_H
#define GPUMEM_REPORT_BASE_COMPLAIN_H

/* "gpumem: " and one line on stderr, without control characters. Returns GM_EXIT_USAGE. */
int gm_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What was last complained of, "" if nothing was: for who tells it again in another form. */
const char *gm_last_complaint(void);

#endif
