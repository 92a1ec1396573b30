/* nbgomp.c, part of libnbspeed.so: sees a program enter and leave GNU's OpenMP runtime, which has
 * no interface for tools.
 *
 * The compiler's calls come here first: parallel regions and tasks run through a trampoline, inside
 * which the thread is busy; in a barrier, or until a region has ended, it waits. The functions that
 * the calls were meant for are looked up as the caller's own linker would have done it, since a
 * process may hold several runtimes (Python's packages bring their own).
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>

#include "marks.h"

typedef void work(void *data);
typedef void copy(void *to, void *from);
typedef unsigned long long wide;

/* Result, name, parameters, arguments: those that fork, those that make tasks, those that wait.
 * `fn` is the trampoline when it is handed on. */
#define LOOP_CHUNKS(X, schedule)                                                        \
    X(void, GOMP_parallel_loop_##schedule,                                              \
      (work * fn, void *data, unsigned team, long from, long to, long step, long chunk, \
       unsigned flags),                                                                 \
      (fn, data, team, from, to, step, chunk, flags))
#define LOOP_RUNTIME(X, schedule)                                                            \
    X(void, GOMP_parallel_loop_##schedule,                                                   \
      (work * fn, void *data, unsigned team, long from, long to, long step, unsigned flags), \
      (fn, data, team, from, to, step, flags))
#define REGIONS(X)                                                                                \
    X(void, GOMP_parallel, (work * fn, void *data, unsigned team, unsigned flags),                \
      (fn, data, team, flags))                                                                    \
    X(unsigned, GOMP_parallel_reductions, (work * fn, void *data, unsigned team, unsigned flags), \
      (fn, data, team, flags))                                                                    \
    X(void, GOMP_parallel_sections,                                                               \
      (work * fn, void *data, unsigned team, unsigned count, unsigned flags),                     \
      (fn, data, team, count, flags))                                                             \
    LOOP_CHUNKS(X, static)                                                                        \
    LOOP_CHUNKS(X, dynamic)                                                                       \
    LOOP_CHUNKS(X, guided)                                                                        \
    LOOP_CHUNKS(X, nonmonotonic_dynamic)                                                          \
    LOOP_CHUNKS(X, nonmonotonic_guided)                                                           \
    LOOP_RUNTIME(X, runtime)                                                                      \
    LOOP_RUNTIME(X, nonmonotonic_runtime)                                                         \
    LOOP_RUNTIME(X, maybe_nonmonotonic_runtime)
#define TASKS(X)                                                                       \
    X(void, GOMP_task,                                                                 \
      (work * fn, void *data, copy *copied, long size, long alignment, bool deferred,  \
       unsigned flags, void **depend, int priority, void *detach),                     \
      (fn, data, copied, size, alignment, deferred, flags, depend, priority, detach))  \
    X(void, GOMP_taskloop,                                                             \
      (work * fn, void *data, copy *copied, long size, long alignment, unsigned flags, \
       unsigned long count, int priority, long from, long to, long step),              \
      (fn, data, copied, size, alignment, flags, count, priority, from, to, step))     \
    X(void, GOMP_taskloop_ull,                                                         \
      (work * fn, void *data, copy *copied, long size, long alignment, unsigned flags, \
       unsigned long count, int priority, wide from, wide to, wide step),              \
      (fn, data, copied, size, alignment, flags, count, priority, from, to, step))
#define WAITS(X)                                                                     \
    X(void, GOMP_barrier, (void), ())                                                \
    X(bool, GOMP_barrier_cancel, (void), ())                                         \
    X(void, GOMP_loop_end, (void), ())                                               \
    X(bool, GOMP_loop_end_cancel, (void), ())                                        \
    X(void, GOMP_sections_end, (void), ())                                           \
    X(bool, GOMP_sections_end_cancel, (void), ())                                    \
    X(void *, GOMP_single_copy_start, (void), ())                                    \
    X(void, GOMP_workshare_task_reduction_unregister, (bool cancelled), (cancelled)) \
    X(void, GOMP_taskwait, (void), ())                                               \
    X(void, GOMP_taskwait_depend, (void **depend), (depend))                         \
    X(void, GOMP_taskgroup_end, (void), ())                                          \
    X(void, GOMP_ordered_start, (void), ())                                          \
    X(void, GOMP_critical_start, (void), ())                                         \
    X(void, GOMP_critical_name_start, (void **lock), (lock))

#define NUMBER(type, name, parameters, arguments) NUMBER_OF_##name,
#define NAME(type, name, parameters, arguments) #name,
enum { REGIONS(NUMBER) TASKS(NUMBER) WAITS(NUMBER) FUNCTIONS };
static const char *const names[] = {REGIONS(NAME) TASKS(NAME) WAITS(NAME)};

/* --- whose call it is --------------------------------------------------------------------------
 */

enum { MOST_CALLERS = 64 };

struct caller { /* a library, or all of them, and the functions that its calls are meant for */
    uintptr_t from, to;
    void *functions[FUNCTIONS];
};

static struct caller callers[MOST_CALLERS];
static int caller_count;
static __thread work *inside; /* the innermost region or task of this thread */

void GOMP_parallel(work *fn, void *data, unsigned team, unsigned flags);

static int find_library(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    struct caller *caller = found;
    uintptr_t address = caller->from, low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD)
            continue;
        uintptr_t from = info->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;
        low = from < low ? from : low;
        high = to > high ? to : high;
    }
    if (address < low || address >= high)
        return 0;
    caller->from = low;
    caller->to = high;
    return 1;
}

/* A runtime that the whole program sees is everybody's; otherwise it is found among what the
 * caller's own library was linked with. */
static void look_up(struct caller *caller, void *address)
{
    void *library = RTLD_NEXT;
    caller->from = 0;
    caller->to = UINTPTR_MAX;
    if (!dlsym(RTLD_NEXT, "GOMP_parallel")) {
        Dl_info info;
        struct link_map *map = NULL;
        caller->from = (uintptr_t)address;
        dl_iterate_phdr(find_library, caller);
        if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) && map)
            library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD); /* stays open: it stays here */
        if (library && dlsym(library, "GOMP_parallel") == (void *)GOMP_parallel)
            library = NULL; /* that of the program itself, which would call us again and again */
    }
    for (int i = 0; i < FUNCTIONS; i++)
        caller->functions[i] = library ? dlsym(library, names[i]) : NULL;
}

static __attribute__((noinline)) void *new_function(int number, void *address)
{
    struct caller caller;
    look_up(&caller, address);
    static int locked;
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        ;
    if (caller_count < MOST_CALLERS) {
        callers[caller_count] = caller;
        __atomic_store_n(&caller_count, caller_count + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
    return caller.functions[number];
}

static inline void *function(int number, void *address)
{
    int count = __atomic_load_n(&caller_count, __ATOMIC_ACQUIRE);
    for (int i = 0; i < count; i++)
        if ((uintptr_t)address >= callers[i].from && (uintptr_t)address < callers[i].to)
            return callers[i].functions[number];
    return new_function(number, address);
}

/* A function that ends with a call leaves no address of its own: then it is that of the region. */
static inline void *real_function(int number, void *address)
{
    void *found = function(number, address);
    if (!found && inside)
        found = function(number, (void *)inside);
    for (int i = 0; !found && i < caller_count; i++)
        found = callers[i].functions[number];
    if (!found)
        abort();
    return found;
}

/* --- trampolines -------------------------------------------------------------------------------
 */

enum { TRAMPOLINES = 1024 };

static work *works[TRAMPOLINES];

struct outside {
    int state;
    work *work;
    struct nb_visit visit, *before;
};

static void restore(int *before)
{
    nb_marks_state(*before, NB_BUSY);
}

static __thread struct nb_visit *visit; /* of that function */

/* The state first: it reads the clock for both. */
static void leave(struct outside *outside)
{
    restore(&outside->state);
    nb_marks_leave(&outside->visit, (uintptr_t)inside);
    visit = outside->before;
    inside = outside->work;
}

static __attribute__((noinline)) void run_work(int number, void *data)
{
    __attribute__((cleanup(leave), unused)) struct outside outside = {
        nb_marks_state(NB_BUSY, NB_WAITING), inside, {0}, visit
    };
    outside.before = visit;
    visit = &outside.visit;
    outside.visit = nb_marks_enter(outside.state != NB_BUSY);
    inside = works[number];
    inside(data);
}

static int begin_wait(void)
{
    int before = nb_marks_state(NB_WAITING, NB_BUSY);
    if (visit)
        nb_marks_leave(visit, (uintptr_t)inside);
    return before;
}

static void end_wait(int *before)
{
    restore(before);
    if (visit)
        *visit = nb_marks_enter(*before == NB_BUSY);
}

/* A function for each number, in octal digits: it knows its number and nothing else. */
#define DIGITS(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define TENS(X, n)  \
    DIGITS(X, n##0) \
    DIGITS(X, n##1) \
    DIGITS(X, n##2) \
    DIGITS(X, n##3) DIGITS(X, n##4) DIGITS(X, n##5) DIGITS(X, n##6) DIGITS(X, n##7)
#define HUNDREDS(X, n) \
    TENS(X, n##0)      \
    TENS(X, n##1)      \
    TENS(X, n##2) TENS(X, n##3) TENS(X, n##4) TENS(X, n##5) TENS(X, n##6) TENS(X, n##7)
#define TRAMPOLINE(n)                      \
    static void trampoline_##n(void *data) \
    {                                      \
        run_work(n, data);                 \
    }
#define TRAMPOLINE_NAME(n) trampoline_##n,
HUNDREDS(TRAMPOLINE, 0)
HUNDREDS(TRAMPOLINE, 01)
static work *const trampolines[TRAMPOLINES] = {HUNDREDS(TRAMPOLINE_NAME, 0)
                                                   HUNDREDS(TRAMPOLINE_NAME, 01)};

/* The trampoline of a function; where there is none left, the function, and its work is not seen.
 */
static work *trampoline_of(work *fn)
{
    uintptr_t start = ((uintptr_t)fn >> 4) * 0x9e3779b97f4a7c15ULL >> 54;
    for (int i = 0; i < TRAMPOLINES; i++) {
        int number = (int)((start + (uintptr_t)i) % TRAMPOLINES);
        work *here = __atomic_load_n(&works[number], __ATOMIC_RELAXED);
        if (!here && __atomic_compare_exchange_n(&works[number], &here, fn, 0, __ATOMIC_RELAXED,
                                                 __ATOMIC_RELAXED))
            here = fn;
        if (here == fn)
            return trampolines[number];
    }
    nb_marks_lack();
    return fn;
}

/* --- the runtime's functions -------------------------------------------------------------------
 */

#define REAL(type, name, parameters, address) \
    type(*real) parameters = (type(*) parameters)real_function(NUMBER_OF_##name, address)

/* Who forks waits until all threads are there, and after its own part for those of the others. */
#define DEFINE_REGION(type, name, parameters, arguments)                                  \
    type name parameters                                                                  \
    {                                                                                     \
        REAL(type, name, parameters, (void *)fn);                                         \
        if (nb_marks_observer != NB_WRAPPERS)                                             \
            return real arguments;                                                        \
        fn = trampoline_of(fn);                                                           \
        __attribute__((cleanup(restore), unused)) int before = nb_marks_state(NB_WAITING, \
                                                                              NB_BUSY);   \
        return real arguments;                                                            \
    }
#define DEFINE_TASK(type, name, parameters, arguments) \
    type name parameters                               \
    {                                                  \
        REAL(type, name, parameters, (void *)fn);      \
        if (nb_marks_observer == NB_WRAPPERS)          \
            fn = trampoline_of(fn);                    \
        return real arguments;                         \
    }
#define DEFINE_WAIT(type, name, parameters, arguments)                        \
    type name parameters                                                      \
    {                                                                         \
        REAL(type, name, parameters, __builtin_return_address(0));            \
        if (nb_marks_observer != NB_WRAPPERS)                                 \
            return real arguments;                                            \
        __attribute__((cleanup(end_wait), unused)) int before = begin_wait(); \
        return real arguments;                                                \
    }

REGIONS(DEFINE_REGION)
TASKS(DEFINE_TASK)
WAITS(DEFINE_WAIT)
