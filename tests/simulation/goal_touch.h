/* Every entry of what was read, so that a sanitizer sees those that are not there. */
#ifndef NB_TEST_GOAL_TOUCH_H
#define NB_TEST_GOAL_TOUCH_H

#include "goal.h"

#include <stdlib.h>

static inline void touch(struct goal_columns *columns)
{
    struct goal_column *all[] = {&columns->kind,    &columns->peer,       &columns->size,
                                 &columns->tag,     &columns->cpu,        &columns->nic,
                                 &columns->done_op, &columns->done_start, &columns->begun_start,
                                 &columns->begun_op};
    int64_t sum = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int64_t entry = 0; entry < all[i]->count; entry++)
            sum += nb_goal_value(all[i], entry) & 1;
        nb_goal_release(nb_goal_take(all[i]));
    }
    if (sum < 0)
        abort();
}

#endif
