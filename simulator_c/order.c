/* Which of two events of the implicit evaluation came first, when both happened in the same moment.
 *
 * Events that were created in the same moment go in the order of the events that created them, and
 * so on back to the start, where ranks go in the order of their numbers. At first each event
 * carries only a hash of the times of all its ancestors, and the rank where its line began: equal
 * hashes, and the rank decides. Where all steps take the same time unless something is in the way
 * (`even`), it carries when the last one was that took longer: of two lines with different last
 * such steps that with the later one comes first, for before that step it was the earlier one. As
 * soon as that leaves an order open that may matter (a tie), all is done again with a history of
 * events.
 *
 * What holds: with a history the order is the engine's. Without one it is, too, unless two events
 * of the same moment have different pasts whose 32-bit hashes are equal, which happens by chance
 * once in 2^32 such pairs: then their ranks' numbers decide, and no tie is noticed.
 */
#include "order.h"

/* When an event was put into the queue, by which other event, and as which of that one's. */
static struct past creation(const struct past *history, uint32_t event)
{
    const struct past *entry = &history[event / 4];
    switch (event % 4) {
    case AT_START: return (struct past){0, 0, UINT32_MAX, event / 4};
    case RECEIVED: return (struct past){entry->created, 0, event / 4 * 4 + SENT, 0};
    default: return *entry;
    }
}

int nb_was_first(const struct past *history, uint32_t a, uint32_t b)
{
    for (;;) {
        struct past one = creation(history, a), two = creation(history, b);
        if (one.released != two.released)
            return one.released < two.released;
        if (one.parent == two.parent)
            return one.index < two.index;
        if (one.parent == UINT32_MAX || two.parent == UINT32_MAX)
            return one.parent == UINT32_MAX;
        a = one.parent;
        b = two.parent;
    }
}
