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

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    state = strtoull(argv[1], NULL, 10) * 2654435761u + 88172645463325252u;
    uint64_t events = strtoull(argv[2], NULL, 10), spread = strtoull(argv[3], NULL, 10),
             burst = strtoull(argv[4], NULL, 10);
    struct queue *queue = calloc(1, sizeof *queue);
    queue->present = UINT64_MAX;
    struct event *expected = malloc(events * sizeof *expected), *got = malloc(events * sizeof *got),
                 event = {0, 0, 0, 0, 0};
    uint64_t pushed = 0, popped = 0, now = 0;
    while (popped < events) {
        for (uint64_t i = draw(burst); i > 0 && pushed < events; i--) {
            /* soon, at once, or much later */
            uint64_t later = draw(4) ? draw(spread) : draw(4) ? 0 : draw(1000) * spread;
            expected[pushed] = (struct event){now + later, (uint32_t)pushed, 0, 0, 0};
            queue_push(queue, &expected[pushed]);
            pushed++;
        }
        for (uint64_t i = draw(burst) + (pushed == events); i > 0 && queue_pop(queue, &event);
             i--) {
            now = event.time;
            got[popped++] = event;
            /* an old one comes again at the present time or later */
            if (draw(8) == 0 && pushed < events) {
                uint64_t again = now + (draw(2) ? draw(spread) : 0);
                if (again > now || event.seq > got[popped - 1].seq) {
                    popped--;
                    event.time = again;
                    expected[event.seq].time = again;
                    queue_push_old(queue, &event);
                }
            }
        }
    }
    qsort(expected, events, sizeof *expected, by_order);
    for (uint64_t i = 0; i < events; i++)
        if (expected[i].time != got[i].time || expected[i].seq != got[i].seq) {
            printf("event %lu: expected (%lu, %u), got (%lu, %u)\n", (unsigned long)i,
                   (unsigned long)expected[i].time, expected[i].seq, (unsigned long)got[i].time,
                   got[i].seq);
            return 1;
        }
    int left = queue_pop(queue, &event);
    queue_free(queue);
    free(queue);
    free(expected);
    free(got);
    return left;
}
