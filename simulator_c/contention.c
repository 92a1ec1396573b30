/* Max-min fair sharing by progressive filling (Bertsekas, Gallager: Data Networks, section 6.5.2):
 * the fullest link gives each of its flows the same share; those have their rate; the rest is
 * shared again. Only flows that are connected with the change through links that could fill up
 * are worked out anew: a link that can carry all its flows at their full rate connects nobody. */
#include "contention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX
#define ROUNDING 1e-3   /* ps */
#define EVEN (1 + 1e-9) /* shares that differ by less are the same */

struct link {
    uint32_t first, count; /* its flows: 2^32 - 1 or a place, flow * hops + hop */
    double most;           /* of all its flows together */
    double free;           /* while filling: what is left, */
    uint32_t open;         /* for how many */
    uint32_t stamp;
};

struct neighbours {
    uint32_t before, after;
};

struct heap {
    uint32_t *item;
    uint32_t count;
};

struct contention {
    const struct nb_links *links;
    struct link *link;
    struct flight *flight;
    struct neighbours *next_to; /* room * hops */
    uint32_t used, room, free;
    struct heap starting, moving; /* by begins and seq; by ends */
    uint32_t *dirty, dirty_count; /* links that a change has touched */
    uint32_t *part;               /* flows of the update */
    uint32_t part_count, stamp;
    struct flight *ended;
    int64_t ended_count;
    uint64_t soonest; /* the next update, by the resolution */
};

static const int32_t *path_of(const struct contention *c, uint32_t i)
{
    return c->links->path + (int64_t)c->flight[i].route * c->links->hops;
}

/* --- heaps of flows ----------------------------------------------------------------------------
 */

static int before(const struct contention *c, const struct heap *heap, uint32_t a, uint32_t b)
{
    const struct flight *x = &c->flight[a], *y = &c->flight[b];
    uint64_t at = heap == &c->starting ? x->begins : x->ends,
             other = heap == &c->starting ? y->begins : y->ends;
    return at != other ? at < other : x->seq < y->seq;
}

static void put(struct contention *c, struct heap *heap, uint32_t place, uint32_t i)
{
    heap->item[place] = i;
    c->flight[i].place = place;
}

static void rise(struct contention *c, struct heap *heap, uint32_t place)
{
    uint32_t i = heap->item[place];
    for (; place && before(c, heap, i, heap->item[(place - 1) / 2]); place = (place - 1) / 2)
        put(c, heap, place, heap->item[(place - 1) / 2]);
    put(c, heap, place, i);
}

static void sink(struct contention *c, struct heap *heap, uint32_t place)
{
    uint32_t i = heap->item[place];
    for (uint32_t child; (child = 2 * place + 1) < heap->count; place = child) {
        child += child + 1 < heap->count &&
                 before(c, heap, heap->item[child + 1], heap->item[child]);
        if (!before(c, heap, heap->item[child], i))
            break;
        put(c, heap, place, heap->item[child]);
    }
    put(c, heap, place, i);
}

static void heap_add(struct contention *c, struct heap *heap, uint32_t i)
{
    put(c, heap, heap->count++, i);
    rise(c, heap, heap->count - 1);
}

static uint32_t heap_take(struct contention *c, struct heap *heap)
{
    uint32_t first = heap->item[0];
    if (--heap->count) {
        put(c, heap, 0, heap->item[heap->count]);
        sink(c, heap, 0);
    }
    return first;
}

/* --- memory ------------------------------------------------------------------------------------
 */

static int grow(void **array, size_t count, size_t size)
{
    void *larger = realloc(*array, count * size);
    *array = larger ? larger : *array;
    return larger != NULL;
}

static int make_room(struct contention *c)
{
    if (c->used < c->room || c->free != NOBODY)
        return 1;
    size_t room = c->room ? 2 * (size_t)c->room : 256, hops = (size_t)c->links->hops;
    if (room * hops >= NOBODY)
        return 0;
    if (!grow((void **)&c->flight, room, sizeof *c->flight) ||
        !grow((void **)&c->next_to, room * hops, sizeof *c->next_to) ||
        !grow((void **)&c->starting.item, room, sizeof(uint32_t)) ||
        !grow((void **)&c->moving.item, room, sizeof(uint32_t)) ||
        !grow((void **)&c->part, room, sizeof *c->part) ||
        !grow((void **)&c->ended, room, sizeof *c->ended))
        return 0;
    c->room = (uint32_t)room;
    return 1;
}

struct contention *nb_contention_new(const struct nb_links *links)
{
    struct contention *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->links = links;
    c->free = NOBODY;
    c->link = calloc((size_t)links->links + 1, sizeof *c->link);
    c->dirty = malloc(((size_t)links->links + 1) * sizeof *c->dirty);
    if (!c->link || !c->dirty) {
        nb_contention_free(c);
        return NULL;
    }
    for (int64_t l = 0; l < links->links; l++)
        c->link[l].first = NOBODY;
    return c;
}

void nb_contention_free(struct contention *c)
{
    if (!c)
        return;
    void *owned[] = {c->link,        c->flight, c->next_to, c->starting.item,
                     c->moving.item, c->dirty,  c->part,    c->ended};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    free(c);
}

int nb_contention_add(struct contention *c, const struct flight *flight)
{
    if (!make_room(c))
        return 0;
    uint32_t i = c->free;
    if (i != NOBODY)
        c->free = c->flight[i].op; /* free places are linked by it */
    else
        i = c->used++;
    c->flight[i] = *flight;
    c->flight[i].stamp = 0;
    heap_add(c, &c->starting, i);
    return 1;
}

uint64_t nb_contention_next(const struct contention *c)
{
    uint64_t next = UINT64_MAX;
    if (c->starting.count)
        next = c->flight[c->starting.item[0]].begins;
    if (c->moving.count && c->flight[c->moving.item[0]].ends < next)
        next = c->flight[c->moving.item[0]].ends;
    return next < c->soonest ? c->soonest : next;
}

/* --- who is on which link ----------------------------------------------------------------------
 */

/* Add a link to the update, if it could be full with all its flows. */
static void touch(struct contention *c, int32_t l)
{
    struct link *link = &c->link[l];
    if (link->stamp == c->stamp || link->most <= c->links->capacity[l] * EVEN)
        return;
    link->stamp = c->stamp;
    c->dirty[c->dirty_count++] = (uint32_t)l;
}

static void take_part(struct contention *c, uint32_t i)
{
    if (c->flight[i].stamp == c->stamp)
        return;
    c->flight[i].stamp = c->stamp;
    c->flight[i].was = c->flight[i].rate;
    c->part[c->part_count++] = i;
}

static void enter(struct contention *c, uint32_t i, uint64_t now)
{
    struct flight *flight = &c->flight[i];
    const int32_t *path = path_of(c, i);
    flight->most = INFINITY;
    for (int k = 0; k < c->links->hops && path[k] >= 0; k++)
        flight->most = fmin(flight->most, c->links->capacity[path[k]]);
    for (int k = 0; k < c->links->hops && path[k] >= 0; k++) {
        struct link *link = &c->link[path[k]];
        uint32_t at = i * (uint32_t)c->links->hops + (uint32_t)k;
        c->next_to[at] = (struct neighbours){NOBODY, link->first};
        if (link->first != NOBODY)
            c->next_to[link->first].before = at;
        link->first = at;
        link->count++;
        link->most += flight->most;
        touch(c, path[k]);
    }
    flight->rate = 0;
    flight->begins = now;
    flight->ends = UINT64_MAX;
    heap_add(c, &c->moving, i);
    take_part(c, i);
}

static void leave(struct contention *c, uint32_t i)
{
    const int32_t *path = path_of(c, i);
    for (int k = 0; k < c->links->hops && path[k] >= 0; k++) {
        struct link *link = &c->link[path[k]];
        struct neighbours beside = c->next_to[i * (uint32_t)c->links->hops + (uint32_t)k];
        if (beside.before == NOBODY)
            link->first = beside.after;
        else
            c->next_to[beside.before].after = beside.after;
        if (beside.after != NOBODY)
            c->next_to[beside.after].before = beside.before;
        touch(c, path[k]);
        /* an empty link has carried nothing: no rounding is handed on */
        link->most = --link->count ? link->most - c->flight[i].most : 0;
    }
    c->ended[c->ended_count++] = c->flight[i];
    c->flight[i].op = c->free;
    c->free = i;
}

/* --- rates -------------------------------------------------------------------------------------
 */

/* All flows that the touched links are connected with, by further links that could be full. */
static void gather(struct contention *c)
{
    uint32_t d = 0, k = 0;
    while (d < c->dirty_count || k < c->part_count) {
        if (k < c->part_count) {
            const int32_t *path = path_of(c, c->part[k++]);
            for (int hop = 0; hop < c->links->hops && path[hop] >= 0; hop++)
                touch(c, path[hop]);
            continue;
        }
        for (uint32_t at = c->link[c->dirty[d++]].first; at != NOBODY; at = c->next_to[at].after)
            take_part(c, at / (uint32_t)c->links->hops);
    }
}

/* A flow has its rate: its links have less for the others. */
static void fix(struct contention *c, uint32_t i, double rate)
{
    const int32_t *path = path_of(c, i);
    c->flight[i].rate = rate;
    for (int k = 0; k < c->links->hops && path[k] >= 0; k++) {
        struct link *link = &c->link[path[k]];
        if (link->stamp == c->stamp) {
            link->free = fmax(0, link->free - rate);
            link->open--;
        }
    }
}

static void set_ends(struct contention *c, uint32_t i, uint64_t now)
{
    struct flight *flight = &c->flight[i];
    if (flight->rate == flight->was)
        return;
    flight->left -= flight->was * (double)(now - flight->begins);
    flight->begins = now;
    flight->ends = now + (uint64_t)fmax(0, ceil(flight->left / flight->rate - ROUNDING));
    rise(c, &c->moving, flight->place);
    sink(c, &c->moving, flight->place);
}

static double least_share(const struct contention *c)
{
    double least = INFINITY;
    for (uint32_t d = 0; d < c->dirty_count; d++) {
        const struct link *link = &c->link[c->dirty[d]];
        if (link->open)
            least = fmin(least, link->free / link->open);
    }
    return least;
}

/* Does one of its links give it no more than this? */
static int is_held_to(const struct contention *c, uint32_t i, double share)
{
    const int32_t *path = path_of(c, i);
    if (c->flight[i].most <= share * EVEN)
        return 1;
    for (int k = 0; k < c->links->hops && path[k] >= 0; k++) {
        const struct link *link = &c->link[path[k]];
        if (link->stamp == c->stamp && link->free <= share * EVEN * link->open)
            return 1;
    }
    return 0;
}

static void fill(struct contention *c, uint64_t now)
{
    uint32_t count = c->part_count;
    for (uint32_t d = 0; d < c->dirty_count; d++) {
        struct link *link = &c->link[c->dirty[d]];
        link->free = c->links->capacity[c->dirty[d]];
        link->open = link->count;
    }
    while (count) {
        double share = least_share(c);
        for (uint32_t k = 0; k < count; k++)
            share = fmin(share, c->flight[c->part[k]].most);
        uint32_t rest = 0;
        for (uint32_t k = 0; k < count; k++) {
            uint32_t i = c->part[k];
            if (is_held_to(c, i, share)) {
                fix(c, i, fmin(share, c->flight[i].most));
                set_ends(c, i, now);
            } else {
                c->part[rest++] = i;
            }
        }
        count = rest;
    }
}

int64_t nb_contention_advance(struct contention *c, uint64_t now, const struct flight **ended)
{
    c->stamp++;
    c->dirty_count = 0;
    c->part_count = 0;
    c->ended_count = 0;
    c->soonest = now + c->links->resolution;
    while (c->moving.count && c->flight[c->moving.item[0]].ends <= now)
        leave(c, heap_take(c, &c->moving));
    while (c->starting.count && c->flight[c->starting.item[0]].begins <= now)
        enter(c, heap_take(c, &c->starting), now);
    gather(c);
    fill(c, now);
    *ended = c->ended;
    return c->ended_count;
}
