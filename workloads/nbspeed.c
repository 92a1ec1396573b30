/* libnbspeed.so: notes how fast the CPU is while a program runs that knows nothing of it.
 *
 * Each thread gets a timer on its own CPU time, whose expiry the kernel notices in its tick: there
 * is no interrupt of our own, and a thread that sleeps is never woken. The signal's handler does
 * the three works of speed.h and stores how long they took. The file is named by NOISEBOOK_SPEED;
 * without it the library does nothing.
 *
 * The program must not notice: the signal is one of the real-time ones that the program does not
 * use (NB_SIGNAL), which it can neither block, wait for nor handle; errno is kept; an alternative
 * stack is used where the program has set one.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "marks.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { MOST_RANGES = 32 };

struct range {
    uintptr_t from, to;
    enum nb_place place;
};

static struct nb_speed_header *header; /* NULL: nobody asked */
static struct nb_speed_sample *samples;
static const char *pool;
static int speed_signal;
static struct range ranges[MOST_RANGES];
static int range_count;

static __thread int32_t thread_id; /* 0: this thread has no timer */
static __thread timer_t thread_timer;
static __thread uint64_t memory_state;
static volatile double sink = 1; /* so that no work is left out */

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
    (void)size;
    int place = place_of(info->dlpi_name), *next = count;
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
    int count = 0;
    dl_iterate_phdr(add_ranges, &count);
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

#if defined(__x86_64__)
__attribute__((target("avx2,fma"), noinline)) static double wide_throughput_work(double value)
{
    typedef double four __attribute__((vector_size(32)));
    four chains[10], factor = {0.999, 0.999, 0.999, 0.999}, term = {0.001, 0.001, 0.001, 0.001};
    for (int chain = 0; chain < 10; chain++)
        chains[chain] = (four){value, value, value, value};
    for (int step = 0; step < NB_SPEED_ROUNDS; step++)
#pragma GCC unroll 10
        for (int chain = 0; chain < 10; chain++)
            chains[chain] = chains[chain] * factor + term;
    four sum = {0, 0, 0, 0};
    for (int chain = 0; chain < 10; chain++)
        sum += chains[chain];
    return (sum[0] + sum[1] + sum[2] + sum[3]) / 40;
}
#endif

static __attribute__((noinline)) double narrow_throughput_work(double value)
{
    return nb_throughput_work(value);
}

static double (*throughput_work)(double) = narrow_throughput_work;

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* Twice, and the shorter time counts: the first pass may be cold, and an interrupt hits one. */
static int32_t time_of(double (*work)(double))
{
    int64_t begin_ns = nb_now_ns();
    sink = work(sink);
    int64_t middle_ns = nb_now_ns();
    sink = work(sink);
    return (int32_t)least(middle_ns - begin_ns, nb_now_ns() - middle_ns);
}

static int32_t time_of_memory(void)
{
    int64_t begin_ns = nb_now_ns();
    memory_state = nb_memory_work(pool, header->pool_lines, memory_state);
    return (int32_t)(nb_now_ns() - begin_ns);
}

/* Two CPUs may share a core: they sample in turn, each while the other is in the program. All of a
 * turn do so in the same tick: a program with barriers then waits for one sample, not for many. */
static void set_timer(int64_t now_ns, int cpu)
{
    int64_t interval_ns = header->interval_ns, turn_ns = cpu % 2 * interval_ns / 2;
    int64_t next_ns = ((now_ns - turn_ns + interval_ns / 4) / interval_ns + 1) * interval_ns;
    int64_t after_ns = next_ns + turn_ns - now_ns;
    struct itimerspec times = {.it_value = {after_ns / 1000000000, after_ns % 1000000000}};
    timer_settime(thread_timer, 0, &times, NULL);
}

static void take_sample(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    int saved_errno = errno, cpu = sched_getcpu();
    int64_t wall_ns = nb_now_ns();
    int64_t place = __atomic_fetch_add(&header->count, 1, __ATOMIC_RELAXED);
    if (place < header->capacity) {
        struct nb_speed_sample *sample = &samples[place];
        sample->wall_ns = wall_ns;
        sample->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        sample->thread = thread_id;
        sample->cpu = cpu;
        sample->place = interrupted_place(context);
        sample->memory_ns = time_of_memory();
        sample->throughput_ns = time_of(throughput_work);
        sample->latency_ns = time_of(nb_latency_work);
    }
    if (thread_id)
        set_timer(wall_ns, cpu);
    errno = saved_errno;
}

/* --- a timer for each thread --------------------------------------------------------------- */

static void start_timer(void)
{
    thread_id = (int32_t)syscall(SYS_gettid);
    memory_state = (uint64_t)thread_id * 0x9e3779b97f4a7c15ULL;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = speed_signal};
    event.sigev_notify_thread_id = thread_id;
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &thread_timer) < 0) {
        thread_id = 0;
        return;
    }
    set_timer(nb_now_ns(), sched_getcpu());
}

static void stop_timer(void *unused)
{
    (void)unused;
    if (thread_id)
        timer_delete(thread_timer);
    thread_id = 0;
    nb_marks_thread_ends();
}

/* Timers are not inherited. */
static void start_in_child(void)
{
    if (thread_id)
        start_timer();
    nb_marks_in_child();
}

struct begin {
    void *(*function)(void *);
    void *argument;
};

static void *run_thread(void *given)
{
    struct begin begin = *(struct begin *)given;
    void *result;
    free(given);
    nb_marks_thread_begins();
    start_timer();
    pthread_cleanup_push(stop_timer, NULL);
    result = begin.function(begin.argument);
    pthread_cleanup_pop(1);
    return result;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                   void *argument)
{
    static __typeof__(&pthread_create) real;
    if (!real)
        real = REAL(pthread_create);
    struct begin *begin = header ? malloc(sizeof *begin) : NULL;
    if (!begin)
        return real(thread, attributes, function, argument);
    find_ranges();
    *begin = (struct begin){function, argument};
    int error = real(thread, attributes, run_thread, begin);
    if (error)
        free(begin);
    return error;
}

/* --- the signal is not the program's --------------------------------------------------------- */

/* The set without our signal; `set` may be NULL. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy)
{
    if (!header || !set)
        return set;
    *copy = *set;
    sigdelset(copy, speed_signal);
    return copy;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    static __typeof__(&sigprocmask) real;
    if (!real)
        real = REAL(sigprocmask);
    sigset_t copy;
    return real(how, how == SIG_UNBLOCK ? set : without_ours(set, &copy), old);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    static __typeof__(&pthread_sigmask) real;
    if (!real)
        real = REAL(pthread_sigmask);
    sigset_t copy;
    return real(how, how == SIG_UNBLOCK ? set : without_ours(set, &copy), old);
}

int sigwait(const sigset_t *set, int *signal)
{
    static __typeof__(&sigwait) real;
    if (!real)
        real = REAL(sigwait);
    sigset_t copy;
    return real(without_ours(set, &copy), signal);
}

int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    static __typeof__(&sigwaitinfo) real;
    if (!real)
        real = REAL(sigwaitinfo);
    sigset_t copy;
    return real(without_ours(set, &copy), info);
}

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    static __typeof__(&sigtimedwait) real;
    if (!real)
        real = REAL(sigtimedwait);
    sigset_t copy;
    return real(without_ours(set, &copy), info, timeout);
}

/* A program that takes hold of every signal that there is: for ours nothing happens. */
int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    static __typeof__(&sigaction) real;
    if (!real)
        real = REAL(sigaction);
    if (!header || signal != speed_signal)
        return real(signal, action, old);
    if (old)
        *old = (struct sigaction){.sa_handler = SIG_DFL};
    return 0;
}

/* --- the beginning -----------------------------------------------------------------------------
 */

static struct nb_speed_header *map_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    void *file = MAP_FAILED;
    if (size > NB_SPEED_HEADER)
        file = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (file == MAP_FAILED)
        return NULL;
    struct nb_speed_header *found = file;
    int64_t bytes = NB_SPEED_HEADER + found->capacity * (int64_t)sizeof(struct nb_speed_sample) +
                    found->pool_lines * NB_SPEED_LINE + nb_marks_bytes(found);
    if (!strncmp(found->magic, NB_SPEED_MAGIC, sizeof found->magic) && bytes <= size)
        return found;
    munmap(file, (size_t)size);
    return NULL;
}

/* The last real-time signal that nobody handles: programs take them from the first. */
static int take_signal(void)
{
    struct sigaction ours = {
        .sa_sigaction = take_sample, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK
    };
    sigfillset(&ours.sa_mask);
    for (int signal = SIGRTMAX; signal >= SIGRTMIN; signal--) {
        struct sigaction now;
        if (sigaction(signal, NULL, &now) || now.sa_handler != SIG_DFL)
            continue;
        return sigaction(signal, &ours, NULL) ? 0 : signal;
    }
    return 0;
}

__attribute__((constructor)) static void begin_sampling(void)
{
    int saved_errno = errno;
    const char *path = getenv("NOISEBOOK_SPEED");
    struct nb_speed_header *file = path && *path ? map_file(path) : NULL;
    if (file && (speed_signal = take_signal())) {
        sigset_t ours;
        sigemptyset(&ours);
        sigaddset(&ours, speed_signal);
        pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
        samples = (struct nb_speed_sample *)((char *)file + NB_SPEED_HEADER);
        pool = (const char *)(samples + file->capacity);
        header = file;
        nb_marks_open(file, (char *)pool + file->pool_lines * NB_SPEED_LINE);
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
            throughput_work = wide_throughput_work;
#endif
        find_ranges();
        pthread_atfork(NULL, NULL, start_in_child);
        start_timer();
    }
    errno = saved_errno;
}
