/* pingpong: families of round trips between ranks 0 and 1, from which LogGOPS parameters follow.
 *
 * After Hoefler, Lichei, Rehm: Low-Overhead LogGP Parameter Assessment for Modern Interconnection
 * Networks, IPDPS 2007: PRTT(n, d, s) is the time in which rank 0 sends n messages of s bytes, d
 * apart, and rank 1 answers all of them with one of s bytes.
 *   roundtrip  PRTT(1, 0, s)
 *   burst      PRTT(n, 0, s): the slowest of sender, network and receiver
 *   delayed    PRTT(n, d, s), with d above what a message of the burst took: the sender alone
 *   late       one send whose receive is posted `delay` later: above the eager limit it waits
 * What is sent was just written by its sender, as in a program: lines that both caches have cost
 * half of it. What a program's calls take besides, on rank 0:
 *   copy, sum  copying so many bytes, or adding them as doubles to others
 *   cold       a round trip after going through 0, 0.5, 1, 2, …, 32 MiB of memory, one after the
 *              other: delay_ns is how long that took
 *   made       making a communicator of all ranks; after that it is freed
 * All families and sizes are taken in turn, in an order drawn anew for each round. Every
 * repetition's time is written to the file: family bytes messages delay_ns round ns send_ns.
 *   pingpong FILE [rounds [repetitions [messages [seed [bytes ...]]]]]
 */
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDTRIP, BURST, DELAYED, LATE, COPY, SUM, COLD, MADE, FAMILIES };
enum { TAG = 1, MOST_SIZES = 64, LATE_NS = 200000, WALKS = 8, LEAST_WALKED = 1 << 18 };

static const char *const name[FAMILIES] = {"roundtrip", "burst", "delayed", "late",
                                           "copy",      "sum",   "cold",    "made"};

struct trip {
    int32_t family, bytes, messages, round;
    int64_t delay_ns, ns, send_ns;
};

struct job {
    int rank, sizes, rounds, repetitions, messages, wrong;
    uint64_t seed;
    int32_t bytes[MOST_SIZES];
    int64_t shortest[MOST_SIZES][FAMILIES];
    unsigned char *sent; /* a place for each message */
    double *received, *walked;
    struct trip *trip;
    size_t trips;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void wait_until(int64_t ns)
{
    while (now_ns() < ns)
        ;
}

/* splitmix64; all ranks draw the same. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* What the messages of a trip carry: 1, 2, …, and the answer 99. */
static void write_messages(struct job *job, const struct trip *trip)
{
    for (int i = 0; i < (job->rank ? 1 : trip->messages); i++)
        memset(job->sent + (size_t)i * (size_t)trip->bytes, job->rank ? 99 : i + 1,
               (size_t)trip->bytes);
}

static void check(struct job *job, int32_t bytes, unsigned char value)
{
    const unsigned char *received = (const unsigned char *)job->received;
    job->wrong += bytes && (received[0] != value || received[bytes - 1] != value);
}

static void send(struct job *job, int place, int32_t bytes, int to)
{
    MPI_Send(job->sent + (size_t)place * (size_t)bytes, bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

static void receive(struct job *job, int32_t bytes, int from)
{
    MPI_Recv(job->received, bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Both ranks are here, and rank 1 waits for rank 0. */
static void meet(struct job *job)
{
    if (job->rank == 0) {
        receive(job, 0, 1);
        send(job, 0, 0, 1);
    } else {
        send(job, 0, 0, 0);
        receive(job, 0, 0);
    }
}

static void ask(struct job *job, struct trip *trip)
{
    const int64_t begin = now_ns();
    trip->send_ns = 0;
    for (int i = 0; i < trip->messages; i++) {
        const int64_t sends = now_ns();
        send(job, i, trip->bytes, 1);
        const int64_t sent = now_ns();
        trip->send_ns += sent - sends;
        if (trip->delay_ns && i + 1 < trip->messages)
            wait_until(sent + trip->delay_ns);
    }
    receive(job, trip->bytes, 1);
    trip->ns = now_ns() - begin;
    check(job, trip->bytes, 99);
}

static void answer(struct job *job, const struct trip *trip)
{
    for (int i = 0; i < trip->messages; i++) {
        receive(job, trip->bytes, 0);
        check(job, trip->bytes, (unsigned char)(i + 1));
    }
    send(job, 0, trip->bytes, 0);
}

static void late(struct job *job, struct trip *trip)
{
    if (job->rank == 0) {
        const int64_t begin = now_ns();
        send(job, 0, trip->bytes, 1);
        trip->ns = trip->send_ns = now_ns() - begin;
    } else {
        wait_until(now_ns() + trip->delay_ns);
        receive(job, trip->bytes, 0);
    }
}

/* Copying what was written, or adding it to what is there. */
static void compute(struct job *job, struct trip *trip)
{
    const double *from = (const double *)(const void *)job->sent;
    const int64_t begin = now_ns();
    if (trip->family == COPY)
        memcpy(job->received, job->sent, (size_t)trip->bytes);
    else
        for (int i = 0; i < trip->bytes / (int)sizeof *from; i++)
            job->received[i] += from[i];
    trip->ns = now_ns() - begin;
}

/* Changes 0, 1, 2, 4, … times LEAST_WALKED bytes of memory. */
static int64_t walk(struct job *job, int nth)
{
    const int64_t begin = now_ns();
    for (size_t i = 0; nth && i < ((size_t)LEAST_WALKED << nth) / sizeof *job->walked; i++)
        job->walked[i] = 0.5 * job->walked[i] + 1;
    return now_ns() - begin;
}

static void cold(struct job *job, struct trip *trip, int nth)
{
    if (job->rank == 0)
        trip->delay_ns = walk(job, nth);
    write_messages(job, trip);
    job->rank ? answer(job, trip) : ask(job, trip);
}

static void make(struct trip *trip)
{
    MPI_Comm made;
    const int64_t begin = now_ns();
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    trip->ns = now_ns() - begin;
    MPI_Comm_free(&made);
}

/* The pause of a delayed message: twice what a message of the burst takes at least. */
static int64_t pause_of(const struct job *job, int size)
{
    const int64_t *shortest = job->shortest[size];
    int64_t each = (shortest[BURST] - shortest[ROUNDTRIP]) / (job->messages - 1);
    return each > 500 ? 2 * each : 1000;
}

static void take(struct job *job, int size, int family, int round, int nth)
{
    struct trip trip = {.family = family, .bytes = job->bytes[size], .round = round};
    trip.messages = family == BURST || family == DELAYED ? job->messages : 1;
    trip.delay_ns = family == DELAYED ? pause_of(job, size) : family == LATE ? LATE_NS : 0;
    write_messages(job, &trip);
    meet(job);
    if (family == LATE)
        late(job, &trip);
    else if (family == COLD)
        cold(job, &trip, nth);
    else if (family == MADE)
        make(&trip);
    else if (job->rank == 0 && (family == COPY || family == SUM))
        compute(job, &trip);
    else if (family < LATE)
        job->rank ? answer(job, &trip) : ask(job, &trip);
    int64_t *shortest = &job->shortest[size][family];
    if (*shortest == 0 || trip.ns < *shortest)
        *shortest = trip.ns;
    if (round >= 0 && job->rank == 0)
        job->trip[job->trips++] = trip;
}

/* All sizes of all families; a round of −1 is not kept: memory and connections get ready. */
static void take_round(struct job *job, int round)
{
    int order[MOST_SIZES * FAMILIES], cells = job->sizes * FAMILIES;
    for (int i = 0; i < cells; i++)
        order[i] = i;
    for (int i = cells - 1; i > 0 && round >= 0; i--) {
        int other = (int)(draw(&job->seed) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < cells; i++) {
        int family = order[i] % FAMILIES, size = order[i] / FAMILIES;
        int times = family == LATE ? 3 : family == COLD ? WALKS : job->repetitions;
        for (int k = 0; k < times; k++)
            take(job, size, family, round, k);
    }
}

static int write_trips(const struct job *job, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return 0;
    fprintf(file, "family bytes messages delay_ns round ns send_ns\n");
    for (size_t i = 0; i < job->trips; i++) {
        const struct trip *t = &job->trip[i];
        fprintf(file, "%s %d %d %lld %d %lld %lld\n", name[t->family], t->bytes, t->messages,
                (long long)t->delay_ns, t->round, (long long)t->ns, (long long)t->send_ns);
    }
    return fclose(file) == 0;
}

static int number(int count, char **words, int at, int otherwise)
{
    return count > at ? atoi(words[at]) : otherwise;
}

static int read_words(struct job *job, int count, char **words)
{
    static const int32_t usual[] = {1,     8,     64,    256,    1024,   2048,   4096,   8192,
                                    16384, 32768, 65536, 131072, 262144, 524288, 1048576};
    job->rounds = number(count, words, 2, 10);
    job->repetitions = number(count, words, 3, 3);
    job->messages = number(count, words, 4, 10);
    job->seed = (uint64_t)number(count, words, 5, 0);
    job->sizes = count > 6 ? count - 6 : (int)(sizeof usual / sizeof *usual);
    if (count < 2 || job->rounds < 1 || job->repetitions < 1 || job->messages < 2 ||
        job->sizes > MOST_SIZES)
        return 0;
    int32_t most = 1;
    for (int i = 0; i < job->sizes; i++) {
        job->bytes[i] = count > 6 ? atoi(words[6 + i]) : usual[i];
        most = job->bytes[i] > most ? job->bytes[i] : most;
        if (job->bytes[i] < 0)
            return 0;
    }
    size_t each = (size_t)job->repetitions > WALKS ? (size_t)job->repetitions : WALKS;
    job->sent = calloc((size_t)most, (size_t)job->messages);
    job->received = calloc((size_t)most, 1);
    job->walked = calloc((size_t)LEAST_WALKED << (WALKS - 1), 1);
    job->trip = calloc((size_t)job->rounds * (size_t)job->sizes * FAMILIES * each,
                       sizeof *job->trip);
    return job->sent && job->received && job->walked && job->trip;
}

int main(int count, char **words)
{
    struct job job = {0};
    int ranks = 0, wrong = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!read_words(&job, count, words) || ranks != 2) {
        if (job.rank == 0)
            fprintf(stderr, "pingpong: two ranks, and the words FILE [rounds [repetitions "
                            "[messages [seed [bytes ...]]]]]\n");
        MPI_Finalize();
        return 2;
    }
    const int64_t begin = now_ns();
    for (int round = -1; round < job.rounds; round++)
        take_round(&job, round);
    const double seconds = (double)(now_ns() - begin) * 1e-9;
    MPI_Reduce(&job.wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    int written = job.rank != 0 || write_trips(&job, words[1]);
    if (job.rank == 0)
        printf("noisebook: pingpong seconds=%.9f rounds=%d sizes=%d trips=%zu verified=%s\n",
               seconds, job.rounds, job.sizes, job.trips, wrong || !written ? "no" : "yes");
    free(job.sent);
    free(job.received);
    free(job.walked);
    free(job.trip);
    MPI_Finalize();
    return wrong || !written;
}
