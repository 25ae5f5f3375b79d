/* What a user of `gpumem ask` asks for. */
#ifndef GPUMEM_REPORT_RENDER_ASK_REQUEST_H
#define GPUMEM_REPORT_RENDER_ASK_REQUEST_H

#include "model/history.h"

enum gm_ask_by { GM_ASK_BY_SITE, GM_ASK_BY_LINE, GM_ASK_BY_LIBRARY, GM_ASK_BY_KIND, GM_ASK_BYS };

/* "site" ... */
const char *gm_ask_by_name(enum gm_ask_by by);

struct gm_ask_request {
    const char *question;
    uint32_t id;         /* of `finding` and `site` */
    struct gm_when when; /* of `owners` */
    enum gm_ask_by by;
    int device;          /* of `peak` and `owners`; -1: any */
    size_t first;        /* row */
    size_t size;         /* bytes */
    const char *options; /* of gm_answer */
    bool is_redacted;
};

#endif
