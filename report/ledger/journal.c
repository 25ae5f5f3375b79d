/* See journal.h. */
#include "ledger/journal.h"
#include "base/memory.h"

void gm_journal_note(struct gm_journal *journal, const struct gm_undo *undo)
{
    GM_RESERVE(journal->entries, journal->capacity, journal->count + 1);
    journal->entries[journal->count++] = *undo;
}
