/* libnbtrace.so: records every MPI call of an unmodified program.
 *
 * Put into LD_PRELOAD of the ranks, it takes the place of the MPI's functions, calls them by their
 * names for tools (PMPI_…), and writes 64 bytes a call to $NBTRACE/calls.RANK: a mapped file, so
 * that what was written outlives any death of the rank. comms.RANK has a line a communicator.
 * Nothing of the MPI is linked: its functions are found when they are first called, so that the
 * library does no harm to the launcher and the shells between.
 *
 * NBTRACE_MIB (16) is made ready in MPI_Init; more is added 1 MiB (16384 calls) at a time, up to
 * NBTRACE_MOST_MIB (2048); calls beyond are counted only.
 */
#include <sys/mman.h>

#include "loaded_mpi.h"
#include "nbtrace.h"

#define OWN_NAME "libnbtrace.so"

struct nb_trace nb_trace = {.file = -1};
_Thread_local int nb_depth, nb_thread = -1;

static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static const size_t WINDOW_BYTES = NB_WINDOW_CALLS * sizeof(struct nb_call);

void *nb_find(const char *name)
{
    return nb_find_surely(RTLD_NEXT, name, OWN_NAME);
}

/* The loader may have copied a variable of the MPI into the program: that is the one in use. */
void *nb_find_variable(const char *name)
{
    return nb_find_surely(RTLD_DEFAULT, name, OWN_NAME);
}

static long number_of(const char *name, long otherwise, long most)
{
    const char *text = getenv(name);
    long number = text && *text ? atol(text) : otherwise;
    return number < 1 ? 1 : number > most ? most : number;
}

void nb_new_anchor(void)
{
    struct nb_anchor now = nb_anchor_now(nb_trace.tsc);
    nb_trace.header->last_ns = now.ns;
    nb_trace.header->last_ticks = now.ticks;
}

int nb_new_thread(void)
{
    static _Atomic int threads;
    return atomic_fetch_add(&threads, 1);
}

/* Room for `bytes` more at `offset`: taken from the disk at once, for a page that cannot be had
 * later would kill the program. */
static void *map(size_t offset, size_t bytes)
{
    if (posix_fallocate(nb_trace.file, (off_t)offset, (off_t)bytes))
        return NULL;
    void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                       nb_trace.file, (off_t)offset);
    return place == MAP_FAILED ? NULL : place;
}

struct nb_call *nb_map(size_t window)
{
    struct nb_call *calls = NULL;
    pthread_mutex_lock(&growing);
    if (window < nb_trace.limit) {
        calls = atomic_load(&nb_trace.windows[window]);
        if (!calls)
            calls = (struct nb_call *)map(NB_HEADER + window * WINDOW_BYTES, WINDOW_BYTES);
        if (calls)
            atomic_store(&nb_trace.windows[window], calls);
        else
            nb_trace.limit = window;
    }
    nb_trace.header->dropped += !calls;
    pthread_mutex_unlock(&growing);
    return calls;
}

/* Which MPI this library was built for is in its header; that of the program is another if this
 * is not there. */
static int is_other_mpi(void)
{
#if defined(OPEN_MPI)
    return !nb_find_if_there(RTLD_DEFAULT, "ompi_mpi_comm_world");
#else
    return nb_find_if_there(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL;
#endif
}

/* Open MPI's handles are addresses in a library that is not linked here. */
static void find_handles(void)
{
#if defined(OPEN_MPI)
    nb_trace.world = (MPI_Comm)nb_find_variable("ompi_mpi_comm_world");
    nb_trace.request_null = HANDLE(nb_find_variable("ompi_request_null"));
#else
    nb_trace.world = MPI_COMM_WORLD;
    nb_trace.request_null = HANDLE(MPI_REQUEST_NULL);
#endif
}

/* Ranks that do not know of each other are all number 0: then each has a file of its own, and the
 * reader says so. */
static int open_file(const char *folder, int rank)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/calls.%d", folder, rank);
    if (length < 0 || (size_t)length + 16 >= sizeof path)
        return -1;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 || errno != EEXIST)
        return file;
    snprintf(path + length, sizeof path - (size_t)length, ".%d", (int)getpid());
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static void write_names(struct nb_header *header)
{
    static const char names[] =
#define CALL(name) #name "\n"
#include "nbtrace_names.h"
#undef CALL
        ;
    _Static_assert(sizeof names + sizeof(struct nb_header) <= NB_HEADER, "the header is full");
    memcpy(header + 1, names, sizeof names);
}

static void fill_header(struct nb_header *header, struct nb_anchor first)
{
    int length = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    NEXT(Comm_rank)(nb_trace.world, &header->rank);
    NEXT(Comm_size)(nb_trace.world, &header->ranks);
    NEXT(Get_library_version)(version, &length);
    snprintf(header->mpi, sizeof header->mpi, "%.*s", (int)sizeof header->mpi - 1, version);
    gethostname(header->host, sizeof header->host - 1);
    header->codes = NB_CODES;
    header->tsc = nb_trace.tsc;
    header->pid = getpid();
    header->first_ns = first.ns;
    header->first_ticks = first.ticks;
    write_names(header);
    memcpy(header->magic, "nbtrace1", sizeof header->magic);
}

static struct nb_header *map_first(const char *folder, int rank)
{
    size_t ready = (size_t)number_of("NBTRACE_MIB", 16, 4096);
    nb_trace.limit = (size_t)number_of("NBTRACE_MOST_MIB", 2048, NB_WINDOWS);
    ready = ready < nb_trace.limit ? ready : nb_trace.limit;
    nb_trace.file = open_file(folder, rank);
    char *place = nb_trace.file < 0 ? NULL : (char *)map(0, NB_HEADER + ready * WINDOW_BYTES);
    for (size_t i = 0; place && i < ready; i++)
        nb_trace.windows[i] = (struct nb_call *)(void *)(place + NB_HEADER + i * WINDOW_BYTES);
    return (struct nb_header *)(void *)place;
}

/* After the MPI's own initialisation; `begun` is when that began. */
static void open_trace(struct nb_anchor begun, int code, int provided)
{
    const char *folder = getenv("NBTRACE");
    int rank = 0;
    if (!folder || !*folder || nb_trace.header)
        return;
    if (is_other_mpi()) {
        fputs("noisebook: libnbtrace.so was built for another MPI than the program's\n", stderr);
        return;
    }
    find_handles();
    NEXT(Comm_rank)(nb_trace.world, &rank);
    struct nb_header *header = map_first(folder, rank);
    if (!header) {
        fprintf(stderr, "noisebook: no trace can be written to %s: %s\n", folder, strerror(errno));
        return;
    }
    fill_header(header, begun);
    nb_comms_begin(folder);
    nb_trace.header = header;
    nb_trace.threads = provided == MPI_THREAD_MULTIPLE;
    nb_thread = nb_new_thread();
    struct nb_call *call = nb_new_record(code, begun.ticks);
    header->init_end = nb_ticks(
        nb_trace.tsc); /* what was made ready here is none of the program's */
    if (call)
        call->end = header->init_end;
}

static void close_trace(struct nb_call *call)
{
    struct nb_header *header = nb_trace.header;
    if (!call || !header)
        return;
    nb_new_anchor();
    header->finalized = 1;
    nb_trace.header = NULL;
    size_t calls = nb_trace.next < nb_trace.limit * NB_WINDOW_CALLS
                       ? nb_trace.next
                       : nb_trace.limit * NB_WINDOW_CALLS;
    if (ftruncate(nb_trace.file, (off_t)(NB_HEADER + calls * sizeof(struct nb_call))))
        return; /* it stays longer than needed */
}

/* Another library that observes the same three functions may stand behind this one. */
#define NEXT_TOOL(name) NEXT_NAMED(name, TEXT(PASTE(MPI_, name)))

int MPI_Init(int *count, char ***words)
{
    nb_trace.tsc = nb_tsc_trusted();
    struct nb_anchor begun = nb_anchor_now(nb_trace.tsc);
    nb_depth++;
    int result = NEXT_TOOL(Init)(count, words);
    nb_depth--;
    open_trace(begun, NB_Init, MPI_THREAD_SINGLE);
    return result;
}

int MPI_Init_thread(int *count, char ***words, int required, int *provided)
{
    nb_trace.tsc = nb_tsc_trusted();
    struct nb_anchor begun = nb_anchor_now(nb_trace.tsc);
    nb_depth++;
    int result = NEXT_TOOL(Init_thread)(count, words, required, provided);
    nb_depth--;
    open_trace(begun, NB_Init_thread, *provided);
    return result;
}

int MPI_Finalize(void)
{
    BEGIN(Finalize);
    int result = NEXT_TOOL(Finalize)();
    END;
    close_trace(call);
    return result;
}

/* No return: what was recorded stays. */
int MPI_Abort(MPI_Comm comm, int error)
{
    BEGIN(Abort);
    int result = NEXT(Abort)(comm, error);
    END;
    return result;
}
