/* libFuzzer on the simulator's core: any schedule that Python's checks let pass, on any network,
 * under any noise. Carried out again, it must come to the same. */
#include "bytes.h"
#include "engine.h"
#include "schedule.h"

enum { RANKS = 5, PER_RANK = 7, TRACES = 2, DETOURS = 4 };

struct input {
    struct nb_schedule schedule;
    struct nb_network network;
    struct nb_piece piece[2];
    struct nb_noise noise;
    int64_t *rank_start;
    int32_t *done_op, *begun_op;
    int32_t *done_start, *begun_start;
    int noisy;
};

/* Small numbers mostly, which meet each other; large ones now and then. */
static int64_t amount(struct bytes *from, int64_t most)
{
    uint64_t number;
    uint8_t kind;
    draw(from, &kind, 1);
    if (kind < 200)
        return kind % 8 * (kind < 100 ? 1 : 1000) % most;
    draw(from, &number, sizeof number);
    return (int64_t)(number % (uint64_t)most);
}

static void draw_operations(struct bytes *from, struct input *to)
{
    struct nb_schedule *const schedule = &to->schedule;
    const size_t count = (size_t)schedule->operations;
    const int wide = below(from, 2);
    uint8_t *const kind = malloc(count);
    int32_t *const peer = malloc(count * sizeof *peer), *const tag = malloc(count * sizeof *tag);
    int64_t *const size = malloc(count * sizeof *size);
    uint32_t *const narrow = malloc(count * sizeof *narrow);
    uint8_t *const cpu = malloc(count), *const nic = malloc(count);
    for (size_t i = 0; i < count; i++) {
        kind[i] = (uint8_t)(1 + below(from, 3));
        peer[i] = (int32_t)below(from, (uint32_t)schedule->ranks + (kind[i] == NB_RECV)) -
                  (kind[i] == NB_RECV);
        tag[i] = (int32_t)below(from, kind[i] == NB_RECV ? 3 : 2) - (kind[i] == NB_RECV);
        size[i] = amount(from, wide ? INT64_C(1) << 40 : INT64_C(1) << 32);
        narrow[i] = (uint32_t)size[i];
        cpu[i] = (uint8_t)below(from, (uint32_t)schedule->cpus);
        nic[i] = (uint8_t)below(from, (uint32_t)schedule->nics);
    }
    schedule->kind = kind;
    schedule->peer = peer;
    schedule->tag = (struct nb_column){tag, sizeof *tag, 1};
    schedule->size = wide ? (struct nb_column){size, sizeof *size, 1}
                          : (struct nb_column){narrow, sizeof *narrow, 1};
    schedule->cpu = (struct nb_column){cpu, 1, 1};
    schedule->nic = (struct nb_column){nic, 1, 1};
    free(wide ? (void *)narrow : size);
}

/* Dependencies of one sort, grouped as Python has them grouped; none, if one of them is not valid.
 */
static void draw_needs(struct bytes *from, struct input *to, int32_t **start, int32_t **local)
{
    const struct nb_schedule *const schedule = &to->schedule;
    const size_t pairs = below(from, 12), count = (size_t)schedule->operations;
    int32_t operation[12], needed[12];
    *start = calloc(count + 1, sizeof **start);
    *local = malloc(pairs * sizeof **local);
    for (size_t i = 0; i < pairs; i++) {
        operation[i] = (int32_t)below(from, (uint32_t)count);
        needed[i] = (int32_t)below(from, (uint32_t)count);
    }
    const int64_t bad = nb_schedule_group(to->rank_start, schedule->ranks, (int64_t)pairs,
                                          operation, needed, 4, *start, 4, *local);
    if (!pairs || bad >= 0 ||
        nb_schedule_bad_edge(to->rank_start, schedule->ranks, *start, 4, *local) >= 0) {
        free(*start);
        free(*local);
        *start = *local = NULL;
    }
}

static void draw_schedule(struct bytes *from, struct input *to)
{
    struct nb_schedule *const schedule = &to->schedule;
    schedule->ranks = 1 + below(from, RANKS);
    to->rank_start = malloc((size_t)(schedule->ranks + 1) * sizeof *to->rank_start);
    to->rank_start[0] = 0;
    for (int64_t rank = 0; rank < schedule->ranks; rank++)
        to->rank_start[rank + 1] = to->rank_start[rank] + below(from, PER_RANK);
    schedule->rank_start = to->rank_start;
    schedule->operations = to->rank_start[schedule->ranks];
    schedule->cpus = 1 + (int32_t)below(from, 2);
    schedule->nics = 1 + (int32_t)below(from, 2);
    draw_operations(from, to);
    if (schedule->operations) {
        draw_needs(from, to, &to->done_start, &to->done_op);
        draw_needs(from, to, &to->begun_start, &to->begun_op);
    }
    schedule->done_start = to->done_start;
    schedule->begun_start = to->begun_start;
    schedule->done_op = to->done_op;
    schedule->begun_op = to->begun_op;
    schedule->done_width = schedule->begun_width = 4;
}

static struct nb_piece draw_piece(struct bytes *from)
{
    const int64_t most = INT64_C(1000000000000000); /* 1000 s in ps */
    struct nb_piece piece = {.least = 1};
    piece.L = amount(from, most);
    piece.o = piece.r = amount(from, most);
    piece.g = amount(from, most);
    piece.G = (double)amount(from, 1000);
    piece.O = (double)amount(from, 1000);
    return piece;
}

/* Of two pieces no message overtakes another: each arrives as long after it was sent. */
static void draw_network(struct bytes *from, struct input *to)
{
    struct nb_piece *const small = &to->piece[0], *const large = &to->piece[1];
    *small = draw_piece(from);
    *large = draw_piece(from);
    to->network.mode = (int32_t)below(from, 2);
    to->network.pieces = 1 + (to->network.mode == NB_EXACT && below(from, 2));
    large->least = 2 + amount(from, INT64_C(1) << 40);
    large->o %= 1 + small->o + small->L;
    large->L = small->o + small->L - large->o;
    if (to->network.mode == NB_EXACT)
        small->r = amount(from, INT64_C(1000000000000000));
    to->network.piece = to->piece;
    to->network.S = (uint64_t)amount(from, INT64_C(1) << 40);
}

/* Traces as `Noise.tables` makes them: starts and what was free before (exact), or starts and
 * durations (compat), at least one there, in a period that is longer than both. */
static void draw_noise(struct bytes *from, struct input *to)
{
    const int exact = to->network.mode == NB_EXACT;
    const size_t ranks = (size_t)to->schedule.ranks;
    int64_t *const detour = malloc(2 * TRACES * DETOURS * sizeof *detour);
    int64_t *const first = calloc(TRACES + 1, sizeof *first);
    int64_t *const period = malloc(TRACES * sizeof *period), *const left = malloc(TRACES *
                                                                                  sizeof *left);
    for (int trace = 0; trace < TRACES; trace++) {
        const uint32_t count = exact ? below(from, DETOURS + 1) : 1 + below(from, DETOURS);
        int64_t now = 0, lost = 0, k = first[trace];
        for (uint32_t i = 0; i < count; i++, k++) {
            const int64_t gap = 1 + amount(from, 100000000), length = 1 + amount(from, 100000000);
            detour[2 * k] = now + gap;
            detour[2 * k + 1] = exact ? now + gap - lost : length;
            now += gap + length;
            lost += length;
        }
        first[trace + 1] = k;
        period[trace] = now + 1 + amount(from, 100000000);
        left[trace] = period[trace] - lost;
    }
    int32_t *const rank_trace = malloc(ranks * sizeof *rank_trace);
    int64_t *const phase = malloc(ranks * sizeof *phase);
    for (size_t rank = 0; rank < ranks; rank++) {
        rank_trace[rank] = (int32_t)below(from, TRACES + 1) - 1;
        phase[rank] = amount(from, INT64_C(1) << 40);
    }
    to->noise = (struct nb_noise){
        .detour = detour,
        .first = first,
        .period = period,
        .free = left,
        .rank_trace = rank_trace,
        .phase = phase,
        .place = malloc(ranks * sizeof(struct nb_place))
    };
}

static void set_places(const struct input *input)
{
    for (int64_t rank = 0; rank < input->schedule.ranks; rank++)
        input->noise.place[rank] = (struct nb_place){
            .until = input->noise.rank_trace[rank] < 0 ? UINT64_MAX : 0,
            .begins = -input->noise.phase[rank],
            .trace = input->noise.rank_trace[rank]
        };
}

static void release(struct input *input)
{
    void *const all[] = {
        input->rank_start,
        (void *)input->schedule.kind,
        (void *)input->schedule.peer,
        (void *)input->schedule.tag.data,
        (void *)input->schedule.size.data,
        (void *)input->schedule.cpu.data,
        (void *)input->schedule.nic.data,
        input->done_start,
        input->done_op,
        input->begun_start,
        input->begun_op,
        (void *)input->noise.detour,
        (void *)input->noise.first,
        (void *)input->noise.period,
        (void *)input->noise.free,
        (void *)input->noise.rank_trace,
        (void *)input->noise.phase,
        input->noise.place
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static int simulated(struct input *input, struct nb_outcome *outcome)
{
    if (input->noisy)
        set_places(input);
    const int stop = nb_simulate(&input->schedule, &input->network,
                                 input->noisy ? &input->noise : NULL, NULL, outcome);
    EXPECT(stop == NB_DONE || stop == NB_STOP_TIME || stop == NB_STOP_LONG ||
           stop == NB_STOP_STUCK);
    EXPECT(outcome->stuck_count >= 0 && outcome->stuck_count <= 48);
    EXPECT((stop == NB_STOP_STUCK) == (outcome->stuck_count > 0));
    for (int64_t i = 0; i < outcome->stuck_count; i++)
        EXPECT(outcome->stuck[i] >= 0 && outcome->stuck[i] < input->schedule.operations);
    return stop;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes from = {data, size};
    struct input input = {.noisy = 0};
    draw_network(&from, &input);
    draw_schedule(&from, &input);
    input.noisy = (int)below(&from, 2);
    if (input.noisy)
        draw_noise(&from, &input);
    uint64_t finish[2][RANKS] = {{0}}, lost[2][RANKS] = {{0}};
    struct nb_outcome first = {.finish = finish[0], .noise = input.noisy ? lost[0] : NULL};
    struct nb_outcome again = {.finish = finish[1], .noise = input.noisy ? lost[1] : NULL};
    const int stop = simulated(&input, &first);
    EXPECT(simulated(&input, &again) == stop);
    if (stop == NB_DONE) {
        EXPECT(!memcmp(finish[0], finish[1], sizeof finish[0]));
        EXPECT(!memcmp(lost[0], lost[1], sizeof lost[0]));
    }
    release(&input);
    return 0;
}
