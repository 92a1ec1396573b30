/* nbregion.h: what the libraries that see a region begin and end have in common with Noisebook.
 *
 * Noisebook makes a private folder for the run (NOISEBOOK_REGION_FOLDER) and says the kind of
 * region (NOISEBOOK_REGION). In the folder: `ready`, a FIFO that takes a note of each process that
 * has come to the begin; `go`, a file that is locked until the start time is in it; `record.PID`,
 * mapped by each process, where its stamps are stored without a system call, so that they outlive
 * any kind of death.
 */
#ifndef NBREGION_H
#define NBREGION_H

#include <sys/file.h>
#include <sys/mman.h>

#include "noisebook.h"

/* Read by nbhelpers/measurement/_regions.py. Times: CLOCK_MONOTONIC, ns; 0: not yet. */
struct nb_record {
    int64_t first_begin_ns, last_end_ns;
    int64_t inside_ns; /* sum over the pairs of begin and end */
    int64_t open_ns;   /* begin of the pair that has no end yet */
    int64_t begun, ended, rank;
};

/* The folder of this run if its region is of this kind, else NULL. */
static inline const char *nb_region_folder(const char *kind)
{
    const char *wanted = getenv("NOISEBOOK_REGION"), *folder = getenv("NOISEBOOK_REGION_FOLDER");
    return wanted && folder && *folder && !strcmp(wanted, kind) ? folder : NULL;
}

static inline int nb_open_in(const char *folder, const char *name, int flags)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return -1;
    return open(path, flags | O_CLOEXEC, 0600);
}

/* This process's record in the folder, or NULL. */
static inline struct nb_record *nb_map_record(const char *folder)
{
    char name[40];
    snprintf(name, sizeof name, "record.%d", (int)getpid());
    int fd = nb_open_in(folder, name, O_RDWR | O_CREAT);
    if (fd < 0)
        return NULL;
    void *page = MAP_FAILED;
    if (!ftruncate(fd, sizeof(struct nb_record)))
        page = mmap(NULL, sizeof(struct nb_record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return page == MAP_FAILED ? NULL : (struct nb_record *)page;
}

static inline int64_t nb_read_go(int fd)
{
    int64_t t0_ns = 0;
    while (flock(fd, LOCK_SH) < 0)
        if (errno != EINTR)
            return 0;
    return pread(fd, &t0_ns, sizeof t0_ns, 0) == (ssize_t)sizeof t0_ns ? t0_ns : 0;
}

/* Says "one of `expected` processes waits", and waits for the common start; returns at once if it
 * is over. Without anybody who listens the program goes on. */
static inline void nb_meet(const char *folder, int expected)
{
    int32_t note[2] = {(int32_t)getpid(), (int32_t)expected};
    int ready = nb_open_in(folder, "ready", O_WRONLY | O_NONBLOCK);
    int go = nb_open_in(folder, "go", O_RDONLY);
    if (ready >= 0 && go >= 0 && write(ready, note, sizeof note) == (ssize_t)sizeof note)
        nb_sleep_until(nb_read_go(go));
    if (ready >= 0)
        close(ready);
    if (go >= 0)
        close(go);
}

#endif
