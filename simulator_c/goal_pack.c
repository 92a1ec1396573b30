/* A schedule as the binary of the reference simulator. */
#include "goal_internal.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value >>= 8)
        *at++ = (uint8_t)value;
    return at;
}

static int64_t list_of(const struct goal_view *view, int begun, int64_t operation,
                       const int32_t **list)
{
    const void *start = begun ? view->begun_start : view->done_start;
    const int32_t *all = begun ? view->begun_op : view->done_op;
    int64_t from, to;

    if (!start)
        return 0;
    from = goal_integer(start, begun ? view->begun_width : view->done_width, operation);
    to = goal_integer(start, begun ? view->begun_width : view->done_width, operation + 1);
    *list = all + from;
    return to - from;
}

static void count_waits(const struct goal_view *view, int64_t rank, uint32_t *waits)
{
    int64_t from = view->rank_start[rank], to = view->rank_start[rank + 1];
    const int32_t *list;

    memset(waits, 0, (size_t)(to - from) * sizeof *waits);
    for (int64_t i = from; i < to; i++)
        for (int begun = 0; begun < 2; begun++)
            for (int64_t left = list_of(view, begun, i, &list); left > 0; left--)
                waits[list[left - 1]]++;
}

static uint32_t *room_for_waits(const struct goal_view *view, int64_t from_rank, int64_t to_rank)
{
    int64_t most = 1;

    for (int64_t rank = from_rank; rank < to_rank; rank++)
        if (view->rank_start[rank + 1] - view->rank_start[rank] > most)
            most = view->rank_start[rank + 1] - view->rank_start[rank];
    return malloc((size_t)most * sizeof(uint32_t));
}

int nb_goal_binary_lengths(const struct goal_view *view, int64_t *bytes)
{
    uint32_t *waits = room_for_waits(view, 0, view->ranks);
    const int32_t *list;

    if (!waits)
        return GOAL_NO_MEMORY;
    for (int64_t rank = 0; rank < view->ranks; rank++) {
        int64_t from = view->rank_start[rank], to = view->rank_start[rank + 1];

        count_waits(view, rank, waits);
        bytes[rank] = 8 + GOAL_RECORD * (to - from);
        for (int64_t i = from; i < to; i++)
            bytes[rank] += 4 * (!waits[i - from] + list_of(view, 0, i, &list) +
                                list_of(view, 1, i, &list));
    }
    free(waits);
    return GOAL_OK;
}

static uint8_t *put_list(uint8_t *at, uint8_t **appendix, uint32_t *entries, const int32_t *list,
                         int64_t length)
{
    at = put(put(at, (uint64_t)length, 4), *entries, 4);
    for (int64_t i = 0; i < length; i++)
        *appendix = put(*appendix, (uint32_t)list[i], 4);
    *entries += (uint32_t)length;
    return at;
}

static uint8_t *put_fields(uint8_t *at, const struct goal_view *view, int64_t operation,
                           uint32_t waits)
{
    int calc = view->kind[operation] == 3;

    at = put(at, waits, 4);
    at = put(at, view->kind[operation], 1);
    at = put(at, calc ? 0 : (uint32_t)view->peer[operation], 4);
    at = put(at, (uint64_t)goal_size(view, operation), 8);
    at = put(at, calc ? 0 : (uint32_t)view->tag[operation * view->tag_step], 4);
    at = put(at, view->cpu[operation * view->cpu_step], 1);
    return put(at, calc ? 0 : view->nic[operation * view->nic_step], 1);
}

static uint8_t *pack_rank(const struct goal_view *view, int64_t rank, const uint32_t *waits,
                          uint8_t *at)
{
    int64_t from = view->rank_start[rank], to = view->rank_start[rank + 1];
    uint32_t entries = 0;
    uint8_t *roots = at + 4, *appendix;
    const int32_t *list = NULL;

    put(at, (uint64_t)(to - from), 4);
    at += 8;
    for (int64_t i = 0; i < to - from; i++)
        at = waits[i] ? at : put(at, (uint64_t)i, 4);
    put(roots, (uint64_t)(at - roots - 4) / 4, 4);
    appendix = at + GOAL_RECORD * (to - from);
    for (int64_t i = from; i < to; i++) {
        int64_t length = list_of(view, 0, i, &list);

        at = put_fields(at, view, i, waits[i - from]);
        at = put_list(at, &appendix, &entries, list, length);
        length = list_of(view, 1, i, &list);
        at = put_list(at, &appendix, &entries, list, length);
    }
    return appendix;
}

int nb_goal_pack(const struct goal_view *view, int64_t from_rank, int64_t to_rank, uint8_t *data)
{
    uint32_t *waits = room_for_waits(view, from_rank, to_rank);

    if (!waits)
        return GOAL_NO_MEMORY;
    for (int64_t rank = from_rank; rank < to_rank; rank++) {
        count_waits(view, rank, waits);
        data = pack_rank(view, rank, waits, data);
    }
    free(waits);
    return GOAL_OK;
}
