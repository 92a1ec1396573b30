/* Columns that grow, and that take no memory as long as all their entries are the same. */
#include "goal_internal.h"

#include <stdlib.h>
#include <string.h>

int goal_reserve(void **data, int64_t *room, int64_t wanted, size_t width)
{
    int64_t larger = *room > 64 ? *room : 64;
    void *moved;

    if (wanted <= *room)
        return GOAL_OK;
    while (larger < wanted)
        larger += larger / 2;
    moved = realloc(*data, (size_t)larger * width);
    if (!moved)
        return GOAL_NO_MEMORY;
    *data = moved;
    *room = larger;
    return GOAL_OK;
}

static int widen(struct goal_column *column)
{
    int64_t *wide = malloc((size_t)column->room * sizeof *wide);

    if (!wide)
        return GOAL_NO_MEMORY;
    for (int64_t i = 0; i < column->count; i++)
        wide[i] = nb_goal_value(column, i);
    free(column->data);
    column->data = (uint8_t *)wide;
    column->width = 8;
    column->limit = INT64_MAX;
    return GOAL_OK;
}

/* The first entry that differs from all before it: from now on every entry is stored. */
static int unfold(struct goal_column *column)
{
    int64_t count = column->count, value = column->value;

    if (value > column->limit) {
        column->width = 8;
        column->limit = INT64_MAX;
    }
    if (goal_reserve((void **)&column->data, &column->room, count + 1, (size_t)column->width))
        return GOAL_NO_MEMORY;
    column->varied = 1;
    column->count = 0;
    while (column->count < count)
        goal_push(column, value);
    return GOAL_OK;
}

int goal_push_slowly(struct goal_column *column, int64_t value)
{
    if (!column->varied) {
        if (!column->count) {
            column->value = value;
            column->count = 1;
            return GOAL_OK;
        }
        if (unfold(column))
            return GOAL_NO_MEMORY;
    }
    if (goal_reserve((void **)&column->data, &column->room, column->count + 1,
                     (size_t)column->width) ||
        (value > column->limit && widen(column)))
        return GOAL_NO_MEMORY;
    return goal_push(column, value);
}

int goal_push_same(struct goal_column *column, int64_t value, int64_t times)
{
    int problem = GOAL_OK;

    if (times && !column->varied && (!column->count || column->value == value)) {
        column->value = value;
        column->count += times;
        return GOAL_OK;
    }
    while (times-- > 0 && !problem)
        problem = goal_push(column, value);
    return problem;
}

int64_t nb_goal_value(const struct goal_column *column, int64_t entry)
{
    if (!column->varied)
        return column->value;
    if (column->width == 1)
        return column->data[entry];
    if (column->width == 8)
        return ((int64_t *)column->data)[entry];
    return column->limit > INT32_MAX ? (int64_t)((uint32_t *)column->data)[entry]
                                     : ((int32_t *)column->data)[entry];
}

void *nb_goal_take(struct goal_column *column)
{
    void *data = column->data;
    void *fitting;

    if (column->count && data &&
        (fitting = realloc(data, (size_t)column->count * (size_t)column->width)))
        data = fitting;
    column->data = NULL;
    column->room = 0;
    return data;
}

void nb_goal_release(void *data)
{
    free(data);
}
