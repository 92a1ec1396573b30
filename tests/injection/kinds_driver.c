/* Drives every kind of noise without Python, for the sanitizers: `kinds_driver FOLDER`; once to the
 * end, once stopped in the middle. */
#define _GNU_SOURCE
#include "small.h"

#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH_NS = 8000000 };

static double modest(int kind)
{
    const double per_s[] = {
        [NB_DUTY] = 0.2, [NB_IO_METADATA] = 1e3, [NB_TIMER] = 1e3, [NB_IPI] = 1e3
    };
    return per_s[kind] > 0 ? per_s[kind] : 1e7;
}

static const struct nb_kind_options options = {
    .memory_bytes = 16 << 20, .file_bytes = 1 << 20, .cache_bytes = 4194304
};

/* One lane a kind, some of them roaming. */
static struct nb_injection prepare(struct shared *s, const char *folder, int first_kind, int count,
                                   int64_t length_ns)
{
    struct nb_injection run = small_injection(s, count, 0);
    for (int i = 0; i < count; i++) {
        s->duration[i] = length_ns;
        s->policy[i] = NB_OTHER;
        s->priority[i] = 0;
        s->kind[i] = (int8_t)(first_kind + i);
        s->intensity[i] = modest(first_kind + i);
        s->lanes[i] = (struct nb_lane){.first = i, .count = 1, .cpu = i % 2 ? NB_ROAM : 0};
    }
    run.rules.give_up_ns = 1000000000;
    run.rules.armed_limit_ns = 20000000000;
    run.options = options;
    snprintf(run.options.folder, sizeof run.options.folder, "%s", folder);
    EXPECT(mkdir(folder, 0700) == 0);
    return run;
}

static void replay(struct shared *s, const char *folder, int first_kind, int count, int stop)
{
    struct nb_injection run = prepare(s, folder, first_kind, count, stop ? 10000000000 : LENGTH_NS);
    EXPECT(start(&run, 0) == 0);
    EXPECT(nb_wait_ready(&run, 15000) == 0);
    EXPECT(nb_release(&run, now_ns() + 1000000) == 0);
    if (stop) {
        struct timespec wait = {.tv_nsec = 30000000};
        nanosleep(&wait, NULL);
        EXPECT(nb_stop(&run) == 0);
    }
    EXPECT(nb_join(&run, 15000) == 0);
    for (int i = 0; i < count; i++) {
        EXPECT(s->lanes[i].error == 0 && (s->lanes[i].status == 0 || s->lanes[i].killed));
        EXPECT(stop || run.log.outcome[i] == NB_INJECTED || run.log.outcome[i] == NB_LATE);
    }
    EXPECT(access(folder, F_OK) != 0);
}

static void refuse(struct shared *s, const char *folder)
{
    int64_t event;
    struct nb_injection run = prepare(s, folder, NB_DUTY, 2, LENGTH_NS);
    s->intensity[1] = 0;
    EXPECT(nb_check(&run, &event) == -22 && event == 1);
    s->intensity[1] = 1;
    s->kind[1] = NB_KIND_COUNT;
    EXPECT(nb_check(&run, &event) == -22 && event == 1);
    s->kind[1] = NB_MEMORY_STREAM;
    s->lanes[0].count = 2; /* two kinds in a lane */
    run.lane_count = 1;
    EXPECT(start(&run, 0) == 0 && nb_wait_ready(&run, 5000) < 0 && s->lanes[0].error == 22);
    EXPECT(nb_kill(&run) == 0);
    rmdir(folder); /* the supervisor, if it was quicker to end than to be killed, has done it */
    EXPECT(access(folder, F_OK) != 0);
}

int main(int count, char **words)
{
    perhaps_program(count, words);
    struct shared *s = shared_memory();
    EXPECT(count == 2);
    for (int kind = 1; kind < NB_KIND_COUNT; kind++)
        if (nb_is_kind(kind))
            replay(s, words[1], kind, 1, 0);
    replay(s, words[1], NB_IO_SYNC, 5, 1);
    refuse(s, words[1]);
    release_memory(s);
    return 0;
}
