/* A library with a copy of NVTX of its own. */
#include "calls.h"

void library_names_everything(int has_tool, void (*work)(void));

void library_names_everything(int has_tool, void (*work)(void))
{
    name_everything("library", has_tool, work);
}
