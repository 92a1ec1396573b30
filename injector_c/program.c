/* The program `nbinject`: takes over from its owner what is to be injected, and becomes the
 * supervisor.
 *
 * The owner's pointers mean nothing here: the memory is mapped anew, and they are moved with it.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool receive(int socket, void *to, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got = read(socket, (char *)to + done, bytes - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* `count` pointers into the memory, the first at `at`; NULL stays NULL. */
static void move_pointers(void *at, size_t count, const char *from, char *to)
{
    for (size_t i = 0; i < count; i++) {
        char *pointer;
        memcpy(&pointer, (char *)at + i * sizeof pointer, sizeof pointer);
        if (pointer)
            pointer = to + (pointer - from);
        memcpy((char *)at + i * sizeof pointer, &pointer, sizeof pointer);
    }
}

static bool map_memory(struct nb_injection *run, int fd)
{
    const char *const from = run->memory;
    char *const to = mmap(NULL, run->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (to == MAP_FAILED)
        return false;
    close(fd);
    move_pointers(&run->memory, 1, from, to);
    move_pointers(&run->control, 1, from, to);
    move_pointers(&run->lanes, 1, from, to);
    move_pointers(&run->plan, sizeof run->plan / sizeof(void *), from, to);
    move_pointers(&run->log, sizeof run->log / sizeof(void *), from, to);
    return true;
}

int nb_program(int count, char **words)
{
    static struct nb_injection run;
    char layout[NB_LAYOUT_BYTES];
    nb_layout(layout);
    if (count != NB_PROGRAM_WORDS || strcmp(words[1], layout) != 0)
        return NB_OTHER_BUILD;
    const struct nb_watch watch = {
        .control = atoi(words[2]),
        .workload = atoi(words[3]),
        .owner = atoi(words[4]),
        .ready = atoi(words[5])
    };
    if (!receive(watch.control, &run, sizeof run) || !map_memory(&run, atoi(words[6])))
        return EXIT_FAILURE;
    nb_supervise(&run, &watch);
}
