/* libFuzzer on the check that every plan passes before anything is forked: any rules, any lanes,
 * any columns.
 *
 * The columns are exactly as long as the plan says, so that a lane that reaches beyond them is
 * noticed.
 */
#define _GNU_SOURCE
#include "bytes.h"
#include "internal.h"

#include <math.h>

/* What the check lets pass can be replayed: every lane within the columns, in order, with policies
 * and lengths within the limits. */
static void check_accepted(const struct nb_injection *run)
{
    for (int lane = 0; lane < run->lane_count; lane++) {
        const struct nb_lane *slice = &run->lanes[lane];
        EXPECT(slice->first >= 0 && slice->count >= 0 &&
               slice->first + slice->count <= run->event_count);
        EXPECT(slice->cpu >= NB_ROAM && slice->cpu < NB_MAX_CPUS);
        for (int64_t i = slice->first; i < slice->first + slice->count; i++) {
            EXPECT(run->plan.start_ns[i] >= (i > slice->first ? run->plan.start_ns[i - 1] : 0));
            EXPECT(run->plan.duration_ns[i] >= 0 &&
                   run->plan.start_ns[i] + run->plan.duration_ns[i] >= 0);
            EXPECT(run->plan.priority[i] <= NB_HIGHEST_PRIORITY && run->plan.priority[i] >= -20);
            EXPECT(run->plan.kind[i] == NB_OCCUPY || nb_is_kind(run->plan.kind[i]));
            EXPECT(run->plan.kind[i] == NB_OCCUPY ||
                   (run->plan.intensity[i] > 0 && isfinite(run->plan.intensity[i])));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes from = {data, size};
    uint8_t events, lanes;
    int64_t event;
    draw(&from, &events, 1);
    draw(&from, &lanes, 1);
    events %= 32;
    lanes %= 8;
    struct nb_injection run = {.lane_count = lanes, .event_count = events};
    draw(&from, &run.rules, sizeof run.rules);
    run.lanes = drawn(&from, lanes, sizeof *run.lanes);
    run.plan.start_ns = drawn(&from, events, sizeof(int64_t));
    run.plan.duration_ns = drawn(&from, events, sizeof(int64_t));
    run.plan.policy = drawn(&from, events, 1);
    run.plan.priority = drawn(&from, events, 1);
    run.plan.kind = drawn(&from, events, 1);
    run.plan.intensity = drawn(&from, events, sizeof(double));
    const int code = nb_check(&run, &event);
    EXPECT((code == 0 && event == -1) || (code < 0 && event >= -1 && event < events));
    struct nb_excess excess;
    if (code == 0) {
        check_accepted(&run);
        EXPECT(nb_check_limits(&run, &excess) == 0 || excess.value > excess.most);
    }
    void *const columns[] = {run.lanes,         run.plan.start_ns, run.plan.duration_ns,
                             run.plan.policy,   run.plan.priority, run.plan.kind,
                             run.plan.intensity};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        free(columns[i]);
    return 0;
}
