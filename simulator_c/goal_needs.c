/* The dependencies of one rank: grouped by the operation that is needed, in file order, and looked
 * through for cycles. */
#include "goal_internal.h"

#include <string.h>

/* end[i] becomes the end of the list of those that operation i releases; the list begins where that
 * of i - 1 ends. */
static int group(struct goal_reader *reader, int begun, int32_t *end, int64_t operations)
{
    struct goal_column *list = begun ? &reader->columns.begun_op : &reader->columns.done_op;
    struct goal_column *start = begun ? &reader->columns.begun_start : &reader->columns.done_start;
    int64_t base = list->count, matching = 0, before = 0;

    memset(end, 0, (size_t)operations * sizeof *end);
    for (int64_t i = 0; i < reader->needs; i++)
        if (reader->need[i].begun == begun && ++matching)
            end[reader->need[i].needed]++;
    if (!matching)
        return goal_push_same(start, base, operations);
    if (goal_reserve((void **)&list->data, &list->room, base + matching, sizeof(int32_t)))
        return GOAL_NO_MEMORY;
    for (int64_t i = 0; i < operations; i++) {
        int32_t length = end[i];

        if (goal_push(start, base + before))
            return GOAL_NO_MEMORY;
        end[i] = (int32_t)before;
        before += length;
    }
    for (int64_t i = 0; i < reader->needs; i++)
        if (reader->need[i].begun == begun)
            ((int32_t *)list->data)[base + end[reader->need[i].needed]++] = (int32_t)reader->need[i]
                                                                                .operation;
    list->count = base + matching;
    return GOAL_OK;
}

static int64_t release(const int32_t *list, const int32_t *end, int32_t done, int32_t *waits,
                       int32_t *queue, int64_t queued)
{
    for (int32_t i = done ? end[done - 1] : 0; i < end[done]; i++)
        if (!--waits[list[i]])
            queue[queued++] = list[i];
    return queued;
}

/* Every operation that is left waits for another that is left: walking back from one leads into a
 * cycle. */
static int blame(struct goal_reader *reader, const int32_t *waits, int32_t *waits_for,
                 int64_t operations)
{
    int64_t at = -1;
    char word[32] = "operation";

    for (int64_t i = 0; i < reader->needs; i++)
        if (waits[reader->need[i].operation] > 0 && waits[reader->need[i].needed] > 0) {
            waits_for[reader->need[i].operation] = (int32_t)reader->need[i].needed;
            at = reader->need[i].operation;
        }
    for (int64_t i = 0; i < operations && at >= 0; i++)
        at = waits_for[at];
    reader->error.place = at;
    for (int64_t i = 0; i < reader->needs; i++)
        if (reader->need[i].operation == at && reader->need[i].needed == (uint32_t)waits_for[at])
            return goal_fail(reader, GOAL_CYCLE, reader->need[i].line, word, strlen(word));
    return goal_fail(reader, GOAL_CYCLE, 0, word, strlen(word));
}

static int find_cycle(struct goal_reader *reader, int32_t *end, int64_t operations)
{
    const int32_t *done_list = (int32_t *)reader->columns.done_op.data,
                  *begun_list = (int32_t *)reader->columns.begun_op.data;
    int32_t *begun_end = end + operations, *waits = begun_end + operations,
            *queue = waits + operations;
    int64_t queued = 0;

    done_list = done_list ? done_list + reader->columns.done_op.count - end[operations - 1] : NULL;
    begun_list = begun_list
                     ? begun_list + reader->columns.begun_op.count - begun_end[operations - 1]
                     : NULL;
    memset(waits, 0, (size_t)operations * sizeof *waits);
    for (int64_t i = 0; i < reader->needs; i++)
        waits[reader->need[i].operation]++;
    for (int64_t i = 0; i < operations; i++)
        if (!waits[i])
            queue[queued++] = (int32_t)i;
    for (int64_t i = 0; i < queued; i++) {
        queued = release(done_list, end, queue[i], waits, queue, queued);
        queued = release(begun_list, begun_end, queue[i], waits, queue, queued);
    }
    return queued == operations ? GOAL_OK : blame(reader, waits, queue, operations);
}

int goal_close_needs(struct goal_reader *reader, int64_t operations)
{
    int forward = 0;

    if (!operations)
        return GOAL_OK;
    if (reader->needs > INT32_MAX || operations > INT32_MAX)
        return goal_fail_word(reader, GOAL_TOO_MANY, "operations or dependencies of one rank");
    if (goal_reserve((void **)&reader->scratch, &reader->scratch_room, 4 * operations,
                     sizeof *reader->scratch) ||
        group(reader, 0, reader->scratch, operations) ||
        group(reader, 1, reader->scratch + operations, operations))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    for (int64_t i = 0; i < reader->needs; i++)
        forward |= reader->need[i].needed >= reader->need[i].operation;
    return forward ? find_cycle(reader, reader->scratch, operations) : GOAL_OK;
}
