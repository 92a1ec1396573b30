/* A schedule as GOAL text: a rank's statements, then its dependencies, so that labels are always
 * known when they are used. */
#include "goal_internal.h"

#include <string.h>

enum { LONGEST = 256 }; /* of a line */

static char *text_of(char *at, const char *text)
{
    size_t length = strlen(text);

    memcpy(at, text, length);
    return at + length;
}

static char *number(char *at, int64_t value)
{
    char digits[20];
    int length = 0;

    if (value < 0)
        *at++ = '-';
    value = value < 0 ? -value : value;
    do
        digits[length++] = (char)('0' + value % 10);
    while (value /= 10);
    while (length)
        *at++ = digits[--length];
    return at;
}

static char *label(char *at, int64_t operation)
{
    *at++ = 'l';
    return number(at, operation + 1);
}

static char *option(char *at, const char *name, int64_t value)
{
    return number(text_of(at, name), value);
}

static char *statement(char *at, const struct goal_view *view, int64_t rank, int64_t operation)
{
    int64_t i = view->rank_start[rank] + operation;
    int cpu = view->cpu[i * view->cpu_step], nic = view->nic[i * view->nic_step],
        kind = view->kind[i];

    at = text_of(label(at, operation), ": ");
    if (kind == 3) {
        at = number(text_of(at, "calc "), goal_size(view, i));
    } else {
        at = number(text_of(at, kind == 1 ? "send " : "recv "), goal_size(view, i));
        at = number(text_of(at, kind == 1 ? "b to " : "b from "), view->peer[i]);
        at = option(at, " tag ", view->tag[i * view->tag_step]);
    }
    at = cpu || (nic && kind != 3) ? option(at, " cpu ", cpu) : at;
    at = nic && kind != 3 ? option(at, " nic ", nic) : at;
    *at++ = '\n';
    return at;
}

/* Dependent number `which` of an operation, those that wait for its end first; -1: there are no
 * more. */
static int64_t dependent(const struct goal_view *view, int64_t i, int64_t which, int *begun)
{
    for (*begun = 0; *begun < 2; ++*begun) {
        const void *start = *begun ? view->begun_start : view->done_start;
        int32_t width = *begun ? view->begun_width : view->done_width;
        int64_t from = start ? goal_integer(start, width, i) : 0,
                count = start ? goal_integer(start, width, i + 1) - from : 0;

        if (which < count)
            return (*begun ? view->begun_op : view->done_op)[from + which];
        which -= count;
    }
    return -1;
}

/* The line after `place`, which moves on; NULL: it needs more room. */
static char *next_line(const struct goal_view *view, struct goal_place *place, char *at,
                       const char *end)
{
    int64_t count = view->rank_start[place->rank + 1] - view->rank_start[place->rank],
            needed = place->operation - count, other;
    int begun;

    if (needed == count) {
        at = text_of(at, "}\n");
        *place = (struct goal_place){place->rank + 1, -1, 0};
        return at;
    }
    if (place->operation < 0) {
        at = text_of(number(text_of(at, place->rank ? "\nrank " : "rank "), place->rank), " {\n");
        place->operation = 0;
        return at;
    }
    if (needed < 0) {
        if (end - at < LONGEST)
            return NULL;
        return statement(at, view, place->rank, place->operation++);
    }
    other = dependent(view, view->rank_start[place->rank] + needed, place->dependent, &begun);
    if (other < 0) {
        place->operation++;
        place->dependent = 0;
        return at;
    }
    if (end - at < LONGEST)
        return NULL;
    place->dependent++;
    at = text_of(label(at, other), begun ? " irequires " : " requires ");
    at = label(at, needed);
    *at++ = '\n';
    return at;
}

int64_t nb_goal_print(const struct goal_view *view, struct goal_place *place, char *text,
                      int64_t room)
{
    char *at = text, *next;

    while (place->rank < view->ranks && text + room - at >= LONGEST &&
           (next = next_line(view, place, at, text + room)))
        at = next;
    return at - text;
}
