/* Mutates GOAL files in memory and reads them: every allocation exact, so that the sanitizer sees
 * any byte read too many. */
#include "goal_touch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t dice(uint64_t sides)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % sides;
}

static const char *const words[] = {
    "requires ",
    "irequires ",
    "l1: ",
    "}",
    "\n",
    "/*",
    "*/",
    " tag ",
    "rank 0 {",
    "-1",
    "99999999999999999999",
    "num_ranks 4\n",
    "calc 5",
    "//",
    "\xff\xff\xff\xff",
    "send 8b to 1"
};

static size_t mutate(unsigned char *data, size_t length, size_t room)
{
    for (uint64_t times = 1 + dice(4); times && length; times--) {
        size_t at = dice(length), part = 1 + dice(20);
        const char *word = words[dice(sizeof words / sizeof *words)];

        part = part < length - at ? part : length - at;
        switch (dice(5)) {
        case 0: data[at] = (unsigned char)dice(256); break;
        case 1: data[at] ^= (unsigned char)(1 << dice(8)); break;
        case 2:
            memmove(data + at, data + at + part, length - at - part);
            length -= part;
            break;
        case 3:
            if (length + strlen(word) <= room) {
                memmove(data + at + strlen(word), data + at, length - at);
                memcpy(data + at, word, strlen(word));
                length += strlen(word);
            }
            break;
        default: length = dice(8) ? length : at;
        }
    }
    return length;
}

static void *exact(const void *data, size_t length)
{
    void *copy = malloc(length ? length : 1);

    if (!copy)
        abort();
    memcpy(copy, data, length);
    return copy;
}

static int read_text(struct goal_reader *reader, const unsigned char *data, size_t length)
{
    while (length) {
        size_t part = 1 + dice(dice(2) ? 16 : 4096);
        char *piece;

        part = part < length ? part : length;
        piece = exact(data, part);
        nb_goal_feed(reader, piece, part);
        free(piece);
        data += part;
        length -= part;
    }
    return nb_goal_finish(reader);
}

static int try(const unsigned char *data, size_t length)
{
    struct goal_reader *reader = nb_goal_open();
    int binary = length >= 8 && (data[0] == 0x7f || data[0] == 0x26), problem;
    unsigned char *copy = exact(data, length);

    if (!reader)
        abort();
    problem = binary ? nb_goal_read_binary(reader, copy, length) : read_text(reader, copy, length);
    if (!problem)
        touch(nb_goal_columns(reader));
    free(copy);
    nb_goal_close(reader);
    return problem;
}

static size_t load(const char *path, unsigned char *data, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t length;

    if (!file)
        abort();
    length = fread(data, 1, room, file);
    fclose(file);
    return length;
}

int main(int count, char **arguments)
{
    static unsigned char seed[1 << 16], data[1 << 17];
    long refused = 0, read = 0;

    for (int which = 2; which < count; which++) {
        size_t length = load(arguments[which], seed, sizeof seed);

        for (long i = atol(arguments[1]) / (count - 2); i; i--) {
            memcpy(data, seed, length);
            if (try(data, mutate(data, length, sizeof data)))
                refused++;
            else
                read++;
        }
    }
    printf("%ld %ld\n", refused, read);
    return 0;
}
