/* programs.c: what real programs do with signals, timers, threads and stacks. Each prints the same
 * with and without the probe: `programs NAME` (tests/speed/test_harmless.py). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

extern char **environ;
static volatile sig_atomic_t calls, last;
static volatile double sink = 1;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

/* Computes on this thread for some time. */
static void compute(double cpu_s)
{
    double end = seconds(CLOCK_THREAD_CPUTIME_ID) + cpu_s;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int step = 0; step < 10000; step++)
            sink = sink * 0.999 + 0.001;
}

static void *compute_thread(void *cpu_s)
{
    compute(*(double *)cpu_s);
    return NULL;
}

static void count_call(int signal)
{
    calls++;
    last = signal;
}

static void handle(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, NULL);
}

/* SIGPROF of setitimer, each 20 ms of CPU time: the number of calls in a second. */
static void profiled(void)
{
    struct itimerval times = {{0, 20000}, {0, 20000}};
    handle(SIGPROF, count_call, SA_RESTART);
    setitimer(ITIMER_PROF, &times, NULL);
    compute(1);
    printf("%d\n", calls);
}

/* A handler for each signal, as set; then each real-time signal is sent. */
static void every_handler(void)
{
    int differ = 0;
    for (int number = 1; number <= 64; number++) {
        struct sigaction action = {.sa_handler = count_call, .sa_flags = SA_RESTART | SA_ONSTACK};
        struct sigaction now;
        sigaddset(&action.sa_mask, number % 64 + 1);
        if (sigaction(number, &action, NULL))
            continue;
        sigaction(number, NULL, &now);
        differ += now.sa_handler != count_call || !(now.sa_flags & SA_ONSTACK);
        for (int member = 1; member <= 64; member++)
            differ += sigismember(&now.sa_mask, member) != sigismember(&action.sa_mask, member);
    }
    for (int round = 0; round < 20; round++) {
        compute(0.01);
        for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
            raise(number);
    }
    printf("differ %d calls %d last %d\n", differ, calls, last);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        if (signal(number, SIG_IGN) != count_call)
            printf("%d was not handled\n", number);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        raise(number);
    printf("calls %d\n", calls);
}

/* Everything is blocked; one thread waits for all that is sent, as a server does. */
static void wait_for_all(void)
{
    sigset_t all, now;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    double cpu_s = 0.3;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, compute_thread, &cpu_s);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        printf("%d", sigismember(&now, number));
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        int got = 0;
        compute(0.005);
        sigqueue(getpid(), number, (union sigval){.sival_int = number});
        printf(" %d:%d:%d", number, sigwait(&all, &got), got);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("\n");
}

/* Each real-time signal for itself: blocked, sent, awaited; of a timer, too; by a descriptor. */
static void wait_for_each(void)
{
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        siginfo_t info = {0};
        struct signalfd_siginfo record = {0};
        struct timespec second = {1, 0};
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, number);
        compute(0.006);
        sigprocmask(SIG_BLOCK, &set, NULL);
        pthread_kill(pthread_self(), number);
        printf("%d %d ", sigtimedwait(&set, &info, &second), info.si_code);
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
        struct itimerspec times = {.it_value = {0, 1000000}};
        timer_t timer;
        timer_create(CLOCK_MONOTONIC, &event, &timer);
        timer_settime(timer, 0, &times, NULL);
        printf("%d %d ", sigwaitinfo(&set, &info), info.si_code);
        timer_delete(timer);
        int file = signalfd(-1, &set, 0);
        raise(number);
        printf("%zd %u\n", read(file, &record, sizeof record), record.ssi_signo);
        close(file);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
}

/* What a real-time signal does to a program that does not handle it. */
static void die_of_each(void)
{
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        int status;
        pid_t child = fork();
        if (!child) {
            compute(0.006);
            raise(number);
            _exit(0);
        }
        waitpid(child, &status, 0);
        printf("%d ", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    printf("\n");
}

static int status_of(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void children(void)
{
    char *words[] = {"sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7", NULL};
    compute(0.05);
    pid_t child = fork();
    if (!child) {
        compute(0.1);
        _exit(3);
    }
    printf("fork %d\n", status_of(child));
    if (!(child = vfork())) {
        execv("/bin/sh", words);
        _exit(9);
    }
    printf("vfork %d\n", status_of(child));
    posix_spawnattr_t attributes;
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    printf("spawn %d ", posix_spawn(&child, "/bin/sh", NULL, &attributes, words, environ));
    printf("%d\n", status_of(child));
    printf("system %d\n", system("exit 5"));
    fflush(stdout);
    execl("/bin/sh", "sh", "-c", "echo exec", NULL);
}

static void *short_thread(void *kind)
{
    long what = (long)kind % 4;
    sink = sink * 0.999 + 0.001;
    if (what == 1)
        pthread_exit(kind);
    while (what == 2)
        usleep(100000);
    return kind;
}

static void *short_rounds(void *rounds)
{
    long ended = 0;
    for (long i = 0; i < (long)rounds; i++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, short_thread, (void *)i))
            break;
        if (i % 4 == 2)
            pthread_cancel(thread);
        if (i % 4 == 3)
            ended += !pthread_detach(thread);
        else
            ended += !pthread_join(thread, &result) &&
                     result == (i % 4 == 2 ? PTHREAD_CANCELED : (void *)i);
    }
    return (void *)ended;
}

/* Threads by the thousand; on standard error the timers that are left. */
static void churn(void)
{
    pthread_t threads[4];
    void *ended;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, short_rounds, (void *)2000L);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &ended);
        printf("%ld\n", (long)ended);
    }
    usleep(200000);
    int timers = 0;
    char line[256];
    FILE *file = fopen("/proc/self/timers", "r");
    while (file && fgets(line, sizeof line, file))
        timers += !strncmp(line, "ID:", 3);
    fprintf(stderr, "timers %d\n", timers);
}

/* A program that needs nearly as many timers as its user may have, and has many threads. */
static void many_timers(void)
{
    struct rlimit limit = {64, 64};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    double cpu_s = 0.01;
    pthread_t threads[100];
    timer_t timer;
    int made = 0, begun = 0;
    setrlimit(RLIMIT_SIGPENDING, &limit);
    for (int i = 0; i < 100; i++)
        begun += !pthread_create(&threads[i], NULL, compute_thread, &cpu_s);
    for (int i = 0; i < 50; i++)
        made += !timer_create(CLOCK_MONOTONIC, &event, &timer);
    for (int i = 0; i < 100; i++)
        pthread_join(threads[i], NULL);
    printf("threads %d timers %d\n", begun, made);
}

/* Fills most of the stack and computes on it. */
static void *use_stack(void *bytes)
{
    size_t size = *(size_t *)bytes;
    volatile unsigned char *area = alloca(size);
    unsigned long sum = 0;
    for (size_t i = 0; i < size; i++)
        area[i] = (unsigned char)i;
    compute(0.2);
    for (size_t i = 0; i < size; i++)
        sum += area[i] == (unsigned char)i;
    return (void *)sum;
}

static void small_stacks(void)
{
    static _Alignas(4096) char own[1 << 15];
    size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN), own_bytes = sizeof own - 8192;
    size_t bytes = least > 12288 ? least - 8192 : 4096;
    pthread_attr_t attributes;
    pthread_t thread;
    void *sum;
    size_t usual = 1 << 20;
    pthread_attr_init(&attributes);
    printf("%d ", pthread_create(&thread, &attributes, use_stack, &usual));
    pthread_join(thread, &sum);
    printf("%d\n", (size_t)sum == usual);
    pthread_attr_setstacksize(&attributes, least);
    printf("%d ", pthread_create(&thread, &attributes, use_stack, &bytes));
    pthread_join(thread, &sum);
    printf("%d\n", (size_t)sum == bytes);
    pthread_attr_setstack(&attributes, own, sizeof own);
    printf("%d ", pthread_create(&thread, &attributes, use_stack, &own_bytes));
    pthread_join(thread, &sum);
    printf("%d\n", (size_t)sum == own_bytes);
}

static char alternative[1 << 16];

static void compute_on_stack(int signal)
{
    char here;
    calls += &here > alternative && &here < alternative + sizeof alternative;
    last = signal;
    compute(0.03);
}

static void one_alternative(size_t size)
{
    stack_t stack = {.ss_sp = alternative + sizeof alternative - size, .ss_size = size}, now;
    memset(alternative, 0x5a, sizeof alternative);
    printf("%d ", sigaltstack(&stack, NULL));
    sigaltstack(NULL, &now);
    for (int round = 0; round < 10; round++) {
        compute(0.01);
        raise(SIGUSR1);
    }
    size_t whole = 0;
    while (whole < sizeof alternative && alternative[whole] == 0x5a)
        whole++;
    printf("%d %d %d\n", now.ss_size == size, calls, whole >= sizeof alternative - size);
}

static void alternative_stacks(void)
{
    handle(SIGUSR1, compute_on_stack, SA_ONSTACK);
    one_alternative(8192 * 2);
    /* room for a frame of the program's, not for the probe's (nb_signal_stack()): a frame's length
     * depends on the CPU's registers */
    size_t frame = getauxval(AT_MINSIGSTKSZ);
    one_alternative((frame ? frame : 2048) + 1024);
}

/* Calls that sleep a little, again and again, in a thread whose timer expires meanwhile. */
static void sleep_each_way(int interrupted[9])
{
    struct timespec short_time = {0, 300000}, later;
    struct timeval short_value = {0, 300};
    int pair[2], queue = epoll_create1(0), semaphore = semget(IPC_PRIVATE, 1, 0600);
    char byte;
    sem_t posix;
    sigset_t set;
    struct epoll_event event;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sem_init(&posix, 0, 0);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &short_value, sizeof short_value);
    double end = seconds(CLOCK_MONOTONIC) + 2;
    while (seconds(CLOCK_MONOTONIC) < end) {
        struct sembuf one = {0, -1, 0};
        struct timeval value = short_value;
        clock_gettime(CLOCK_REALTIME, &later);
        later.tv_nsec += later.tv_nsec < 999000000 ? 300000 : 0;
        interrupted[0] += nanosleep(&short_time, NULL) && errno == EINTR;
        interrupted[1] += poll(NULL, 0, 1) < 0;
        interrupted[2] += select(0, NULL, NULL, NULL, &value) < 0;
        interrupted[3] += epoll_wait(queue, &event, 1, 1) < 0;
        interrupted[4] += semtimedop(semaphore, &one, 1, &short_time) && errno == EINTR;
        interrupted[5] += sem_timedwait(&posix, &later) && errno == EINTR;
        interrupted[6] += read(pair[0], &byte, 1) < 0 && errno == EINTR;
        interrupted[7] += sigtimedwait(&set, NULL, &short_time) < 0 && errno == EINTR;
        interrupted[8] += clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, NULL) == EINTR;
        compute(0.002);
    }
    semctl(semaphore, 0, IPC_RMID);
}

static void *sleeping_thread(void *unused)
{
    int interrupted[9] = {0}, all = 0;
    (void)unused;
    sleep_each_way(interrupted);
    for (int i = 0; i < 9; i++)
        all += interrupted[i];
    return (void *)(long)all;
}

static void sleeping(void)
{
    pthread_t threads[3];
    void *interrupted;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, sleeping_thread, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &interrupted);
        printf("%ld\n", (long)interrupted);
    }
}

static sigjmp_buf jump;

static void jump_out(int signal)
{
    last = signal;
    siglongjmp(jump, 1);
}

static void jumps(void)
{
    struct sigaction action = {.sa_handler = jump_out};
    sigfillset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    for (volatile int round = 0; round < 200; round++) {
        struct itimerval times = {{0, 0}, {0, 3000}};
        if (sigsetjmp(jump, 1)) {
            calls++;
            continue;
        }
        setitimer(ITIMER_REAL, &times, NULL);
        for (;;)
            compute(0.001);
    }
    printf("%d\n", calls);
}

/* A sum whose bits depend on rounding and on denormal numbers. */
static void modes(void)
{
    volatile double value = 1e-310;
    long double wide = 1;
    double sum = 0;
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#endif
    for (long step = 1; step < 60000000; step++) {
        sum += 1.0 / (double)step + value * 0.5;
        wide += 1.0L / step;
    }
    printf("%a %La %d", sum, wide, fegetround() == FE_UPWARD);
#if defined(__x86_64__)
    printf(" %x", _mm_getcsr() & ~0x3fU);
#endif
    printf("\n");
}

static void without_files(void)
{
    for (int file = 3; file < 1024; file++)
        close(file);
    compute(0.2);
    printf("%d\n", open("/dev/null", 0));
}

static void forbidden(void)
{
    compute(0.05);
    printf("forbidden\n");
    fflush(stdout);
    prctl(PR_SET_SECCOMP, 1, 0, 0, 0);
    for (long step = 0; step < 200000000; step++)
        sink = sink * 0.999 + 0.001;
    if (write(1, "alive\n", 6) == 6)
        syscall(SYS_exit, 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"profiled", profiled},
    {"every_handler", every_handler},
    {"wait_for_all", wait_for_all},
    {"wait_for_each", wait_for_each},
    {"die_of_each", die_of_each},
    {"children", children},
    {"churn", churn},
    {"many_timers", many_timers},
    {"small_stacks", small_stacks},
    {"alternative_stacks", alternative_stacks},
    {"sleeping", sleeping},
    {"jumps", jumps},
    {"modes", modes},
    {"without_files", without_files},
    {"forbidden", forbidden}
};

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; count == 2 && i < sizeof programs / sizeof *programs; i++)
        if (!strcmp(words[1], programs[i].name)) {
            programs[i].run();
            return 0;
        }
    return 2;
}
