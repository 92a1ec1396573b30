/* libnbspeed.so: notes how fast the CPU is while a program runs that knows nothing of it.
 *
 * Each thread gets a timer on its own CPU time, whose expiry the kernel notices in its tick: there
 * is no interrupt of our own, and a thread that sleeps is never woken. The signal's handler does
 * the three works of speed.h and stores how long they took. The file is named by NOISEBOOK_SPEED;
 * without it the library does nothing.
 *
 * The program must not notice. Its own signals, masks and stacks are the business of nbsignals.c;
 * the kernel keeps its registers, with modes of rounding and denormal numbers, and gives the
 * handler fresh ones; errno is kept. Timers count against a limit of the user (RLIMIT_SIGPENDING):
 * most of them are left to the program. A thread without a timer is counted in the file.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "marks.h"
#include "signals.h"
#include "works.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { MOST_RANGES = 32, TIMER_SHARE = 8, SMALL_STACK = 1 << 16, MORE_STACK = 1 << 15 };

struct range {
    uintptr_t from, to;
    enum nb_place place;
};

static struct nb_speed_header *header; /* NULL: nobody asked */
static struct nb_speed_sample *samples;
static struct nb_works works;
static int speed_signal;
static struct range ranges[MOST_RANGES];
static int range_count;
static int timers; /* of this process, now */

static __thread int32_t thread_id; /* 0: this thread has no timer */
static __thread timer_t thread_timer;
static __thread uint64_t memory_state;
static __thread int sampled; /* this thread has samples */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* --- where the program was ----------------------------------------------------------------- */

static int place_of(const char *library)
{
    static const struct {
        const char *begin;
        enum nb_place place;
    } known[] = {{"libgomp", NB_IN_OPENMP}, {"libomp", NB_IN_OPENMP}, {"libiomp", NB_IN_OPENMP},
                 {"libmpi", NB_IN_MPI},     {"libmpich", NB_IN_MPI},  {"libopen-pal", NB_IN_MPI}};
    const char *name = strrchr(library, '/');
    name = name ? name + 1 : library;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i].begin, strlen(known[i].begin)))
            return known[i].place;
    return NB_IN_PROGRAM;
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *count)
{
    static unsigned long long seen; /* libraries loaded so far */
    int place = place_of(info->dlpi_name), *next = count;
    (void)size;
    if (*next < 0 && info->dlpi_adds == seen)
        return 1;
    seen = info->dlpi_adds;
    *next = *next < 0 ? 0 : *next;
    if (place == NB_IN_PROGRAM)
        return 0;
    for (int i = 0; i < info->dlpi_phnum && *next < MOST_RANGES; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        uintptr_t from = info->dlpi_addr + part->p_vaddr;
        ranges[(*next)++] = (struct range){from, from + part->p_memsz, place};
    }
    return 0;
}

/* Libraries may be loaded later; those that have threads are there before their threads. */
static void find_ranges(void)
{
    int count = -1;
    dl_iterate_phdr(add_ranges, &count);
    if (count >= 0)
        __atomic_store_n(&range_count, count, __ATOMIC_RELEASE);
}

static int32_t interrupted_place(const ucontext_t *context)
{
#if defined(__x86_64__)
    uintptr_t at = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    uintptr_t at = (uintptr_t)context->uc_mcontext.pc;
#else
    uintptr_t at = 0;
    (void)context;
#endif
    int count = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
    for (int i = 0; i < count; i++)
        if (at >= ranges[i].from && at < ranges[i].to)
            return ranges[i].place;
    return NB_IN_PROGRAM;
}

/* --- a sample ------------------------------------------------------------------------------ */

/* All CPUs of a turn sample in the same tick: a program with barriers then waits for one sample,
 * not for many. */
static void set_timer(int64_t now_ns, int cpu)
{
    int64_t after_ns = nb_next_turn_ns(now_ns, header->interval_ns, cpu) - now_ns;
    struct itimerspec times = {.it_value = {after_ns / 1000000000, after_ns % 1000000000}};
    timer_settime(thread_timer, 0, &times, NULL);
}

static struct nb_speed_sample *new_sample(int64_t wall_ns, int cpu, int32_t where)
{
    int64_t place = __atomic_fetch_add(&header->count, 1, __ATOMIC_RELAXED);
    if (place >= header->capacity)
        return NULL;
    struct nb_speed_sample *sample = &samples[place];
    sample->wall_ns = wall_ns;
    sample->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    sample->thread = thread_id;
    sample->cpu = cpu;
    sample->place = where;
    sample->latency_ns = sample->throughput_ns = sample->memory_ns = 0;
    return sample;
}

static void take_sample(const ucontext_t *context)
{
    if (nb_signal_yielded())
        return;
    int cpu = sched_getcpu();
    int64_t wall_ns = nb_now_ns();
    struct nb_speed_sample *sample = new_sample(wall_ns, cpu, interrupted_place(context));
    if (sample)
        nb_work(&works, &memory_state, sample);
    sampled = 1;
    if (thread_id)
        set_timer(wall_ns, cpu);
}

/* --- a timer for each thread --------------------------------------------------------------- */

void nb_signal_left(void)
{
    __atomic_fetch_add(&header->unsampled, 1, __ATOMIC_RELAXED);
}

/* The program may want timers, too. */
static int take_timer(void)
{
    struct rlimit limit;
    int before = __atomic_fetch_add(&timers, 1, __ATOMIC_RELAXED);
    if (!getrlimit(RLIMIT_SIGPENDING, &limit) && (rlim_t)before < limit.rlim_cur / TIMER_SHARE)
        return 1;
    __atomic_fetch_sub(&timers, 1, __ATOMIC_RELAXED);
    return 0;
}

static int make_timer(int32_t thread)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = speed_signal};
    event.sigev_value.sival_ptr = &nb_signal_token;
    event.sigev_notify_thread_id = thread;
    if (!take_timer())
        return 0;
    if (!timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &thread_timer))
        return 1;
    __atomic_fetch_sub(&timers, 1, __ATOMIC_RELAXED);
    return 0;
}

static void start_timer(void)
{
    int32_t thread = (int32_t)syscall(SYS_gettid);
    if (nb_signal_yielded())
        return;
    if (!make_timer(thread)) {
        nb_signal_left();
        return;
    }
    memory_state = (uint64_t)thread * 0x9e3779b97f4a7c15ULL;
    thread_id = thread;
    set_timer(nb_now_ns(), sched_getcpu());
}

/* A program that forbids system calls must not die of ours. */
static void stop_timer(void)
{
    if (!thread_id || nb_signal_yielded())
        return;
    thread_id = 0;
    timer_delete(thread_timer);
    __atomic_fetch_sub(&timers, 1, __ATOMIC_RELAXED);
}

void nb_signal_leave_thread(void)
{
    if (thread_id)
        nb_signal_left();
    stop_timer();
}

static void end_thread(void *unused)
{
    (void)unused;
    if (sampled && thread_id && !nb_signal_yielded())
        new_sample(nb_now_ns(), sched_getcpu(), NB_ENDED);
    stop_timer();
    nb_marks_thread_ends();
}

/* Timers are not inherited. */
static void start_in_child(void)
{
    timers = sampled = 0;
    if (thread_id)
        start_timer();
    nb_marks_in_child();
}

struct begin {
    void *(*function)(void *);
    void *argument;
    int hidden, sampled;
};

static void *run_thread(void *given)
{
    struct begin begin = *(struct begin *)given;
    void *result;
    free(given);
    nb_marks_thread_begins();
    nb_signal_hide(begin.hidden);
    if (begin.sampled)
        start_timer();
    else
        nb_signal_left();
    pthread_cleanup_push(end_thread, NULL);
    result = begin.function(begin.argument);
    pthread_cleanup_pop(1);
    return result;
}

/* A small stack gets more room; one that the program has made cannot. Returns whether the handler
 * has room. */
static int make_room(const pthread_attr_t *attributes, pthread_attr_t *copy)
{
    void *address = NULL;
    size_t size = 0, chosen = 0; /* 0: the default, which getstacksize says and getstack does not */
    if (pthread_attr_getstacksize(attributes, &size) || size >= SMALL_STACK)
        return 1;
    if (!pthread_attr_getstack(attributes, &address, &chosen) && (uintptr_t)address + chosen)
        return 0; /* the end of a stack that the program has not made is 0 */
    return !pthread_attr_setstacksize(copy, size + MORE_STACK);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument)
{
    static __typeof__(&pthread_create) real;
    if (!real)
        real = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_create");
    struct begin *begin = header ? malloc(sizeof *begin) : NULL;
    if (!begin)
        return real(thread, attributes, function, argument);
    find_ranges();
    *begin = (struct begin){function, argument, nb_signal_hidden(), 1};
    pthread_attr_t copy;
    if (attributes) {
        copy = *attributes;
        begin->sampled = make_room(attributes, &copy);
    }
    int error = real(thread, attributes ? &copy : NULL, run_thread, begin);
    if (error)
        free(begin);
    return error;
}

/* --- the beginning -----------------------------------------------------------------------------
 */

static struct nb_speed_header *map_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    void *file = MAP_FAILED;
    if (size > NB_SPEED_HEADER)
        file = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (file == MAP_FAILED)
        return NULL;
    madvise(file, (size_t)size, MADV_DONTDUMP);
    struct nb_speed_header *found = file;
    int64_t bytes = NB_SPEED_HEADER + found->capacity * (int64_t)sizeof(struct nb_speed_sample) +
                    found->pool_lines * NB_SPEED_LINE + nb_marks_bytes(found);
    if (!strncmp(found->magic, NB_SPEED_MAGIC, sizeof found->magic) && bytes <= size)
        return found;
    munmap(file, (size_t)size);
    return NULL;
}

__attribute__((constructor)) static void begin_sampling(void)
{
    int saved_errno = errno;
    const char *path = getenv("NOISEBOOK_SPEED");
    struct nb_speed_header *file = path && *path ? map_file(path) : NULL;
    if (file && (speed_signal = nb_signal_take(take_sample))) {
        samples = (struct nb_speed_sample *)((char *)file + NB_SPEED_HEADER);
        header = file;
        nb_marks_open(file, (char *)(samples + file->capacity) + file->pool_lines * NB_SPEED_LINE);
        nb_works_begin(&works, file);
        find_ranges();
        pthread_atfork(NULL, NULL, start_in_child);
        start_timer();
    }
    errno = saved_errno;
}
