/* noisebook-priv's filter: the system calls that it makes, and no other (seccomp).
 *
 * It is put on before the first request. Who finds a mistake in the helper still runs no program,
 * starts no process, opens no socket, mounts nothing, loads no code and sends nobody a signal:
 * the kernel ends the helper. What a call is given the filter cannot see but for plain numbers.
 */
#include "nbpriv.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#else
#define MACHINE 0 /* the kernel's word for it is not known here: no filter */
#endif

#define LOAD(field) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define IF(test, value, then, otherwise) \
    BPF_JUMP(BPF_JMP | BPF_K | (test), (uint32_t)(value), then, otherwise)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define END BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define CALL(name) IF(BPF_JEQ, SYS_##name, 0, 1), ALLOW

int confine(void)
{
    struct sock_filter filter[] = {
        LOAD(arch), IF(BPF_JEQ, MACHINE, 1, 0), END, LOAD(nr),
        /* requests, answers and the end */
        CALL(recvmsg), CALL(sendmsg), CALL(close), CALL(close_range), CALL(exit_group),
        /* rights up and down */
        CALL(capset), CALL(setresuid), CALL(geteuid),
        /* files of the kernel */
        CALL(openat), CALL(dup3), CALL(read), CALL(write), CALL(lseek), CALL(fcntl), CALL(fstat),
        CALL(newfstatat), CALL(fstatfs), CALL(getdents64), CALL(flock),
        /* tracefs, and instances in it */
        CALL(fsopen), CALL(fsconfig), CALL(fsmount), CALL(mkdirat), CALL(unlinkat), CALL(fchmodat),
        CALL(fchownat),
        /* counters, limits, the machine's size, a pause */
        CALL(perf_event_open), CALL(prlimit64), CALL(sysinfo), CALL(sched_getaffinity),
        CALL(nanosleep), CALL(clock_nanosleep), CALL(restart_syscall),
        /* memory, but none that could be executed */
        CALL(brk), CALL(munmap), CALL(mremap), CALL(madvise), CALL(getrandom), CALL(futex),
        IF(BPF_JEQ, SYS_mmap, 1, 0), IF(BPF_JEQ, SYS_mprotect, 0, 2), LOAD(args[2]),
        IF(BPF_JSET, PROT_EXEC, 0, 1), END, ALLOW
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return MACHINE && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}
