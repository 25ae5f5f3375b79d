/* See answers.h. A file is what stands in memory: a head, the answers, their frames and texts, and a hash
 * of all of that. It never leaves its machine, so it is in the machine's byte order. */
#include "names/cache/answers.h"
#include "base/each.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/text.h"
#include "names/cache/folder.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define FILE_MAX_SIZE ((size_t)16 << 20) /* bytes; of one module. No more answers are kept */

struct head {
    char magic[8];
    uint64_t identity;
    uint32_t note;
    uint32_t answers;
    uint32_t frames;
    uint32_t text_size;
};

static const char magic[8] = "gmansw1";

struct kept_answer {
    uint64_t address;
    uint32_t first; /* of its frames */
    uint32_t count;
};

/* Texts by their offset; 0: none. */
struct kept_frame {
    uint32_t name, directory, file;
    uint32_t line;
    uint16_t name_source;
    uint16_t inlined;
};

struct gm_answers {
    char path[PATH_MAX];
    char folder[PATH_MAX];
    uint64_t identity;
    uint32_t note;
    bool has_note;
    bool is_new; /* something is not in the file */
    struct kept_answer *answers;
    size_t answer_count, answer_capacity;
    struct kept_frame *frames;
    size_t frame_count, frame_capacity;
    char *texts; /* each terminated; the first is empty */
    size_t text_size, text_capacity;
    struct gm_map by_address; /* -> answer */
    struct gm_map by_pointer; /* a caller's string -> its offset: equal strings are one there */
};

static size_t file_size(const struct head *head)
{
    return sizeof(*head) + head->answers * sizeof(struct kept_answer) +
           head->frames * sizeof(struct kept_frame) + head->text_size + sizeof(XXH64_hash_t);
}

/* ---- reading --------------------------------------------------------------------------------------- */

/* All of a file of our own that is not too large; NULL if there is none. */
static char *read_answer_file(const char *path, size_t *size)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char *bytes = NULL;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        status.st_size > 0 && (size_t)status.st_size <= FILE_MAX_SIZE) {
        *size = (size_t)status.st_size;
        bytes = gm_allocate(*size, 1);
        if (read(fd, bytes, *size) != (ssize_t)*size) {
            free(bytes);
            bytes = NULL;
        }
    }
    close(fd);
    return bytes;
}

static bool is_whole_file(const char *bytes, size_t size, const struct head *head,
                          uint64_t identity)
{
    XXH64_hash_t hash;
    if (memcmp(head->magic, magic, sizeof(magic)) != 0 || head->identity != identity ||
        file_size(head) != size)
        return false;
    memcpy(&hash, bytes + size - sizeof(hash), sizeof(hash));
    return XXH3_64bits(bytes, size - sizeof(hash)) == hash;
}

/* A hash only says that the file is as it was written, not who wrote it. */
static bool is_sound(const struct gm_answers *answers)
{
    if (!answers->text_size || answers->texts[0] || answers->texts[answers->text_size - 1])
        return false;
    for (size_t i = 0; i < answers->answer_count; i++) {
        const struct kept_answer *answer = &answers->answers[i];
        if (answer->count > GM_FRAMES_AT_ONE_ADDRESS || answer->first > answers->frame_count ||
            answer->count > answers->frame_count - answer->first)
            return false;
    }
    for (size_t i = 0; i < answers->frame_count; i++) {
        const struct kept_frame *frame = &answers->frames[i];
        if (frame->name >= answers->text_size || frame->directory >= answers->text_size ||
            frame->file >= answers->text_size || frame->name_source > GM_NAME_FROM_SYMBOL)
            return false;
    }
    return true;
}

static void *copy_of(const char **at, size_t count, size_t size)
{
    void *copy = gm_allocate(count + 1, size);
    memcpy(copy, *at, count * size);
    *at += count * size;
    return copy;
}

static void take_answers(struct gm_answers *answers, const char *bytes, const struct head *head)
{
    const char *at = bytes + sizeof(*head);
    answers->answer_count = answers->answer_capacity = head->answers;
    answers->frame_count = answers->frame_capacity = head->frames;
    answers->text_size = answers->text_capacity = head->text_size;
    answers->answers = copy_of(&at, head->answers, sizeof(struct kept_answer));
    answers->frames = copy_of(&at, head->frames, sizeof(struct kept_frame));
    answers->texts = copy_of(&at, head->text_size, 1);
    answers->note = head->note;
    answers->has_note = true;
}

static void forget_answers(struct gm_answers *answers)
{
    free(answers->answers);
    free(answers->frames);
    free(answers->texts);
    answers->answers = NULL;
    answers->frames = NULL;
    answers->texts = NULL;
    answers->answer_count = answers->answer_capacity = 0;
    answers->frame_count = answers->frame_capacity = 0;
    answers->text_size = answers->text_capacity = 0;
    answers->has_note = false;
}

static void load_answers(struct gm_answers *answers)
{
    size_t size = 0;
    char *bytes = read_answer_file(answers->path, &size);
    struct head head;
    if (bytes && size >= sizeof(head) + sizeof(XXH64_hash_t)) {
        memcpy(&head, bytes, sizeof(head));
        if (is_whole_file(bytes, size, &head, answers->identity)) {
            take_answers(answers, bytes, &head);
            if (!is_sound(answers))
                forget_answers(answers);
        }
    }
    free(bytes);
}

struct gm_answers *gm_answers_open(const char *folder, const uint8_t *build_id,
                                   size_t build_id_size, uint64_t identity)
{
    struct gm_answers *answers = gm_allocate(1, sizeof(*answers));
    char hex[2 * 32 + 1];
    gm_write_hex(hex, build_id, build_id_size < 32 ? build_id_size : 32);
    answers->identity = identity;
    snprintf(answers->folder, sizeof(answers->folder), "%s", folder);
    snprintf(answers->path, sizeof(answers->path), "%s/%s-%016llx", folder, hex,
             (unsigned long long)identity);
    load_answers(answers);
    for (size_t i = 0; i < answers->answer_count; i++)
        gm_map_set(&answers->by_address, answers->answers[i].address, (uint32_t)i);
    if (!answers->text_size) { /* offset 0 is no text */
        GM_RESERVE(answers->texts, answers->text_capacity, 1);
        answers->texts[answers->text_size++] = 0;
    }
    return answers;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool gm_answers_note(const struct gm_answers *answers, uint32_t *note)
{
    *note = answers->note;
    return answers->has_note;
}

void gm_answers_set_note(struct gm_answers *answers, uint32_t note)
{
    answers->is_new |= !answers->has_note || answers->note != note;
    answers->note = note;
    answers->has_note = true;
}

static const char *text_at(const struct gm_answers *answers, uint32_t offset)
{
    return offset ? answers->texts + offset : NULL;
}

bool gm_answers_find(const struct gm_answers *answers, uint64_t address,
                     struct gm_raw_frame *frames, size_t *count)
{
    uint32_t number = gm_map_get(&answers->by_address, address);
    if (number == GM_NONE)
        return false;
    const struct kept_answer *answer = &answers->answers[number];
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct kept_frame *kept = &answers->frames[answer->first + i];
        frames[i] = (struct gm_raw_frame){.name = text_at(answers, kept->name),
                                          .name_source = (enum gm_name_source)kept->name_source,
                                          .inlined = kept->inlined,
                                          .directory = text_at(answers, kept->directory),
                                          .file = text_at(answers, kept->file),
                                          .line = kept->line};
    }
    *count = answer->count;
    return true;
}

static uint32_t keep_text(struct gm_answers *answers, const char *text)
{
    if (!text)
        return 0;
    uint32_t known = gm_map_get(&answers->by_pointer, (uintptr_t)text);
    if (known != GM_NONE)
        return known;
    size_t size = strlen(text) + 1;
    uint32_t offset = (uint32_t)answers->text_size;
    GM_RESERVE(answers->texts, answers->text_capacity, answers->text_size + size);
    memcpy(answers->texts + offset, text, size);
    answers->text_size += size;
    gm_map_set(&answers->by_pointer, (uintptr_t)text, offset);
    return offset;
}

static struct head head_of(const struct gm_answers *answers)
{
    struct head head = {.identity = answers->identity,
                        .note = answers->note,
                        .answers = (uint32_t)answers->answer_count,
                        .frames = (uint32_t)answers->frame_count,
                        .text_size = (uint32_t)answers->text_size};
    memcpy(head.magic, magic, sizeof(magic));
    return head;
}

/* Bytes that one more answer takes at most. */
static size_t size_of_answer(const struct gm_raw_frame *frames, size_t count)
{
    size_t size = sizeof(struct kept_answer);
    for (size_t i = 0; i < count; i++) {
        size += sizeof(struct kept_frame);
        size += frames[i].name ? strlen(frames[i].name) + 1 : 0;
        size += frames[i].directory ? strlen(frames[i].directory) + 1 : 0;
        size += frames[i].file ? strlen(frames[i].file) + 1 : 0;
    }
    return size;
}

void gm_answers_add(struct gm_answers *answers, uint64_t address, const struct gm_raw_frame *frames,
                    size_t count)
{
    struct head head = head_of(answers);
    if (file_size(&head) + size_of_answer(frames, count) > FILE_MAX_SIZE)
        return;
    gm_map_set(&answers->by_address, address, (uint32_t)answers->answer_count);
    GM_APPEND(answers->answers, answers->answer_capacity, answers->answer_count,
              (struct kept_answer){address, (uint32_t)answers->frame_count, (uint32_t)count});
    GM_RESERVE(answers->frames, answers->frame_capacity, answers->frame_count + count);
    for (size_t i = 0; i < count; i++)
        answers->frames[answers->frame_count++] =
            (struct kept_frame){.name = keep_text(answers, frames[i].name),
                                .directory = keep_text(answers, frames[i].directory),
                                .file = keep_text(answers, frames[i].file),
                                GM_SAME(&frames[i], line, name_source, inlined)};
    answers->is_new = true;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_bytes(char **at, const void *bytes, size_t size)
{
    memcpy(*at, bytes, size);
    *at += size;
}

static char *make_file(const struct gm_answers *answers, size_t *size)
{
    struct head head = head_of(answers);
    *size = file_size(&head);
    char *bytes = gm_allocate(*size, 1), *at = bytes;
    put_bytes(&at, &head, sizeof(head));
    put_bytes(&at, answers->answers, answers->answer_count * sizeof(*answers->answers));
    put_bytes(&at, answers->frames, answers->frame_count * sizeof(*answers->frames));
    put_bytes(&at, answers->texts, answers->text_size);
    XXH64_hash_t hash = XXH3_64bits(bytes, (size_t)(at - bytes));
    put_bytes(&at, &hash, sizeof(hash));
    return bytes;
}

/* Of two processes that write the same file, the later one's counts. */
static bool write_answer_file(const struct gm_answers *answers)
{
    char draft[PATH_MAX];
    size_t size;
    int length = snprintf(draft, sizeof(draft), "%s.XXXXXX", answers->path);
    int fd = length < PATH_MAX ? mkstemp(draft) : -1;
    if (fd < 0)
        return false;
    char *bytes = make_file(answers, &size);
    bool written = write(fd, bytes, size) == (ssize_t)size;
    free(bytes);
    written &= close(fd) == 0;
    if (written && rename(draft, answers->path) == 0)
        return true;
    unlink(draft);
    return false;
}

/* What may be deleted: the folder can be one that the user chose, with other files in it. */
static bool is_ours_by_name(const char *name)
{
    size_t id = strspn(name, "0123456789abcdef");
    return id > 0 && name[id] == '-' && strspn(name + id + 1, "0123456789abcdef") == 16;
}

void gm_answers_close(struct gm_answers *answers, bool keep)
{
    if (keep && answers->is_new && answers->has_note && gm_make_cache_folder(answers->folder) &&
        write_answer_file(answers))
        gm_cache_make_room(
            answers->folder, is_ours_by_name,
            (struct gm_cache_most){.bytes = GM_ANSWERS_FOLDER_MAX, .files = SIZE_MAX});
    forget_answers(answers);
    gm_map_free(&answers->by_address);
    gm_map_free(&answers->by_pointer);
    free(answers);
}
