/* Preloaded: the n-th call of a kind fails, one time, since nth_arm(kind, n); nth_calls counts.
 *
 * Only files on a disk count as written: pipes, sockets and the terminal do not fill up. The real
 * calls are made directly; those of memory and of processes by the C library (glibc). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HERE = -100 }; /* AT_FDCWD; fcntl.h has other prototypes */
enum { NONE, WRITE, FSYNC, RENAME, OPEN, MALLOC, FORK };

long nth_calls;
static long nth;
static int armed;

void nth_arm(int kind, long n)
{
    armed = kind, nth = n, nth_calls = 0;
}

static int fails(int kind, int error)
{
    if (kind != armed || ++nth_calls != nth)
        return 0;
    errno = error;
    return 1;
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    struct stat file;
    if (armed == WRITE && !fstat(fd, &file) && S_ISREG(file.st_mode) && fails(WRITE, ENOSPC))
        return -1;
    return syscall(SYS_write, fd, bytes, count);
}

int fsync(int fd)
{
    return fails(FSYNC, EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

int renameat(int from, const char *old, int to, const char *new)
{
    return fails(RENAME, ENOSPC) ? -1 : (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

int rename(const char *old, const char *new)
{
    return renameat(HERE, old, HERE, new);
}

/* The mode is passed on from its register whether there is one or not, as by the kernel. */
int openat(int folder, const char *path, int flags, int mode)
{
    return fails(OPEN, EMFILE) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, int mode)
{
    return openat(folder, path, flags, mode);
}

int open(const char *path, int flags, int mode)
{
    return openat(HERE, path, flags, mode);
}

int open64(const char *path, int flags, int mode)
{
    return openat(HERE, path, flags, mode);
}

extern void *__libc_malloc(size_t);
void *malloc(size_t bytes)
{
    return fails(MALLOC, ENOMEM) ? NULL : __libc_malloc(bytes);
}

pid_t fork(void)
{
    pid_t (*real)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
    return fails(FORK, EAGAIN) ? -1 : real();
}

pid_t vfork(void)
{
    return fork();
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const words[], char *const env[])
{
    int (*real)() = (int (*)())dlsym(RTLD_NEXT, "posix_spawnp");
    return fails(FORK, EAGAIN) ? EAGAIN : real(pid, file, actions, attributes, words, env);
}
