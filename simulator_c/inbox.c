/* The pool of messages. */
#include "inbox.h"

#include <string.h>

static int more_nodes(struct world *w)
{
    const size_t capacity = w->capacity < UINT32_MAX / 3 * 2 ? w->capacity + (size_t)w->capacity / 2
                                                             : UINT32_MAX;
    struct node *nodes = w->used < UINT32_MAX ? nb_room_for(w, capacity, sizeof *nodes) : NULL;
    if (!nodes) {
        w->failed = NB_IMPLICIT_MEMORY;
        return 0;
    }
    memcpy(nodes, w->nodes, w->used * sizeof *nodes);
    for (uint32_t i = 0; i + 1 < w->rooms; i++)
        if (w->room[i].start == w->nodes) {
            nb_give_back(&w->room[i]);
            w->room[i] = w->room[--w->rooms];
        }
    w->nodes = nodes;
    w->capacity = (uint32_t)capacity;
    return 1;
}

uint32_t nb_spare_node(struct world *w)
{
    uint32_t node = w->spare;
    if (node) {
        w->spare = w->nodes[node].sibling;
        return node;
    }
    if (w->used == w->capacity && !more_nodes(w))
        return 0;
    return w->used++;
}
