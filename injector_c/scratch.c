/* The scratch folder of an injection's files: removed by the supervisor, or by the owner if that
 * died.
 */
#define _GNU_SOURCE
#include "kinds_internal.h"

#include <fcntl.h>

struct entry { /* of getdents64(2) */
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* Files only: the folder is flat. */
static void remove_entries(int folder)
{
    _Alignas(struct entry) char space[4096];
    long size;
    while ((size = syscall(SYS_getdents64, folder, space, sizeof space)) > 0)
        for (long at = 0; at < size;
             at += ((const struct entry *)(const void *)(space + at))->length)
            unlinkat(folder, ((const struct entry *)(const void *)(space + at))->name, 0);
}

void nb_kinds_clean(const struct nb_injection *run)
{
    const char *folder = run->options.folder;
    const int fd = folder[0] ? open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    remove_entries(fd);
    close(fd);
    rmdir(folder);
}
