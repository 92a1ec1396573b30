/* nbmarks.c, part of libnbspeed.so: the marks of marks.h, and who sets them in runtimes that have
 * OMPT, the tools interface of OpenMP 5 (LLVM's and Intel's). GNU's has none: see nbgomp.c.
 */
#include <dlfcn.h>
#include <sys/syscall.h>

#include "marks.h"
#include "ticks.h"

enum nb_observer nb_marks_observer = NB_NOBODY;

static struct nb_speed_header *header;
static struct nb_thread *threads;
static struct nb_mark *marks;
static int tsc;
static struct nb_anchor origin;
static int64_t least_ticks; /* between two marks of a thread */

static __thread struct nb_thread *self; /* NULL: this thread was not seen yet */
static __thread struct nb_thread nowhere;
static __thread int64_t begin_ticks;

/* --- marks --------------------------------------------------------------------------------- */

static void store(struct nb_mark mark)
{
    int64_t place = __atomic_fetch_add(&header->marks_count, 1, __ATOMIC_RELAXED);
    if (place < header->marks_capacity)
        marks[place] = mark;
}

static void add_mark(struct nb_thread *thread, int64_t now)
{
    thread->marked = now;
    if (!thread->thread)
        return;
    int64_t wall_ns = nb_now_ns();
    store((struct nb_mark){
        .wall_ns = wall_ns,
        .ticks = now,
        .since = thread->since,
        .busy = thread->busy,
        .thread = thread->thread,
        .state = thread->state
    });
    if (wall_ns - origin.ns >= NB_MARK_NS && now > origin.ticks)
        least_ticks = (int64_t)((double)NB_MARK_NS /
                                nb_ns_per_tick(origin, (struct nb_anchor){wall_ns, now}));
}

static void change_state(struct nb_thread *thread, enum nb_state state, int always)
{
    int64_t now = nb_ticks(tsc);
    if (thread->state == NB_BUSY)
        thread->busy += now - thread->since;
    if (always || now - thread->marked >= least_ticks)
        add_mark(thread, now);
    thread->since = now;
    thread->state = state;
}

void nb_marks_lack(void)
{
    __atomic_fetch_add(&header->unmarked, 1, __ATOMIC_RELAXED);
}

/* A free place of the file; that of nobody where there is none. */
static struct nb_thread *take_place(void)
{
    int32_t id = (int32_t)syscall(SYS_gettid);
    for (int i = 0; i < NB_MARK_THREADS; i++) {
        struct nb_thread *place = &threads[(id + i) % NB_MARK_THREADS];
        int32_t nobody = 0;
        if (!__atomic_load_n(&place->thread, __ATOMIC_RELAXED) &&
            __atomic_compare_exchange_n(&place->thread, &nobody, id, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return place;
    }
    nb_marks_lack();
    return &nowhere;
}

static __attribute__((noinline)) void see_thread(enum nb_state first)
{
    self = take_place();
    self->process = getpid();
    self->since = begin_ticks ? begin_ticks : nb_ticks(tsc);
    self->busy = self->ended = 0;
    self->state = first;
    change_state(self, first, 1);
}

int nb_marks_state(enum nb_state state, enum nb_state first)
{
    if (!self)
        see_thread(first);
    int before = self->state;
    if (before != (int)state)
        change_state(self, state, 0);
    return before;
}

/* --- the ruler: calls of functions -------------------------------------------------------------
 */

enum { FUNCTIONS = 1024, COUNTED_BITS = 6, COUNTED = 1 << COUNTED_BITS };
enum { OBJECT_BITS = 15, OFFSET_BITS = 48 };

struct calls {
    uintptr_t function;
    int64_t since, until, busy, calls;
};

static struct {
    uintptr_t function;
    int64_t identity;
} known[FUNCTIONS];
static __thread struct calls counted[COUNTED]; /* calls that no mark has yet */
static __thread int64_t counted_busy;          /* of all calls that have ended */

/* The same in each run, wherever the function's object was loaded. */
static int64_t new_identity(uintptr_t function)
{
    Dl_info info;
    if (!dladdr((void *)function, &info) || !info.dli_fname)
        return (int64_t)(function & (((uint64_t)1 << OFFSET_BITS) - 1));
    const char *name = strrchr(info.dli_fname, '/');
    uint64_t hash = 14695981039346656037ULL;
    for (name = name ? name + 1 : info.dli_fname; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211ULL;
    uint64_t offset = function - (uintptr_t)info.dli_fbase;
    return (int64_t)(hash >> (64 - OBJECT_BITS) << OFFSET_BITS | offset);
}

static int64_t identity_of(uintptr_t function)
{
    size_t start = (function >> 2) * 0x9e3779b97f4a7c15ULL >> 54;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        size_t at = (start + i) % FUNCTIONS;
        uintptr_t here = 0;
        if (__atomic_compare_exchange_n(&known[at].function, &here, function, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            here = function;
        if (here != function)
            continue;
        int64_t identity = __atomic_load_n(&known[at].identity, __ATOMIC_RELAXED);
        if (!identity)
            __atomic_store_n(&known[at].identity, identity = new_identity(function),
                             __ATOMIC_RELAXED);
        return identity;
    }
    return new_identity(function);
}

static void store_calls(struct calls *calls)
{
    if (calls->calls && self->thread)
        store((struct nb_mark){
            .ticks = calls->until,
            .since = calls->since,
            .busy = calls->busy,
            .thread = self->thread,
            .state = NB_REGION,
            .function = identity_of(calls->function),
            .calls = calls->calls
        });
    *calls = (struct calls){.function = calls->function}; /* the others' way leads past it */
}

static void store_all_calls(void)
{
    for (int i = 0; i < COUNTED; i++)
        store_calls(&counted[i]);
}

static int64_t busy_until(int64_t now)
{
    return self->busy + (self->state == NB_BUSY ? now - self->since : 0);
}

/* A state that changed just now has read the clock for us. */
static int64_t moment(int changed)
{
    return changed ? self->since : nb_ticks(tsc);
}

struct nb_visit nb_marks_enter(int changed)
{
    int64_t now = moment(changed);
    return (struct nb_visit){now, busy_until(now), counted_busy};
}

/* Where a function is counted; where all places are taken, that of another one. */
static struct calls *place_of(uintptr_t function)
{
    size_t start = (function >> 2) * 0x9e3779b97f4a7c15ULL >> (64 - COUNTED_BITS);
    for (size_t i = 0; i < COUNTED; i++) {
        struct calls *calls = &counted[(start + i) % COUNTED];
        if (calls->function == function || !calls->function)
            return calls;
    }
    return &counted[start];
}

/* The more room is taken, the longer calls are counted together: a long run is seen to its end. */
static int64_t longest_ticks(void)
{
    int64_t taken = __atomic_load_n(&header->marks_count, __ATOMIC_RELAXED);
    int64_t eighths = taken * 8 / header->marks_capacity;
    return NB_REGION_MARKS * least_ticks << (eighths < 16 ? eighths : 16);
}

void nb_marks_leave(const struct nb_visit *visit, uintptr_t function)
{
    int64_t now = moment(self->state != NB_BUSY), inner = counted_busy - visit->counted;
    int64_t own = busy_until(now) - visit->busy - inner;
    struct calls *calls = place_of(function);
    counted_busy += own;
    if (calls->function != function) {
        store_calls(calls);
        calls->function = function;
    }
    if (!calls->calls)
        calls->since = visit->ticks;
    calls->until = now;
    calls->calls++;
    calls->busy += own;
    int64_t ticks = now - calls->since;
    if (ticks >= NB_REGION_MARKS * least_ticks && ticks >= longest_ticks())
        store_calls(calls);
}

/* --- threads and processes ------------------------------------------------------------------- */

void nb_marks_thread_begins(void)
{
    if (header)
        begin_ticks = nb_ticks(tsc);
}

void nb_marks_thread_ends(void)
{
    if (!self)
        return;
    store_all_calls();
    change_state(self, NB_WAITING, 1);
    __atomic_store_n(&self->thread, 0, __ATOMIC_RELEASE);
    self = &nowhere; /* what the runtime still does while it takes its leave */
}

void nb_marks_in_child(void)
{
    self = NULL;
    memset(counted, 0, sizeof counted);
    nb_marks_thread_begins();
}

void nb_marks_open(struct nb_speed_header *file, void *places)
{
    if (!file->marks_capacity)
        return;
    threads = places;
    marks = (struct nb_mark *)(threads + NB_MARK_THREADS);
    tsc = nb_tsc_trusted();
    origin = nb_anchor_now(tsc);
    least_ticks = tsc ? NB_MARK_NS / 2
                      : NB_MARK_NS; /* until the first mark: a TSC has over 0.5 GHz */
    header = file;
    nb_marks_observer = NB_WRAPPERS;
    nb_marks_thread_begins();
}

/* Threads that wait in the runtime's pool end with the process, without a word. */
__attribute__((destructor)) static void end_all(void)
{
    if (self) { /* the last pair of both clocks */
        store_all_calls();
        change_state(self, self->state, 1);
    }
    int32_t process = getpid();
    int64_t now = header ? nb_ticks(tsc) : 0;
    for (int i = 0; header && i < NB_MARK_THREADS; i++)
        if (threads[i].thread && threads[i].process == process)
            threads[i].ended = now;
}

/* --- OMPT: what we need of omp-tools.h ---------------------------------------------------------
 */

union ompt_data {
    uint64_t value;
    void *pointer;
};

typedef void (*ompt_callback)(void);
typedef ompt_callback (*ompt_lookup)(const char *name);
typedef int (*ompt_set_callback)(int event, ompt_callback callback);

struct ompt_result {
    int (*initialize)(ompt_lookup lookup, int device, union ompt_data *tool);
    void (*finalize)(union ompt_data *tool);
    union ompt_data tool;
};

enum {
    OMPT_PARALLEL_BEGIN = 3,
    OMPT_TASK_SCHEDULE = 6,
    OMPT_IMPLICIT_TASK = 7,
    OMPT_SYNC_REGION_WAIT = 16,
    OMPT_MUTEX_ACQUIRE = 26,
    OMPT_MUTEX_ACQUIRED = 27,
    OMPT_BEGIN = 1,
    OMPT_INITIAL_TASK = 1,
    OMPT_TEST_LOCK = 2,
    OMPT_TEST_NEST_LOCK = 4,
};
enum ompt_task_status {
    OMPT_COMPLETE = 1,
    OMPT_CANCEL = 3,
    OMPT_DETACH = 4,
    OMPT_EARLY_FULFILL = 5,
    OMPT_LATE_FULFILL = 6,
    OMPT_TASKWAIT_COMPLETE = 8,
};

enum { MOST_NESTED = 8 };

static __thread uint64_t states; /* of the tasks that this one interrupted, a bit each */
static __thread struct {
    struct nb_visit visit;
    uintptr_t function;
} regions[MOST_NESTED]; /* that this thread is in */
static __thread int depth;

/* A region's function is known by where the program forks. */
static void enter_region(const union ompt_data *parallel, int changed)
{
    if (depth++ < MOST_NESTED) {
        regions[depth - 1].visit = nb_marks_enter(changed);
        regions[depth - 1].function = parallel ? (uintptr_t)parallel->value : 0;
    }
}

/* What a thread does between two waits counts as a call: the end of the last one is never told. */
static void pause_region(int endpoint, int changed)
{
    if (!depth || depth > MOST_NESTED)
        return;
    if (endpoint == OMPT_BEGIN)
        nb_marks_leave(&regions[depth - 1].visit, regions[depth - 1].function);
    else
        regions[depth - 1].visit = nb_marks_enter(changed);
}

/* Until all threads are there. */
static void on_fork(union ompt_data *task, const void *frame, union ompt_data *parallel,
                    unsigned team, int flags, const void *address)
{
    (void)task;
    (void)frame;
    (void)team;
    (void)flags;
    parallel->value = (uintptr_t)address;
    nb_marks_state(NB_WAITING, NB_BUSY);
}

static void on_implicit_task(int endpoint, union ompt_data *parallel, union ompt_data *task,
                             unsigned team, unsigned index, int flags)
{
    (void)task;
    (void)team;
    int first = flags & OMPT_INITIAL_TASK || !index, before = NB_WAITING;
    if (endpoint == OMPT_BEGIN)
        before = nb_marks_state(NB_BUSY, flags & OMPT_INITIAL_TASK ? NB_BUSY : NB_WAITING);
    if (flags & OMPT_INITIAL_TASK)
        return;
    if (endpoint == OMPT_BEGIN) {
        enter_region(parallel, before != NB_BUSY);
        return;
    }
    depth -= depth > 0;
    nb_marks_state(first ? NB_BUSY : NB_WAITING, NB_WAITING);
}

static void on_wait(int kind, int endpoint, union ompt_data *parallel, union ompt_data *task,
                    const void *address)
{
    (void)kind;
    (void)parallel;
    (void)task;
    (void)address;
    int before = nb_marks_state(endpoint == OMPT_BEGIN ? NB_WAITING : NB_BUSY, NB_BUSY);
    pause_region(endpoint, before != NB_BUSY);
}

/* An explicit task works also where its thread waits. */
static void on_task_schedule(union ompt_data *prior, int status, union ompt_data *next)
{
    (void)prior;
    (void)next;
    if (status == OMPT_EARLY_FULFILL || status == OMPT_LATE_FULFILL ||
        status == OMPT_TASKWAIT_COMPLETE)
        return;
    if (status == OMPT_COMPLETE || status == OMPT_CANCEL || status == OMPT_DETACH) {
        nb_marks_state(states & 1 ? NB_BUSY : NB_WAITING, NB_WAITING);
        states >>= 1;
    } else {
        states = states << 1 | (uint64_t)nb_marks_state(NB_BUSY, NB_WAITING);
    }
}

static void on_acquire(int kind, unsigned hint, unsigned implementation, uint64_t id,
                       const void *address)
{
    (void)hint;
    (void)implementation;
    (void)id;
    (void)address;
    if (kind != OMPT_TEST_LOCK && kind != OMPT_TEST_NEST_LOCK) /* those may end without the lock */
        nb_marks_state(NB_WAITING, NB_BUSY);
}

static void on_acquired(int kind, uint64_t id, const void *address)
{
    (void)kind;
    (void)id;
    (void)address;
    nb_marks_state(NB_BUSY, NB_BUSY);
}

static int initialize(ompt_lookup lookup, int device, union ompt_data *tool)
{
    (void)device;
    (void)tool;
    ompt_set_callback set = (ompt_set_callback)lookup("ompt_set_callback");
    if (!set)
        return 0;
    set(OMPT_PARALLEL_BEGIN, (ompt_callback)on_fork);
    set(OMPT_IMPLICIT_TASK, (ompt_callback)on_implicit_task);
    set(OMPT_SYNC_REGION_WAIT, (ompt_callback)on_wait);
    set(OMPT_TASK_SCHEDULE, (ompt_callback)on_task_schedule);
    set(OMPT_MUTEX_ACQUIRE, (ompt_callback)on_acquire);
    set(OMPT_MUTEX_ACQUIRED, (ompt_callback)on_acquired);
    nb_marks_observer = NB_OMPT;
    return 1;
}

static void finalize(union ompt_data *tool)
{
    (void)tool;
}

/* The runtime asks whoever has this name; where we have nothing to do it is another tool's turn. */
struct ompt_result *ompt_start_tool(unsigned version, const char *runtime)
{
    static struct ompt_result ours = {.initialize = initialize, .finalize = finalize};
    if (nb_marks_observer != NB_NOBODY)
        return &ours;
    __typeof__(&ompt_start_tool) next = (__typeof__(&ompt_start_tool))dlsym(RTLD_NEXT,
                                                                            "ompt_start_tool");
    return next ? next(version, runtime) : NULL;
}
