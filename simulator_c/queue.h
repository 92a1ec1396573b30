/* The queue of events, ordered by (time, seq): a radix heap of base 16 whose front is sorted.
 *
 * An event lies in the bucket (level, digit): the highest hexadecimal digit in which its time
 * differs from `last`, and its value there. When the front is used up, the lowest bucket becomes
 * the front if it is small or of one time only; else it is spread over the levels below. What comes
 * in below `limit`, the front's upper end, goes to a small heap next to the front. Events of one
 * time stand in the order they came in, which is nearly always that of seq, so the large buckets of
 * regular patterns are never sorted. Memory comes in chunks of 4 KiB from one pool and goes back
 * there.
 */
#ifndef NB_QUEUE_H
#define NB_QUEUE_H

#include <stdlib.h>
#include <string.h>

#include "simulator.h"

struct event {
    uint64_t time;
    uint32_t seq;
    uint32_t op;   /* of a message: its send; of a wake-up: the class that waits */
    uint32_t host; /* where it happens */
    uint32_t aux;  /* OPERATION, WAKE, or the rank that a message comes from */
};

enum { OPERATION = 0x80000000u, WAKE = 0x80000001u };
enum { CHUNK_EVENTS = 170, SMALL_BUCKET = 2048, NEAR_LIMIT = 4096, SLAB_CHUNKS = 64 };

struct chunk {
    struct chunk *next;
    uint64_t used;
    struct event event[CHUNK_EVENTS];
};

struct bucket {
    struct chunk *first, *last;
    uint64_t count, least; /* events; the soonest's time */
    int unsorted;
};

struct queue {
    struct event *front, *front_end; /* the rest of the front's present stretch */
    /* the chunk it lies in; its successors follow. NULL: it lies in `sorted` */
    struct chunk *front_chunk;
    uint64_t limit, last;
    uint64_t present;   /* the front's only time, if it has but one */
    struct event *near; /* binary heap */
    uint64_t near_count, near_room;
    struct bucket bucket[16][16];
    uint16_t filled[16];          /* of a level: a bit for each bucket with events */
    uint32_t levels;              /* a bit for each level with events */
    struct event *sorted, *spare; /* room for sorting */
    uint64_t sorted_room;
    struct chunk *free;
    void *slabs;
    int failed; /* out of memory */
};

static inline int event_before(const struct event *a, const struct event *b)
{
    return a->time != b->time ? a->time < b->time : a->seq < b->seq;
}

static struct chunk *chunk_take(struct queue *queue)
{
    if (!queue->free) {
        void **slab = malloc(sizeof(void *) * 2 + SLAB_CHUNKS * sizeof(struct chunk));
        if (!slab) {
            queue->failed = 1;
            return NULL;
        }
        slab[0] = queue->slabs;
        queue->slabs = slab;
        struct chunk *chunks = (struct chunk *)(slab + 2);
        for (int i = 0; i < SLAB_CHUNKS; i++) {
            chunks[i].next = queue->free;
            queue->free = &chunks[i];
        }
    }
    struct chunk *chunk = queue->free;
    queue->free = chunk->next;
    chunk->next = NULL;
    chunk->used = 0;
    return chunk;
}

static inline void chunk_give(struct queue *queue, struct chunk *chunk)
{
    chunk->next = queue->free;
    queue->free = chunk;
}

static inline void bucket_push(struct queue *queue, const struct event *event)
{
    uint64_t differs = event->time ^ queue->last;
    int level = differs ? (63 - __builtin_clzll(differs)) / 4 : 0,
        digit = (int)(event->time >> (4 * level)) & 15;
    struct bucket *bucket = &queue->bucket[level][digit];
    struct chunk *chunk = bucket->last;
    if (!chunk || chunk->used == CHUNK_EVENTS) {
        struct chunk *fresh = chunk_take(queue);
        if (!fresh)
            return;
        if (chunk) {
            chunk->next = fresh;
            bucket->unsorted |= event_before(event, &chunk->event[CHUNK_EVENTS - 1]);
        } else {
            bucket->first = fresh;
            bucket->least = event->time;
            queue->filled[level] |= (uint16_t)(1u << digit);
            queue->levels |= 1u << level;
        }
        bucket->last = chunk = fresh;
    } else {
        bucket->unsorted |= event_before(event, &chunk->event[chunk->used - 1]);
    }
    chunk->event[chunk->used++] = *event;
    bucket->least = event->time < bucket->least ? event->time : bucket->least;
    bucket->count++;
}

static inline void near_push(struct queue *queue, const struct event *event)
{
    if (queue->near_count == queue->near_room) {
        uint64_t room = queue->near_room ? 2 * queue->near_room : 1024;
        struct event *near = realloc(queue->near, room * sizeof *near);
        if (!near) {
            queue->failed = 1;
            return;
        }
        queue->near = near;
        queue->near_room = room;
    }
    uint64_t i = queue->near_count++;
    for (; i > 0 && event_before(event, &queue->near[(i - 1) / 2]); i = (i - 1) / 2)
        queue->near[i] = queue->near[(i - 1) / 2];
    queue->near[i] = *event;
}

static inline struct event near_pop(struct queue *queue)
{
    struct event top = queue->near[0], moved = queue->near[--queue->near_count];
    uint64_t i = 0, child;
    while ((child = 2 * i + 1) < queue->near_count) {
        child += child + 1 < queue->near_count &&
                 event_before(&queue->near[child + 1], &queue->near[child]);
        if (!event_before(&queue->near[child], &moved))
            break;
        queue->near[i] = queue->near[child];
        i = child;
    }
    queue->near[i] = moved;
    return top;
}

/* Merge sort from runs of eight; returns where the result lies, one of the two arrays. */
static struct event *event_sort(struct event *from, struct event *to, uint64_t count)
{
    for (uint64_t run = 0; run < count; run += 8)
        for (uint64_t i = run + 1; i < run + 8 && i < count; i++) {
            struct event event = from[i];
            uint64_t j = i;
            for (; j > run && event_before(&event, &from[j - 1]); j--)
                from[j] = from[j - 1];
            from[j] = event;
        }
    for (uint64_t width = 8; width < count; width *= 2) {
        for (uint64_t low = 0; low < count; low += 2 * width) {
            uint64_t middle = low + width < count ? low + width : count,
                     high = middle + width < count ? middle + width : count;
            uint64_t a = low, b = middle;
            for (uint64_t i = low; i < high; i++)
                to[i] = a < middle && (b == high || !event_before(&from[b], &from[a])) ? from[a++]
                                                                                       : from[b++];
        }
        struct event *other = from;
        from = to;
        to = other;
    }
    return from;
}

static void bucket_empty(struct queue *queue, int level, int digit)
{
    queue->bucket[level][digit] = (struct bucket){NULL, NULL, 0, 0, 0};
    queue->filled[level] &= (uint16_t)~(1u << digit);
    if (!queue->filled[level])
        queue->levels &= ~(1u << level);
}

/* The bucket's events, copied and sorted, become the front. */
static void front_from_copy(struct queue *queue, struct bucket bucket)
{
    if (bucket.count > queue->sorted_room) {
        uint64_t room = bucket.count + bucket.count / 2;
        free(queue->sorted);
        queue->sorted = malloc(2 * room * sizeof *queue->sorted);
        if (!queue->sorted) {
            queue->sorted_room = 0;
            queue->failed = 1;
            return;
        }
        queue->sorted_room = room;
        queue->spare = queue->sorted + room;
    }
    uint64_t count = 0;
    for (struct chunk *chunk = bucket.first, *next; chunk; chunk = next) {
        memcpy(queue->sorted + count, chunk->event, chunk->used * sizeof *chunk->event);
        count += chunk->used;
        next = chunk->next;
        chunk_give(queue, chunk);
    }
    queue->front = bucket.unsorted ? event_sort(queue->sorted, queue->spare, count) : queue->sorted;
    queue->front_end = queue->front + count;
    queue->front_chunk = NULL;
}

static void bucket_spread(struct queue *queue, struct bucket bucket)
{
    queue->last = bucket.least;
    for (struct chunk *chunk = bucket.first, *next; chunk; chunk = next) {
        for (uint64_t i = 0; i < chunk->used; i++)
            bucket_push(queue, &chunk->event[i]);
        next = chunk->next;
        chunk_give(queue, chunk);
    }
}

/* Front and heap are empty: make the lowest bucket the front. Returns 0 if there is none. */
static int queue_refill(struct queue *queue)
{
    while (queue->levels && !queue->failed) {
        int level = __builtin_ctz(queue->levels), digit = __builtin_ctz(queue->filled[level]);
        struct bucket bucket = queue->bucket[level][digit];
        uint64_t low = level == 15 ? 0 : queue->last >> (4 * level + 4) << (4 * level + 4);
        low |= (uint64_t)digit << (4 * level);
        bucket_empty(queue, level, digit);
        if (level > 0 && bucket.count > SMALL_BUCKET) {
            bucket_spread(queue, bucket);
            continue;
        }
        queue->last = low;
        queue->limit = level == 0 ? low : low + (1ull << (4 * level));
        queue->present = level == 0 ? low : UINT64_MAX;
        if (level > 0 || bucket.unsorted) {
            front_from_copy(queue, bucket);
        } else {
            queue->front_chunk = bucket.first;
            queue->front = bucket.first->event;
            queue->front_end = queue->front + bucket.first->used;
        }
        return !queue->failed;
    }
    return 0;
}

/* The heap has grown too large for the front's stretch of time: narrow the stretch, put all back
 * into buckets. */
static void queue_narrow(struct queue *queue)
{
    struct event *near = queue->near;
    uint64_t count = queue->near_count, least = near[0].time;
    if (queue->front < queue->front_end && queue->front->time < least)
        least = queue->front->time;
    if (least < queue->last)
        return;
    queue->last = queue->limit = least;
    queue->present = UINT64_MAX;
    for (struct event *event = queue->front; event < queue->front_end; event++)
        bucket_push(queue, event);
    queue->front = queue->front_end = NULL;
    for (uint64_t i = 0; i < count; i++)
        bucket_push(queue, &near[i]);
    queue->near_count = 0;
}

static inline void queue_push(struct queue *queue, const struct event *event)
{
    if (event->time >= queue->limit) {
        bucket_push(queue, event);
        return;
    }
    near_push(queue, event);
    if (queue->near_count > NEAR_LIMIT && !queue->front_chunk)
        queue_narrow(queue);
}

/* The same for an event that may be older than others of the present time. */
static inline void queue_push_old(struct queue *queue, const struct event *event)
{
    if (event->time == queue->present)
        near_push(queue, event);
    else
        queue_push(queue, event);
}

static inline void front_advance(struct queue *queue)
{
    if (++queue->front == queue->front_end && queue->front_chunk) {
        struct chunk *done = queue->front_chunk;
        queue->front_chunk = done->next;
        chunk_give(queue, done);
        if (queue->front_chunk) {
            queue->front = queue->front_chunk->event;
            queue->front_end = queue->front + queue->front_chunk->used;
        } else {
            queue->front = queue->front_end = NULL;
        }
    }
}

static inline int queue_pop(struct queue *queue, struct event *event)
{
    if (queue->near_count &&
        (queue->front == queue->front_end || event_before(&queue->near[0], queue->front))) {
        *event = near_pop(queue);
        return 1;
    }
    if (queue->front == queue->front_end && !queue_refill(queue))
        return 0;
    *event = *queue->front;
    front_advance(queue);
    return 1;
}

/* When the next event happens; UINT64_MAX: there is none. Takes nothing out of its bucket. */
static inline uint64_t queue_least(const struct queue *queue)
{
    uint64_t least = queue->near_count ? queue->near[0].time : UINT64_MAX;
    if (queue->front < queue->front_end)
        return queue->front->time < least ? queue->front->time : least;
    if (least != UINT64_MAX || !queue->levels)
        return least;
    int level = __builtin_ctz(queue->levels);
    return queue->bucket[level][__builtin_ctz(queue->filled[level])].least;
}

/* The next event if it happens before `end`. No bucket that begins later is opened: `last` stays
 * below `end`, so that events from `end` on may still come in. */
static inline int queue_pop_before(struct queue *queue, uint64_t end, struct event *event)
{
    return queue_least(queue) < end && queue_pop(queue, event);
}

static inline void queue_free(struct queue *queue)
{
    for (void **slab = queue->slabs, **next; slab; slab = next) {
        next = slab[0];
        free(slab);
    }
    free(queue->near);
    free(queue->sorted);
}
#endif
