#include "schedule.h"

static int64_t entry(const void *array, int width, int64_t i)
{
    return width == 4 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

static int64_t increment(void *array, int width, int64_t i)
{
    return width == 4 ? ((int32_t *)array)[i]++ : ((int64_t *)array)[i]++;
}

static void set(void *array, int width, int64_t i, int64_t value)
{
    if (width == 4)
        ((int32_t *)array)[i] = (int32_t)value;
    else
        ((int64_t *)array)[i] = value;
}

/* The rank of an operation; neighbours in a list of pairs are mostly of the same rank, or of the
 * next. */
static int64_t find_rank(const int64_t *rank_start, int64_t ranks, int64_t operation, int64_t hint)
{
    if (rank_start[hint] <= operation && operation < rank_start[hint + 1])
        return hint;
    if (hint + 1 < ranks && rank_start[hint + 1] <= operation && operation < rank_start[hint + 2])
        return hint + 1;
    int64_t low = 0, high = ranks - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (rank_start[middle] <= operation)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

int64_t nb_schedule_group(const int64_t *rank_start, int64_t ranks, int64_t pairs,
                          const void *operation, const void *needed, int width, void *start,
                          int start_width, int32_t *local)
{
    int64_t operations = rank_start[ranks], rank = 0;
    for (int64_t i = 0; i < pairs; i++)
        increment(start, start_width, entry(needed, width, i));
    int64_t sum = 0;
    for (int64_t i = 0; i <= operations; i++) {
        int64_t count = entry(start, start_width, i);
        set(start, start_width, i, sum);
        sum += count;
    }
    for (int64_t i = 0; i < pairs; i++) {
        int64_t from = entry(needed, width, i), to = entry(operation, width, i);
        rank = find_rank(rank_start, ranks, from, rank);
        if (to < rank_start[rank] || to >= rank_start[rank + 1])
            return i;
        local[increment(start, start_width, from)] = (int32_t)(to - rank_start[rank]);
    }
    /* Each start has moved to its end, which is the next one's start: move them back. */
    for (int64_t i = operations; i > 0; i--)
        set(start, start_width, i, entry(start, start_width, i - 1));
    set(start, start_width, 0, 0);
    return -1;
}

int64_t nb_schedule_bad_edge(const int64_t *rank_start, int64_t ranks, const void *start,
                             int start_width, const int32_t *local)
{
    for (int64_t rank = 0; rank < ranks; rank++) {
        int64_t size = rank_start[rank + 1] - rank_start[rank];
        for (int64_t i = 0; i < size; i++) {
            int64_t operation = rank_start[rank] + i,
                    end = entry(start, start_width, operation + 1);
            for (int64_t k = entry(start, start_width, operation); k < end; k++)
                if (local[k] < 0 || local[k] >= size || local[k] == i)
                    return operation;
        }
    }
    return -1;
}
