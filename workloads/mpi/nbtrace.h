/* nbtrace.h: what the parts of libnbtrace.so share (see nbtrace.c): the record of a call, how one
 * begins and ends, and the numbers of communicators and requests.
 */
#ifndef NBTRACE_H
#define NBTRACE_H

#include <mpi.h>

#include <pthread.h>
#include <stdatomic.h>

#include "ticks.h"

/* Open MPI 5 has the persistent collectives of MPI 4, and says that it is MPI 3.1. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define NB_HAS_PERSISTENT 1
#else
#define NB_HAS_PERSISTENT 0
#endif

enum nb_code {
    NB_NONE,
#define CALL(name) NB_##name,
#include "nbtrace_names.h"
#undef CALL
    NB_CODES
};

/* Read by nbhelpers/mpi/_records.py; times in ticks, ranks those of MPI_COMM_WORLD, -1: none. */
struct nb_call {
    int64_t start, end; /* end 0: in progress */
    int64_t bytes, received_bytes;
    int16_t call, thread; /* call 0: nothing was recorded here */
    int32_t peer, tag, source, received_tag, comm, root, request;
};

enum {
    NB_HEADER = 8192,
    NB_WINDOW_CALLS = 16384, /* 1 MiB */
    NB_WINDOWS = 65536,
    NB_ANCHOR_CALLS = 1024
};

struct nb_header {
    char magic[8];
    int32_t rank, ranks, codes, tsc;
    int64_t pid, first_ns, first_ticks, last_ns, last_ticks;
    int64_t init_end, finalized, dropped;
    char host[64], mpi[128];
};

struct nb_comm {
    intptr_t handle;
    int number, size, inter, children;
    int *world; /* of its ranks (of an intercommunicator: the other side's); NULL: the same */
};

struct nb_request {
    intptr_t handle; /* 0: a free place */
    int number, comm, code, peer, tag, root, cancelled, persistent;
    int64_t bytes, received_bytes;
};

#pragma GCC visibility push(hidden)

struct nb_trace {
    struct nb_header *header; /* NULL: nothing is recorded (yet, or any more) */
    int file, tsc, threads;
    size_t limit; /* windows */
    _Atomic size_t next;
    struct nb_call *_Atomic windows[NB_WINDOWS];
    MPI_Comm world;
    intptr_t request_null;
};
extern struct nb_trace nb_trace;
extern _Thread_local int nb_depth, nb_thread;

void *nb_find(const char *name);
void *nb_find_variable(const char *name);
struct nb_call *nb_map(size_t window);
void nb_new_anchor(void);
int nb_new_thread(void);

struct nb_comm *nb_comm_of(MPI_Comm comm);
struct nb_comm *nb_comm_numbered(int number);
void nb_comm_made(MPI_Comm parent, MPI_Comm made, const char *kind, int place);
void nb_comm_copied(MPI_Comm original, MPI_Comm copy);
void nb_comm_gone(intptr_t handle);
void nb_comms_begin(const char *folder);

int nb_request_numbers(int count);
int nb_request_new(intptr_t handle, struct nb_request about);
int nb_request_again(intptr_t handle, struct nb_request *about);
int nb_request_take(intptr_t handle, struct nb_request *about);
void nb_request_put_back(const struct nb_request *about);
void nb_request_cancelled(intptr_t handle);
void nb_request_gone(intptr_t handle);

static inline void nb_lock(pthread_mutex_t *mutex)
{
    if (nb_trace.threads)
        pthread_mutex_lock(mutex);
}

static inline void nb_unlock(pthread_mutex_t *mutex)
{
    if (nb_trace.threads)
        pthread_mutex_unlock(mutex);
}

/* The place of the next record; NULL if there is no room. */
static inline struct nb_call *nb_take(void)
{
    size_t index;
    if (nb_trace.threads) {
        index = atomic_fetch_add_explicit(&nb_trace.next, 1, memory_order_relaxed);
    } else {
        index = atomic_load_explicit(&nb_trace.next, memory_order_relaxed);
        atomic_store_explicit(&nb_trace.next, index + 1, memory_order_relaxed);
    }
    size_t window = index / NB_WINDOW_CALLS;
    struct nb_call *calls = NULL;
    if (window < NB_WINDOWS)
        calls = atomic_load_explicit(&nb_trace.windows[window], memory_order_acquire);
    if (!calls)
        calls = nb_map(window);
    if (index % NB_ANCHOR_CALLS == 0)
        nb_new_anchor();
    return calls ? calls + index % NB_WINDOW_CALLS : NULL;
}

static inline struct nb_call *nb_new_record(int code, int64_t start)
{
    struct nb_call *call = nb_take();
    if (!call)
        return NULL;
    memset(&call->peer, 0xff, sizeof *call - offsetof(struct nb_call, peer));
    call->thread = (int16_t)(nb_trace.threads ? nb_thread : 0);
    call->start = start;
    call->call = (int16_t)code;
    return call;
}

/* A call of the program begins; NULL where nothing is recorded: no trace, or the call of a call. */
static inline struct nb_call *nb_begin(int code)
{
    if (nb_depth++ || !nb_trace.header)
        return NULL;
    if (nb_trace.threads && nb_thread < 0)
        nb_thread = nb_new_thread();
    struct nb_call *call = nb_new_record(code, 0);
    if (call)
        call->start = nb_ticks(nb_trace.tsc);
    return call;
}

static inline void nb_end(struct nb_call *call)
{
    if (call)
        call->end = nb_ticks(nb_trace.tsc);
    nb_depth--;
}

#pragma GCC visibility pop

/* dlsym() gives an address of data; POSIX lets it be taken for a function, ISO C does not. */
#define PASTE_(left, right) left##right
#define PASTE(left, right) PASTE_(left, right)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
#define NEXT_NAMED(type, text)                      \
    (__extension__({                                \
        static void *found;                         \
        if (__builtin_expect(!found, 0))            \
            found = nb_find(text);                  \
        *(__typeof__(&PASTE(PMPI_, type)) *)&found; \
    }))
#define NEXT(name) NEXT_NAMED(name, TEXT(PASTE(PMPI_, name)))

#define BEGIN(name) struct nb_call *call = nb_begin(PASTE(NB_, name))
#define END nb_end(call)

/* MPI_Request and MPI_Comm are pointers in one MPI and numbers in another. */
#define HANDLE(handle) ((intptr_t)(handle))

static inline int64_t nb_bytes(int64_t count, MPI_Datatype type)
{
    int size = 0;
    if (count)
        NEXT(Type_size)(type, &size);
    return count * size;
}

static inline int64_t nb_received(const MPI_Status *status)
{
#if defined(OPEN_MPI)
    return (int64_t)status->_ucount;
#elif defined(MPICH_VERSION) && !defined(MVAPICH2_VERSION)
    return ((int64_t)(status->count_hi_and_cancelled >> 1) << 32) + (uint32_t)status->count_lo;
#else
    int count = 0;
    NEXT(Get_count)(status, MPI_BYTE, &count);
    return count;
#endif
}

static inline int nb_rank_in_world(const struct nb_comm *comm, int rank)
{
    if (!comm || rank < 0 || rank >= comm->size)
        return -1;
    return comm->world ? comm->world[rank] : rank;
}

#endif
