/* Messages on their way, in the implicit evaluation: nodes from one pool, in pairing heaps.
 * The heaps are inline: calls cost exchanges with noise a tenth more time. */
#ifndef NB_INBOX_H
#define NB_INBOX_H

#include "order.h"

/* A node of the common pool; 0 and w->failed: no memory. */
uint32_t nb_spare_node(struct world *w);

/* Messages that have arrived go in the order of their creation, others in that of their arrival. */
static inline int before(const struct world *w, const struct node *a, const struct node *b,
                         int arrived)
{
    if (!arrived && a->time != b->time)
        return a->time < b->time;
    if (a->created != b->created)
        return a->created < b->created;
    if (w->history)
        return nb_was_first(w->history, a->chain, b->chain);
    if (a->waited != b->waited) /* the send that was let go earlier */
        return a->waited > b->waited;
    if (w->even && a->chain == b->chain)
        return origin_of(w, a) < origin_of(w, b);
    if (a->origin != b->origin)
        return w->even ? a->origin > b->origin : a->origin < b->origin;
    if (a->longer != b->longer)
        return a->longer > b->longer;
    return a->chain < b->chain;
}

static inline uint32_t meld(const struct world *w, uint32_t a, uint32_t b, int arrived)
{
    struct node *nodes = w->nodes;
    if (!a || !b)
        return a ? a : b;
    if (before(w, &nodes[b], &nodes[a], arrived)) {
        uint32_t other = a;
        a = b;
        b = other;
    }
    nodes[b].sibling = nodes[a].child;
    nodes[a].child = b;
    return a;
}

/* The heap without its root: children in pairs from the left, then all from the right. */
static inline uint32_t without_root(const struct world *w, uint32_t root, int arrived)
{
    struct node *nodes = w->nodes;
    uint32_t left = nodes[root].child, pairs = 0, heap = 0;
    while (left) {
        uint32_t one = left, two = nodes[one].sibling;
        left = two ? nodes[two].sibling : 0;
        nodes[one].sibling = 0;
        if (two)
            nodes[two].sibling = 0;
        one = meld(w, one, two, arrived);
        nodes[one].sibling = pairs;
        pairs = one;
    }
    while (pairs) {
        uint32_t one = pairs;
        pairs = nodes[one].sibling;
        nodes[one].sibling = 0;
        heap = meld(w, heap, one, arrived);
    }
    return heap;
}

/* Every rank has nodes of its own, so that neighbours' messages are neighbours in memory; more come
 * from the common pool. */
static inline uint32_t own_node(const struct world *w, uint32_t rank)
{
    return OWN_NODES * (rank - w->first) + 1;
}

static inline uint32_t new_node(struct world *w, uint32_t rank, struct node content)
{
    uint32_t node = own_node(w, rank);
    if (w->nodes[node].taken)
        node = w->nodes[node + 1].taken ? nb_spare_node(w) : node + 1;
    if (node) {
        w->nodes[node] = content;
        w->nodes[node].taken = 1;
    }
    return node;
}

static inline void free_node(struct world *w, uint32_t node)
{
    if (node <= OWN_NODES * (w->last - w->first)) {
        w->nodes[node].taken = 0;
        return;
    }
    w->nodes[node].sibling = w->spare;
    w->spare = node;
}

#endif
