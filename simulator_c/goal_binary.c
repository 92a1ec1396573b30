/* The binary of the reference simulator: little endian, packed records of 39 bytes, all offsets
 * counted from byte 8. */
#include "goal_internal.h"

#include <stdlib.h>
#include <string.h>

static uint64_t get(const uint8_t *at, int bytes)
{
    uint64_t value = 0;

    while (bytes--)
        value = value << 8 | at[bytes];
    return value;
}

static int damaged(struct goal_reader *reader, int64_t place, const char *what)
{
    reader->error.place = place;
    return goal_fail(reader, GOAL_DAMAGED, 0, what, strlen(what));
}

struct part { /* of the file: one rank */
    const uint8_t *file, *record, *appendix;
    uint64_t nodes, roots, entries;
};

static int64_t place_in(const struct part *part, const uint8_t *at)
{
    return at - part->file;
}

static int open_part(struct goal_reader *reader, const uint8_t *data, size_t length,
                     struct part *part)
{
    const uint8_t *pair = data + GOAL_HEADER + GOAL_PAIR * reader->rank;
    uint64_t begin = get(pair, 8), end = get(pair + 8, 8);

    if (begin > end || end > length - GOAL_BASE || end - begin < 8)
        return damaged(reader, pair - data, "the place of a rank lies outside the file");
    begin += GOAL_BASE;
    end += GOAL_BASE;
    part->file = data;
    part->nodes = get(data + begin, 4);
    part->roots = get(data + begin + 4, 4);
    if (part->roots > part->nodes ||
        8 + 4 * part->roots + GOAL_RECORD * part->nodes > end - begin || part->nodes > INT32_MAX)
        return damaged(reader, (int64_t)begin, "a rank has less room than its operations take");
    part->record = data + begin + 8 + 4 * part->roots;
    part->appendix = part->record + GOAL_RECORD * part->nodes;
    part->entries = (uint64_t)(data + end - part->appendix) / 4;
    return GOAL_OK;
}

static int read_record(struct goal_reader *reader, const struct part *part, const uint8_t *record)
{
    struct goal_columns *columns = &reader->columns;
    uint64_t type = record[AT_TYPE], peer = get(record + AT_PEER, 4),
             size = get(record + AT_SIZE, 8), tag = get(record + AT_TAG, 4);
    int any = type == 2;

    if (type < 1 || type > 3)
        return damaged(reader, place_in(part, record), "an operation of unknown type");
    if (type == 3)
        peer = tag = 0;
    if (peer >= (uint64_t)columns->ranks && !(any && peer == UINT32_MAX))
        return damaged(reader, place_in(part, record), "a peer that does not exist");
    if (size > INT64_MAX)
        return damaged(reader, place_in(part, record), "a size of 2^63 or more");
    if (tag == UINT32_MAX && !any)
        return damaged(reader, place_in(part, record), "a send with any tag");
    if (goal_push(&columns->kind, (int64_t)type) ||
        goal_push(&columns->peer, (int32_t)(uint32_t)peer) ||
        goal_push(&columns->size, (int64_t)size) ||
        goal_push(&columns->tag, tag == UINT32_MAX ? -1 : (int64_t)tag) ||
        goal_push(&columns->cpu, record[AT_CPU]) ||
        goal_push(&columns->nic, type == 3 ? 0 : record[AT_NIC]))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    return GOAL_OK;
}

static int read_list(struct goal_reader *reader, const struct part *part, uint32_t needed,
                     int begun)
{
    const uint8_t *head = part->record + (uint64_t)GOAL_RECORD * needed +
                          (begun ? AT_BEGUN : AT_DONE);
    uint64_t count = get(head, 4), first = get(head + 4, 4);

    if (count > part->entries || (count && first > part->entries - count) ||
        (uint64_t)reader->needs + count > part->entries)
        return damaged(reader, place_in(part, head), "a list of dependents outside its rank");
    if (goal_reserve((void **)&reader->need, &reader->need_room, reader->needs + (int64_t)count,
                     sizeof *reader->need))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    for (uint64_t i = first; i < first + count; i++) {
        uint64_t operation = get(part->appendix + 4 * i, 4);

        if (operation >= part->nodes || operation == needed)
            return damaged(reader, place_in(part, part->appendix + 4 * i),
                           "a dependent that does not exist");
        reader->need[reader->needs++] = (struct goal_need){(uint32_t)operation, needed, 0, begun};
    }
    return GOAL_OK;
}

/* The counts of dependencies and the list of roots follow from the lists of dependents: they have
 * to agree. */
static int check_counts(struct goal_reader *reader, const struct part *part)
{
    const uint8_t *root = part->record - 4 * part->roots;
    int32_t *waits = calloc(part->nodes + 1, sizeof *waits);
    uint64_t roots = 0;
    int problem = GOAL_OK;

    if (!waits)
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    for (int64_t i = 0; i < reader->needs; i++)
        waits[reader->need[i].operation]++;
    for (uint64_t i = 0; i < part->nodes && !problem; i++) {
        const uint8_t *record = part->record + GOAL_RECORD * i;

        if (get(record, 4) != (uint32_t)waits[i])
            problem = damaged(
                reader, place_in(part, record),
                "a count of dependencies that disagrees with the lists of dependents");
        else if (!waits[i] && (roots >= part->roots || get(root + 4 * roots++, 4) != i))
            problem = damaged(reader, place_in(part, root),
                              "a list of roots that disagrees with the dependencies");
    }
    free(waits);
    return problem || roots == part->roots
               ? problem
               : damaged(reader, place_in(part, root), "more roots than there are");
}

static int read_part(struct goal_reader *reader, const struct part *part)
{
    int64_t nodes = (int64_t)part->nodes;

    reader->needs = 0;
    for (int64_t i = 0; i < nodes; i++)
        if (read_record(reader, part, part->record + GOAL_RECORD * i))
            return reader->error.problem;
    for (int64_t i = 0; i < nodes; i++)
        if (read_list(reader, part, (uint32_t)i, 0) || read_list(reader, part, (uint32_t)i, 1))
            return reader->error.problem;
    if (check_counts(reader, part) || goal_close_needs(reader, nodes))
        return reader->error.problem;
    if (goal_push(&reader->columns.rank, reader->rank) ||
        goal_push(&reader->columns.operations, nodes))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    return GOAL_OK;
}

int nb_goal_read_binary(struct goal_reader *reader, const uint8_t *data, size_t length)
{
    struct part part;

    if (length >= 8 && get(data, 8) == GOAL_INVALID_MAGIC)
        return goal_fail_word(reader, GOAL_INVALIDATED, "");
    if (length < GOAL_HEADER || get(data, 8) != GOAL_MAGIC)
        return goal_fail_word(reader, GOAL_SHORT, "its head");
    reader->columns.ranks = (int64_t)get(data + GOAL_BASE, 4);
    if (!reader->columns.ranks)
        return goal_fail_word(reader, GOAL_NO_RANKS, "0");
    if (reader->columns.ranks > INT32_MAX ||
        (uint64_t)reader->columns.ranks > (length - GOAL_HEADER) / GOAL_PAIR)
        return goal_fail_word(reader, GOAL_SHORT, "the places of its ranks");
    for (reader->rank = 0; reader->rank < reader->columns.ranks; reader->rank++)
        if (open_part(reader, data, length, &part) || read_part(reader, &part))
            return reader->error.problem;
    return goal_close_columns(reader);
}
