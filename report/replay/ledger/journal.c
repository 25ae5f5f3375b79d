/* See journal.h. */
#include "replay/ledger/journal.h"
#include "base/memory.h"

void gm_journal_grow(struct gm_journal *journal)
{
    GM_RESERVE(journal->entries, journal->capacity, journal->count + 1);
}
