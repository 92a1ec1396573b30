/* nbsignals.c, part of libnbspeed.so: the program does not notice the signal.
 *
 * It is a real-time signal from the middle, which hardly any program names. The program handles it:
 * its handler gets what is not ours. It blocks it together with most others: it stays unblocked,
 * and the program reads that it is blocked. It blocks or waits for it by name, or is about to
 * forbid system calls: then sampling ends, and the runs table says so.
 */
#include "signals.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

enum { HANDLER_BYTES = 2048, MOST_NAMED = 32, KERNEL_MASK_BYTES = 8 };

char nb_signal_token;

static int ours; /* 0: nobody asked */
static __typeof__(&sigaction) real_sigaction;
static int yielded;
static void (*take)(const ucontext_t *context);
static struct sigaction
    actions[2]; /* the program's, for our signal: the current one, and the next */
static int current_action;
static uint64_t masked_ours; /* a bit a signal: the program's own mask for its handler has ours */
static __thread bool hidden; /* the program believes that this thread blocks our signal */

int nb_signal_yielded(void)
{
    return __atomic_load_n(&yielded, __ATOMIC_RELAXED);
}

int nb_signal_hidden(void)
{
    return hidden;
}

void nb_signal_hide(int from_program)
{
    hidden = from_program;
}

static void yield_signal(void)
{
    if (ours && !__atomic_exchange_n(&yielded, 1, __ATOMIC_RELAXED))
        nb_signal_left();
}

size_t nb_signal_stack(void)
{
    size_t frame = getauxval(AT_MINSIGSTKSZ);
    return (frame ? frame : 2048) + HANDLER_BYTES;
}

/* Whether the program names our signal: a set of most signals names none. */
static bool names_ours(const sigset_t *set)
{
    uint64_t members;
    memcpy(&members, set, sizeof members);
    return ours && sigismember(set, ours) == 1 && __builtin_popcountll(members) <= MOST_NAMED;
}

/* --- what is not ours ------------------------------------------------------------------------ */

static bool is_ours(int signal, const siginfo_t *info)
{
    return signal == ours && info->si_code == SI_TIMER &&
           info->si_value.sival_ptr == &nb_signal_token;
}

static const struct sigaction *program_action(void)
{
    return &actions[__atomic_load_n(&current_action, __ATOMIC_ACQUIRE)];
}

/* It stays pending until the program unblocks or awaits it. */
static void send_again(siginfo_t *info)
{
    if (info->si_code == SI_TKILL)
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), ours, info);
    else
        syscall(SYS_rt_sigqueueinfo, getpid(), ours, info);
}

static void die_of_it(void)
{
    static const struct sigaction deadly = {.sa_handler = SIG_DFL};
    real_sigaction(ours, &deadly, NULL);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), ours);
}

/* As the kernel would have called the program's handler. */
static void call_program(siginfo_t *info, ucontext_t *context)
{
    struct sigaction action = *program_action();
    sigset_t mask;
    sigorset(&mask, &context->uc_sigmask, &action.sa_mask);
    if (!(action.sa_flags & SA_NODEFER))
        sigaddset(&mask, ours);
    if (action.sa_flags & SA_RESETHAND)
        actions[current_action].sa_handler = SIG_DFL;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, KERNEL_MASK_BYTES);
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(ours, info, context);
    else
        action.sa_handler(ours);
}

static void on_signal(int signal, siginfo_t *info, void *at)
{
    int saved_errno = errno;
    ucontext_t *context = at;
    sighandler_t handler = program_action()->sa_handler;
    if (is_ours(signal, info)) {
        take(context);
    } else if (hidden) {
        yield_signal();
        sigaddset(&context->uc_sigmask, ours);
        send_again(info);
    } else if (handler == SIG_DFL) {
        die_of_it();
    } else if (handler != SIG_IGN) {
        call_program(info, context);
    }
    errno = saved_errno;
}

/* --- handlers -------------------------------------------------------------------------------- */

static int set_ours(int flags)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    action.sa_flags |= flags & SA_RESTART;
    sigfillset(&action.sa_mask);
    return real_sigaction(ours, &action, NULL);
}

static int set_program_action(const struct sigaction *action, struct sigaction *old)
{
    int next = !current_action;
    if (old)
        *old = actions[!next];
    if (!action)
        return 0;
    actions[next] = *action;
    __atomic_store_n(&current_action, next, __ATOMIC_RELEASE);
    return set_ours(action->sa_flags);
}

/* On an alternative stack there is room for one frame of ours, not for one on top of another. */
static int set_other_action(int signal, const struct sigaction *action, struct sigaction *old)
{
    if (!real_sigaction)
        real_sigaction = REAL(sigaction);
    if (!ours || signal < 1 || signal > 64)
        return real_sigaction(signal, action, old);
    uint64_t bit = UINT64_C(1) << (signal - 1);
    bool had_ours = masked_ours & bit, on_stack = action && action->sa_flags & SA_ONSTACK;
    bool has_ours = action && sigismember(&action->sa_mask, ours) == 1;
    struct sigaction copy;
    if (on_stack) {
        copy = *action;
        sigaddset(&copy.sa_mask, ours);
    }
    int result = real_sigaction(signal, on_stack ? &copy : action, old);
    if (!result && old && !had_ours)
        sigdelset(&old->sa_mask, ours);
    if (!result && action)
        masked_ours = has_ours ? masked_ours | bit : masked_ours & ~bit;
    return result;
}

int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    return ours && signal == ours ? set_program_action(action, old)
                                  : set_other_action(signal, action, old);
}

static sighandler_t set_handler(sighandler_t handler, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    set_program_action(&action, &old);
    return old.sa_handler;
}

#define HANDLER_FUNCTION(name, flags)                   \
    sighandler_t name(int number, sighandler_t handler) \
    {                                                   \
        static __typeof__(&name) real;                  \
        if (ours && number == ours)                     \
            return set_handler(handler, flags);         \
        if (!real)                                      \
            real = REAL(name);                          \
        return real(number, handler);                   \
    }

HANDLER_FUNCTION(signal, SA_RESTART)
HANDLER_FUNCTION(ssignal, SA_RESTART)
HANDLER_FUNCTION(sysv_signal, SA_RESETHAND | SA_NODEFER)
HANDLER_FUNCTION(__sysv_signal, SA_RESETHAND | SA_NODEFER)

int sigaltstack(const stack_t *stack, stack_t *old)
{
    static __typeof__(&sigaltstack) real;
    if (!real)
        real = REAL(sigaltstack);
    if (ours && stack && !(stack->ss_flags & SS_DISABLE) && stack->ss_size < nb_signal_stack())
        nb_signal_leave_thread();
    return real(stack, old);
}

/* --- masks ----------------------------------------------------------------------------------- */

static bool hidden_after(int how, bool member)
{
    if (how == SIG_SETMASK)
        return member;
    return how == SIG_BLOCK ? hidden || member : hidden && !member;
}

static int set_mask(__typeof__(&sigprocmask) real, int how, const sigset_t *set, sigset_t *old)
{
    sigset_t copy;
    bool was_hidden = hidden, member = ours && set && sigismember(set, ours) == 1;
    const sigset_t *wanted = set;
    if (member && how != SIG_UNBLOCK && names_ours(set))
        yield_signal();
    if (member && how != SIG_UNBLOCK && !nb_signal_yielded()) {
        copy = *set;
        sigdelset(&copy, ours);
        wanted = &copy;
    }
    int result = real(how, wanted, old);
    if (!result && ours && set)
        hidden = hidden_after(how, member);
    if (!result && old && was_hidden)
        sigaddset(old, ours);
    return result;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    static __typeof__(&sigprocmask) real;
    if (!real)
        real = REAL(sigprocmask);
    return set_mask(real, how, set, old);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    static __typeof__(&pthread_sigmask) real;
    if (!real)
        real = REAL(pthread_sigmask);
    return set_mask(real, how, set, old);
}

/* --- waiting for signals -----------------------------------------------------------------------
 */

/* The set without our signal, unless the program has it for itself. */
static const sigset_t *awaited(const sigset_t *set, sigset_t *copy)
{
    if (!ours || !set || sigismember(set, ours) != 1)
        return set;
    if (names_ours(set))
        yield_signal();
    if (nb_signal_yielded())
        return set;
    *copy = *set;
    sigdelset(copy, ours);
    return copy;
}

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    static __typeof__(&sigtimedwait) real;
    if (!real)
        real = REAL(sigtimedwait);
    siginfo_t own_info;
    sigset_t copy;
    int signal, before;
    info = info ? info : &own_info;
    do { /* again, where a timer of ours was still under way when the program took the signal */
        before = nb_signal_yielded();
        signal = real(awaited(set, &copy), info, timeout);
    } while ((signal > 0 && is_ours(signal, info)) ||
             (signal < 0 && errno == EINTR && nb_signal_yielded() != before));
    return signal;
}

int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    return sigtimedwait(set, info, NULL);
}

int sigwait(const sigset_t *set, int *signal)
{
    int found;
    do
        found = sigtimedwait(set, NULL, NULL);
    while (found < 0 && errno == EINTR);
    if (found < 0)
        return errno;
    *signal = found;
    return 0;
}

int signalfd(int file, const sigset_t *set, int flags)
{
    static __typeof__(&signalfd) real;
    if (!real)
        real = REAL(signalfd);
    sigset_t copy;
    return real(file, awaited(set, &copy), flags);
}

/* --- system calls may soon be forbidden ------------------------------------------------------- */

/* Also in the programs that this one starts, whose first act would be ours. */
static void forget_file(void)
{
    char *file = getenv("NOISEBOOK_SPEED");
    if (file)
        *file = 0;
}

int prctl(int option, ...)
{
    static int (*real)(int, ...);
    unsigned long values[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        values[i] = va_arg(list, unsigned long);
    va_end(list);
    if (!real)
        real = (int (*)(int, ...))dlsym(RTLD_NEXT, "prctl");
    if (ours && (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS)) {
        yield_signal();
        forget_file();
    }
    return real(option, values[0], values[1], values[2], values[3]);
}

/* --- the beginning -----------------------------------------------------------------------------
 */

static bool is_free(int signal)
{
    struct sigaction now;
    return !real_sigaction(signal, NULL, &now) && now.sa_handler == SIG_DFL;
}

static void unblock(int signal)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, signal);
    REAL(pthread_sigmask)(SIG_UNBLOCK, &set, &before);
    hidden = sigismember(&before, signal) == 1;
}

/* From the middle: programs take the first and the last ones. */
int nb_signal_take(void (*handler)(const ucontext_t *context))
{
    take = handler;
    real_sigaction = REAL(sigaction);
    for (int signal = (SIGRTMIN + SIGRTMAX) / 2; signal <= SIGRTMAX; signal++)
        if (is_free(signal)) {
            ours = signal;
            set_ours(SA_RESTART);
            unblock(signal);
            return signal;
        }
    return 0;
}
