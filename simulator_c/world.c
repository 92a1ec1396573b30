/* The memory of the implicit evaluation. */
#define _DEFAULT_SOURCE /* madvise */
#include "world.h"

#include <stdlib.h>
#include <sys/mman.h>

/* In large pages where it is large: ranks and messages are met in no order once noise has scattered
 * them. */
void *nb_room_for(struct world *w, size_t count, size_t size)
{
    const size_t bytes = count * size;
    void *room;
    if (w->rooms == ROOMS)
        return NULL;
    if (bytes < LARGE_PAGE) {
        room = calloc(1, bytes ? bytes : 1);
    } else {
        room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        room = room == MAP_FAILED ? NULL : room;
        if (room)
            madvise(room, bytes, MADV_HUGEPAGE);
    }
    if (room)
        w->room[w->rooms++] = (struct room){room, bytes};
    return room;
}

void nb_give_all_back(struct world *w)
{
    while (w->rooms)
        nb_give_back(&w->room[--w->rooms]);
}

void nb_give_back(const struct room *room)
{
    if (room->bytes < LARGE_PAGE)
        free(room->start);
    else
        munmap(room->start, room->bytes);
}
