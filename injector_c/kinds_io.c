/* Noise of files and the network. A lane's file has no name as soon as it is open, so that it goes
 * with the process, however that ends; the names of the metadata storm live in the injection's
 * scratch folder, which the supervisor removes when every lane is gone. */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

enum {
    OPERATION_BYTES = 131072,
    SYNC_BYTES = 524288,
    DATAGRAM = 16384,
    NAMES = 8,
    TMPFS = 0x01021994
};

static struct {
    int fd, other; /* the file, or the sockets that send and receive; or the folder */
    unsigned char *buffer;
    int64_t size, at;
    unsigned number;
} io = {.fd = -1, .other = -1};

static void disarm(void)
{
    int *const fds[] = {&io.fd, &io.other};
    for (int i = 0; i < 2; i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
    if (io.buffer)
        munmap(io.buffer, SYNC_BYTES);
    io.buffer = NULL;
}

static int map_buffer(void)
{
    void *bytes = mmap(NULL, SYNC_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (bytes == MAP_FAILED)
        return -errno;
    io.buffer = bytes;
    memset(bytes, 0x5a, SYNC_BYTES);
    return 0;
}

/* A file without a name; where the file system has none, its name is removed at once. */
static int open_nameless(const char *folder, int flags)
{
    const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd < 0 ? -errno : fd;
    const int place = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int named = openat(place, "data", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | flags, 0600);
    const int error = named < 0 ? -errno : unlinkat(place, "data", 0) ? -errno : 0;
    if (place >= 0)
        close(place);
    if (error && named >= 0)
        close(named);
    return error ? error : named;
}

/* At most what the owner allows, and a tenth of what is free. */
static int choose_size(const struct nb_kind_options *options)
{
    struct statvfs disk;
    if (fstatvfs(io.fd, &disk))
        return -errno;
    const int64_t tenth = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize / 10;
    io.size = nb_least(options->file_bytes, tenth) / SYNC_BYTES * SYNC_BYTES;
    io.at = 0;
    return io.size ? 0 : -ENOSPC;
}

/* Full of data: what was never written is not read from the disk either. */
static int fill(void)
{
    for (int64_t at = 0; at < io.size; at += SYNC_BYTES) {
        const ssize_t done = pwrite(io.fd, io.buffer, SYNC_BYTES, at);
        if (done != SYNC_BYTES)
            return done < 0 ? -errno : -ENOSPC;
    }
    return fdatasync(io.fd) ? -errno : 0;
}

static int arm_file(const struct nb_kind_options *options, int flags)
{
    struct statfs disk;
    if (statfs(options->folder, &disk))
        return -errno;
    if ((flags & O_DIRECT) && disk.f_type == TMPFS)
        return -EOPNOTSUPP;
    io.fd = open_nameless(options->folder, flags);
    if (io.fd < 0)
        return io.fd;
    int error = choose_size(options);
    if (!error)
        error = map_buffer();
    return error ? error : fill();
}

static int arm_direct(const struct nb_injection *run, int cpu)
{
    (void)cpu;
    return arm_file(&run->options, O_DIRECT);
}

static int arm_buffered(const struct nb_injection *run, int cpu)
{
    (void)cpu;
    return arm_file(&run->options, 0);
}

/* A whole number of blocks that does not go beyond the file's end. */
static size_t block(int64_t wanted)
{
    const int64_t pages = wanted / NB_PAGE_BYTES * NB_PAGE_BYTES;
    return (size_t)nb_least(pages > NB_PAGE_BYTES ? pages : NB_PAGE_BYTES, io.size - io.at);
}

static int64_t moved(ssize_t done)
{
    if (done < 0)
        return errno == EINTR ? 0 : -errno;
    io.at = (io.at + done / NB_PAGE_BYTES * NB_PAGE_BYTES) % io.size;
    return done;
}

static int64_t read_block(int64_t wanted)
{
    return moved(pread(io.fd, io.buffer, block(wanted), io.at));
}

static int64_t write_and_sync(int64_t wanted)
{
    const int64_t done = moved(pwrite(io.fd, io.buffer, block(wanted), io.at));
    return done > 0 && fdatasync(io.fd) ? -errno : done;
}

static int arm_metadata(const struct nb_injection *run, int cpu)
{
    (void)cpu;
    io.fd = open(run->options.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    io.number = 0;
    return io.fd < 0 ? -errno : 0;
}

/* pid-number: lanes share the folder. Written by hand: no stdio once the replay has begun. */
static void name_file(char name[32], unsigned pid, unsigned number)
{
    char *end = name + 31;
    *end = '\0';
    *--end = (char)('0' + number % NAMES);
    *--end = '-';
    do
        *--end = (char)('0' + pid % 10);
    while (pid /= 10);
    memmove(name, end, (size_t)(name + 32 - end));
}

static int64_t create_stat_unlink(int64_t wanted)
{
    (void)wanted;
    char name[32];
    struct stat status;
    name_file(name, (unsigned)getpid(), io.number++);
    const int fd = openat(io.fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    const bool seen = fstatat(io.fd, name, &status, 0) == 0;
    return unlinkat(io.fd, name, 0) == 0 && seen ? 3 : -errno;
}

/* Two sockets of the loopback device: one receives what the other sends. */
static int arm_network(const struct nb_injection *run, int cpu)
{
    (void)run, (void)cpu;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}
    };
    struct sockaddr *const name = (struct sockaddr *)&address;
    socklen_t length = sizeof address;
    io.other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (io.other < 0 || bind(io.other, name, length) || getsockname(io.other, name, &length))
        return -errno;
    io.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (io.fd < 0 || connect(io.fd, name, length))
        return -errno;
    return map_buffer();
}

/* What arrives is counted. */
static int64_t send_datagram(int64_t wanted)
{
    const size_t size = (size_t)nb_least(wanted, DATAGRAM);
    if (send(io.fd, io.buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? 0 : -errno;
    struct pollfd arrived = {.fd = io.other, .events = POLLIN};
    if (poll(&arrived, 1, 1) <= 0)
        return 0;
    const ssize_t got = recv(io.other, io.buffer, SYNC_BYTES, MSG_DONTWAIT);
    return got < 0 ? 0 : got;
}

enum { LEAST_DATAGRAM = 512 };

#define STEPS(arms, steps, least, largest) \
    {.arm = arms, .step = steps, .disarm = disarm, NB_PACED(least, largest)}

const struct nb_stressor nb_io_read = STEPS(arm_direct, read_block, NB_PAGE_BYTES, OPERATION_BYTES);
const struct nb_stressor nb_io_sync = STEPS(arm_buffered, write_and_sync, NB_PAGE_BYTES,
                                            SYNC_BYTES);
const struct nb_stressor nb_io_metadata = STEPS(arm_metadata, create_stat_unlink, 3, 3);
const struct nb_stressor nb_network = STEPS(arm_network, send_datagram, LEAST_DATAGRAM, DATAGRAM);
