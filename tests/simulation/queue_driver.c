/* Random pushes and pops of the event queue against a plain sorted list. Usage: queue_driver SEED
 * EVENTS SPREAD BURST */
#include <stdio.h>

#include "queue.h"

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static int by_order(const void *a, const void *b)
{
    return event_before(a, b) ? -1 : event_before(b, a);
}

struct test {
    struct queue *queue;
    struct event *expected, *got; /* by number; in the order they came out */
    uint64_t events, spread, burst, pushed, popped, now;
};

static void push_some(struct test *t)
{
    for (uint64_t i = draw(t->burst); i > 0 && t->pushed < t->events; i--) {
        /* soon, at once, or much later */
        uint64_t later = draw(4) ? draw(t->spread) : draw(4) ? 0 : draw(1000) * t->spread;
        t->expected[t->pushed] = (struct event){t->now + later, (uint32_t)t->pushed, 0, 0, 0};
        queue_push(t->queue, &t->expected[t->pushed]);
        t->pushed++;
    }
}

static void pop_some(struct test *t)
{
    struct event event = {0, 0, 0, 0, 0};
    uint64_t i = draw(t->burst) + (t->pushed == t->events);
    for (; i > 0 && queue_pop(t->queue, &event); i--) {
        t->now = event.time;
        t->got[t->popped++] = event;
        /* an old one comes again at the present time or later */
        if (draw(8) || t->pushed == t->events)
            continue;
        uint64_t again = t->now + (draw(2) ? draw(t->spread) : 0);
        if (again > t->now || event.seq > t->got[t->popped - 1].seq) {
            t->popped--;
            event.time = again;
            t->expected[event.seq].time = again;
            queue_push_old(t->queue, &event);
        }
    }
}

static int compare(struct test *t)
{
    qsort(t->expected, t->events, sizeof *t->expected, by_order);
    for (uint64_t i = 0; i < t->events; i++) {
        const struct event *expected = &t->expected[i], *got = &t->got[i];
        if (expected->time == got->time && expected->seq == got->seq)
            continue;
        printf("event %lu: expected (%lu, %u), got (%lu, %u)\n", (unsigned long)i,
               (unsigned long)expected->time, expected->seq, (unsigned long)got->time, got->seq);
        return 1;
    }
    struct event left;
    return queue_pop(t->queue, &left);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    state = strtoull(argv[1], NULL, 10) * 2654435761u + 88172645463325252u;
    struct test t = {
        .queue = calloc(1, sizeof *t.queue),
        .events = strtoull(argv[2], NULL, 10),
        .spread = strtoull(argv[3], NULL, 10),
        .burst = strtoull(argv[4], NULL, 10)
    };
    t.expected = malloc(t.events * sizeof *t.expected);
    t.got = malloc(t.events * sizeof *t.got);
    t.queue->present = UINT64_MAX;
    while (t.popped < t.events) {
        push_some(&t);
        pop_some(&t);
    }
    int wrong = compare(&t);
    queue_free(t.queue);
    free(t.queue);
    free(t.expected);
    free(t.got);
    return wrong;
}
