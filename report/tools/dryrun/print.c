/* How the answer of a dry run reads: judgement.h. */
#include "base/size.h"
#include "base/text.h"
#include "output/json.h"
#include "tools/dryrun/judgement.h"
#include <inttypes.h>
#include <signal.h>
#include <string.h>

static const char *const kinds[] = {"exact", "bounded", "assumed"};

static void say_where(FILE *out, const struct gm_dry_line *line)
{
    if (line->file[0])
        fprintf(out, " at %s:%u", gm_name_behind_slash(line->file), line->line);
}

/* Whether values that are not known can make the need larger than the answer says, or it is only known up to a refusal. */
static const char *at_least(const struct gm_dry_facts *facts)
{
    const struct gm_dry_outcome *outcome = gm_dry_telling(facts);
    int busiest = gm_dry_busiest(outcome);
    if (facts->has_unknown_workspaces || (busiest >= 0 && outcome->devices[busiest].has_failed))
        return "at least ";
    uint64_t left = outcome->uncertain_reads;
    for (size_t i = 0; i < outcome->uncertain_count; i++) {
        const struct gm_dry_line *line = &outcome->uncertain[i];
        if (line->is_printed)
            left -= line->count;
        else if (facts->with_rows || facts->has_rows)
            left -= line->rows;
    }
    return left ? "at least " : "";
}

/* What is needed, with both ends where masks decide. */
static void say_need(FILE *out, const struct gm_dry_judgement *judgement,
                     const struct gm_dry_facts *facts)
{
    if (facts->with_rows && judgement->most > judgement->peak)
        fprintf(out, "%s%s to %s", at_least(facts), SIZE(judgement->peak), SIZE(judgement->most));
    else
        fprintf(out, "%s%s", facts->chose_all ? "at most " : at_least(facts),
                SIZE(judgement->most));
}

/* The bounded part with the widest range. */
static const char *who_decides(const struct gm_dry_judgement *judgement)
{
    const struct gm_dry_part *widest = &judgement->parts[0];
    for (size_t i = 1; i < judgement->part_count; i++)
        if (judgement->parts[i].most - judgement->parts[i].bytes > widest->most - widest->bytes)
            widest = &judgement->parts[i];
    return strstr(widest->name, "cuDNN")   ? "cuDNN decides"
           : strstr(widest->name, "masks") ? "masks that the GPU computes decide"
           : strstr(widest->name, "XLA")   ? "the steps in which XLA's pool grows decide"
                                           : "addresses and events decide";
}

/* How a command ended that did not end well. Shells, and gpumem, tell a signal as 128 more than its number. */
static void say_ending(FILE *out, const struct gm_dry_facts *facts)
{
    int sign = facts->command_exit - 128;
    if (facts->raised.count)
        fprintf(out, "the command failed at %s:%u with \"%s\" (exit code %d)",
                gm_name_behind_slash(facts->raised.file), facts->raised.line, facts->exception,
                facts->command_exit);
    else if (sign > 0 && sign < SIGRTMIN)
        fprintf(out, "the command was ended by signal %d (%s)", sign, strsignal(sign));
    else
        fprintf(out, "the command ended with exit code %d", facts->command_exit);
}

static void say_undecided(FILE *out, const struct gm_dry_judgement *judgement,
                          const struct gm_dry_facts *facts)
{
    fputs("cannot be told: ", out);
    if (facts->refused) {
        fprintf(out, "%s.\n", facts->refused);
    } else if (facts->command_exit != 0) {
        say_ending(out, facts);
        fprintf(out, ", %s%s so far%s.\n",
                judgement->device < 0 ? "no memory used" : SIZE(judgement->peak),
                judgement->device < 0 ? "" : " needed",
                facts->outcome->uncertain_reads
                    ? "; it had read values that are not known, as kernels do not run"
                    : "");
    } else if (facts->grows) {
        fprintf(out, "the loop at %s:%u %s, and takes more and more: %s needed after %s rounds.\n",
                gm_name_behind_slash(facts->endless.file), facts->endless.line,
                facts->has_no_exit ? "has no end" : "ends by a value that only the GPU computes",
                SIZE(judgement->peak), COUNT(facts->endless.count));
    } else if (facts->rows_failed) {
        const struct gm_dry_told *told = facts->rows_failed;
        fprintf(out, "%s needed if masks that the GPU computes choose nothing, and with all rows ",
                SIZE(judgement->peak));
        if (told->raised.count)
            fprintf(out, "the command failed at %s:%u with \"%s\".\n",
                    gm_name_behind_slash(told->raised.file), told->raised.line, told->exception);
        else
            fprintf(out, "%s.\n",
                    told->values_ended ? "compiled code ran, of which no rows are known"
                                       : "the command came to no good end");
    } else if (facts->chose_all) {
        fprintf(out, "%s needed of %s if masks that the GPU computes choose all rows.\n",
                SIZE(judgement->peak), SIZE(judgement->capacity));
    } else {
        const struct gm_dry_outcome *more = facts->with_rows ? facts->with_rows : facts->with_cudnn;
        bool was_refused = more && more->devices[judgement->device].has_failed;
        fprintf(out, "%s between %s and %s%s of %s.\n", who_decides(judgement),
                SIZE(judgement->peak), was_refused ? "at least " : "", SIZE(judgement->most),
                SIZE(judgement->capacity));
        if (judgement->most <= judgement->capacity)
            fputs("Both would fit, but the larger one is an estimate and no bound.\n", out);
    }
}

/* Why the device is too small. */
static void say_shortage(FILE *out, const struct gm_dry_judgement *judgement,
                         const struct gm_dry_facts *facts)
{
    const struct gm_dry_use *use = &facts->outcome->devices[judgement->device];
    if (judgement->peak > judgement->capacity)
        fprintf(out, "does not fit, short by %s%s", at_least(facts),
                SIZE(judgement->peak - judgement->capacity));
    else if (use->purpose)
        fprintf(out, "does not fit: no memory was left for %s", gm_purpose_text(use->purpose));
    else if (use->limit)
        fprintf(out,
                "does not fit: %s were refused, as XLA may take %s "
                "(XLA_PYTHON_CLIENT_MEM_FRACTION)",
                SIZE(use->wanted), SIZE(use->limit));
    else
        fprintf(out, "does not fit: %s were refused, as what is free is in pieces",
                SIZE(use->wanted));
}

static void say_verdict(FILE *out, const struct gm_dry_judgement *judgement,
                        const struct gm_dry_facts *facts)
{
    const char *name = facts->device->name;
    switch (judgement->verdict) {
    case GM_DRY_FITS:
        if (judgement->device < 0) {
            fputs("fits: it used no GPU memory.\n", out);
            return;
        }
        fprintf(out, "fits with %s to spare: needs ", SIZE(judgement->capacity - judgement->most));
        say_need(out, judgement, facts);
        fprintf(out, " of the %s of a simulated %s.\n", SIZE(judgement->capacity), name);
        return;
    case GM_DRY_DOES_NOT_FIT:
        say_shortage(out, judgement, facts);
        say_where(out, &facts->outcome->devices[judgement->device].at);
        fprintf(out, ": needs %s%s of the %s of a simulated %s.\n", at_least(facts),
                SIZE(judgement->peak), SIZE(judgement->capacity), name);
        return;
    case GM_DRY_UNDECIDED:
        say_undecided(out, judgement, facts);
        return;
    }
}

static void say_parts(FILE *out, const struct gm_dry_judgement *judgement)
{
    for (size_t i = 0; i < judgement->part_count; i++) {
        const struct gm_dry_part *part = &judgement->parts[i];
        fprintf(out, "  %10s  %s, %s", SIZE(part->bytes), part->name, kinds[part->kind]);
        if (part->least < part->bytes)
            fprintf(out, ": %s to %s", SIZE(part->least), SIZE(part->most));
        else if (part->most > part->bytes)
            fprintf(out, ": up to %s", SIZE(part->most));
        fputc('\n', out);
    }
}

/* Bytes of the device that decides, in the run that tells the need. */
static uint64_t managed(const struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts)
{
    return judgement->device < 0 ? 0 : gm_dry_telling(facts)->devices[judgement->device].managed;
}

static void say_reads(FILE *out, const struct gm_dry_outcome *outcome)
{
    enum { SHOWN = 5 };
    if (!outcome->uncertain_reads)
        return;
    fprintf(out, "Kernels did not run: %s value%s that the program read back %s not known.\n",
            COUNT(outcome->uncertain_reads), gm_plural(outcome->uncertain_reads),
            outcome->uncertain_reads == 1 ? "is" : "are");
    for (size_t i = 0; i < outcome->uncertain_count && i < SHOWN; i++) {
        const struct gm_dry_line *line = &outcome->uncertain[i];
        fprintf(out, "  %10s  ", COUNT(line->count));
        if (line->file[0])
            fprintf(out, "%s:%u%s\n", gm_name_behind_slash(line->file), line->line,
                    line->is_printed ? "  (only printed)" : "");
        else
            fputs("(place not known)\n", out);
    }
    if (outcome->uncertain_count > SHOWN)
        fprintf(out, "  and %zu more lines\n", outcome->uncertain_count - SHOWN);
}

void gm_dry_text(FILE *out, const struct gm_dry_judgement *judgement,
                 const struct gm_dry_facts *facts)
{
    fputs("Dry run: ", out);
    say_verdict(out, judgement, facts);
    if (facts->raised.count && strstr(facts->exception, "invalid device ordinal"))
        fprintf(out, "The program saw %u GPU%s; --devices N shows it more.\n", facts->devices,
                gm_plural(facts->devices));
    say_parts(out, judgement);
    if (managed(judgement, facts))
        fprintf(out,
                "Beside that %s of managed memory, which the driver moves to the host as needed.\n",
                SIZE(managed(judgement, facts)));
    if (facts->outcome->survived && judgement->verdict == GM_DRY_FITS)
        fprintf(
            out,
            "%s request%s refused for lack of memory, and the program, or its allocator, made do\n"
            "with less: with more memory it may take more.\n",
            COUNT(facts->outcome->survived), facts->outcome->survived == 1 ? " was" : "s were");
    if (judgement->part_count && facts->device->source[0])
        fprintf(out, "Context: %s.\n", facts->device->source);
    if (facts->steps)
        fprintf(out, "The program was ended after %u step%s.\n", facts->steps,
                gm_plural(facts->steps));
    if (facts->endless.count && !facts->grows)
        fprintf(out,
                "The program was ended after %s rounds of the loop at %s:%u, which %s.\n"
                "What would follow it was not seen.\n",
                COUNT(facts->endless.count), gm_name_behind_slash(facts->endless.file),
                facts->endless.line,
                facts->has_no_exit ? "has no end" : "waits for a value that only the GPU computes");
    if (facts->chose_all)
        fputs(
            "The answer is of a second run, in which masks that the GPU computes chose all rows:\n"
            "the first, in which they chose none, came to no good end.\n",
            out);
    else if (facts->is_second)
        fputs("The answer is of a second run, in which small operations were computed on the CPU\n"
              "(--values): the first came to no good end by values that were not known.\n",
              out);
    else if (facts->has_rows)
        fputs("The answer is of a second run, in which masks and loops went by known values: in\n"
              "the first they chose nothing and ended at once.\n",
              out);
    else if (facts->with_rows)
        fputs("Values that the GPU computes chose no rows and ended loops at once in one run, and\n"
              "chose all rows and ended no loop in another.\n",
              out);
    else if (facts->has_values)
        fprintf(out, "Small operations were computed on the CPU (--values)%s.\n",
                facts->values_ended ? ", until compiled code was called" : "");
    if (facts->numbers_differ)
        fputs("Whole numbers that the GPU computes were taken to differ from all that they are\n"
              "compared with: no token ends a text before its limit (max_new_tokens) does.\n",
              out);
    say_reads(out, gm_dry_telling(facts));
}

void gm_dry_json(FILE *out, const struct gm_dry_judgement *judgement,
                 const struct gm_dry_facts *facts, bool follows)
{
    static const char *const verdicts[] = {"fits", "does-not-fit", "undecided"};
    const struct gm_dry_outcome *outcome = facts->outcome;
    const struct gm_dry_use *use =
        judgement->device < 0 ? NULL : &outcome->devices[judgement->device];
    struct gm_json json = {.out = out, .depth = 1};
    json.has_members[1] = follows;
    gm_json_open_object(&json, "dry_run");
    gm_json_string(&json, "verdict", verdicts[judgement->verdict]);
    gm_json_string(&json, "reason", facts->refused);
    GM_JSON_MEMBERS(&json, judgement, peak, most, capacity);
    gm_json_string(&json, "device", facts->device->name);
    gm_json_signed(&json, "command_exit", facts->command_exit);
    if (facts->raised.count) {
        gm_json_open_object(&json, "raised");
        GM_JSON_MEMBERS(&json, &facts->raised, file, line);
        gm_json_string(&json, "exception", facts->exception);
        gm_json_close_object(&json);
    } else {
        gm_json_null(&json, "raised");
    }
    gm_json_bool(&json, "values", facts->has_values);
    gm_json_bool(&json, "numbers_differ", facts->numbers_differ);
    GM_JSON_IF(&json, "ended_after_steps", facts->steps, facts->steps);
    if (facts->endless.count) {
        gm_json_open_object(&json, "endless");
        GM_JSON_MEMBERS(&json, &facts->endless, file, line, count);
        gm_json_bool(&json, "has_exit", !facts->has_no_exit);
        gm_json_bool(&json, "grows", facts->grows);
        gm_json_close_object(&json);
    } else {
        gm_json_null(&json, "endless");
    }
    gm_json_open_array(&json, "parts");
    for (size_t i = 0; i < judgement->part_count; i++) {
        const struct gm_dry_part *part = &judgement->parts[i];
        gm_json_open_object(&json, NULL);
        GM_JSON_MEMBERS(&json, part, name, bytes, least, most);
        gm_json_string(&json, "kind", kinds[part->kind]);
        gm_json_close_object(&json);
    }
    gm_json_close_array(&json);
    gm_json_number(&json, "managed", managed(judgement, facts));
    gm_json_bool(&json, "whole_need",
                 facts->whole || (facts->command_exit == 0 && !(use && use->has_failed)));
    gm_json_open_array(&json, "uncertain");
    const struct gm_dry_outcome *telling = gm_dry_telling(facts);
    for (size_t i = 0; i < telling->uncertain_count; i++) {
        const struct gm_dry_line *line = &telling->uncertain[i];
        gm_json_open_object(&json, NULL);
        gm_json_string(&json, "file", line->file[0] ? line->file : NULL);
        GM_JSON_MEMBERS(&json, line, line, count);
        gm_json_bool(&json, "printed", line->is_printed);
        gm_json_close_object(&json);
    }
    gm_json_close_array(&json);
    if (use && use->has_failed) {
        gm_json_open_object(&json, "failed_at");
        gm_json_string(&json, "file", use->at.file[0] ? use->at.file : NULL);
        gm_json_number(&json, "line", use->at.line);
        gm_json_number(&json, "bytes", use->wanted);
        GM_JSON_IF(&json, "limit", use->limit, use->limit);
        gm_json_close_object(&json);
    } else {
        gm_json_null(&json, "failed_at");
    }
    gm_json_close_object(&json);
}
