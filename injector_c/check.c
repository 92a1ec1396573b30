/* Whether a plan can be replayed: its lanes, its events and its rules, before anything is started.
 */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <math.h>

static bool kind_is_valid(int kind, double intensity)
{
    return kind == NB_OCCUPY || (nb_is_kind(kind) && isfinite(intensity) && intensity > 0);
}

static bool in_order(const struct nb_injection *run, int64_t i, int64_t before_ns)
{
    const struct nb_plan *plan = &run->plan;
    const int policy = plan->policy[i], priority = plan->priority[i];
    const bool realtime = nb_is_realtime(policy) && priority >= 1 &&
                          priority <= NB_HIGHEST_PRIORITY;
    const bool known = policy == NB_OTHER || policy == NB_BATCH || policy == NB_IDLE;
    const int64_t start = plan->start_ns[i], duration = plan->duration_ns[i];
    const int kind = plan->kind ? plan->kind[i] : NB_OCCUPY;
    const int64_t longest = kind == NB_OCCUPY ? run->rules.longest_event_ns : run->rules.limit_ns;
    return (realtime || (known && priority >= -20 && priority <= 19)) && start >= before_ns &&
           start < INT64_MAX / 4 && duration >= 0 && duration <= longest &&
           kind_is_valid(kind, plan->intensity ? plan->intensity[i] : 0);
}

static bool is_among(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

static bool costs_hold(const struct nb_costs *costs)
{
    if (!is_among(costs->points, 0, NB_EXIT_POINTS) || !is_among(costs->wake_ns, 0, NB_SECOND_NS) ||
        !is_among(costs->wake_most_ns, 0, NB_SECOND_NS))
        return false;
    for (int64_t i = 0; i < costs->points; i++)
        if (costs->length_ns[i] <= (i ? costs->length_ns[i - 1] : 0) ||
            !is_among(costs->exit_ns[i], 0, NB_SECOND_NS))
            return false;
    return costs->exit_per_wake >= 0 && costs->exit_per_wake <= 10;
}

static bool core_kinds_hold(const struct nb_injection *run)
{
    for (int kind = 0; kind < NB_CORE_KINDS; kind++)
        if (!costs_hold(&run->rules.costs[kind]))
            return false;
    for (int cpu = 0; cpu < NB_MAX_CPUS; cpu++)
        if (run->core_kind[cpu] >= NB_CORE_KINDS || !run->rules.costs[run->core_kind[cpu]].points)
            return false;
    return true;
}

static bool rules_hold(const struct nb_rules *rules)
{
    const int64_t most = INT64_MAX / 4;
    const int64_t positive[] = {rules->limit_ns, rules->armed_limit_ns, rules->realtime_limit_us};
    const int64_t times[] = {
        rules->wake_allowance_ns, rules->give_up_ns, rules->longest_event_ns,
        rules->full_stop_second_ns, rules->full_stop_ten_seconds_ns
    };
    for (int i = 0; i < 3; i++)
        if (!is_among(positive[i], 1, most))
            return false;
    for (int i = 0; i < 5; i++)
        if (!is_among(times[i], 0, most))
            return false;
    return is_among(rules->cpus, 0, NB_MAX_CPUS);
}

int nb_check(const struct nb_injection *run, int64_t *event)
{
    *event = -1;
    if (run->lane_count < 1 || run->lane_count > NB_MAX_LANES || run->event_count < 0 ||
        !rules_hold(&run->rules) || !core_kinds_hold(run))
        return -EINVAL;
    for (int lane = 0; lane < run->lane_count; lane++) {
        const struct nb_lane *slice = &run->lanes[lane];
        if (slice->cpu < NB_ROAM || slice->cpu >= NB_MAX_CPUS || slice->first < 0 ||
            slice->first > run->event_count || slice->count < 0 ||
            slice->count > run->event_count - slice->first)
            return -EINVAL;
        int64_t before_ns = 0;
        for (int64_t i = slice->first; i < slice->first + slice->count; i++) {
            if (!in_order(run, i, before_ns)) {
                *event = i;
                return -EINVAL;
            }
            before_ns = run->plan.start_ns[i];
        }
    }
    return 0;
}
