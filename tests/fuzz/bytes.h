/* The input of a fuzzer, taken in pieces; zeros when it is used up. */
#ifndef NB_TEST_BYTES_H
#define NB_TEST_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) \
    do {                  \
        if (!(condition)) \
            abort();      \
    } while (0)

struct bytes {
    const uint8_t *at;
    size_t left;
};

static inline void draw(struct bytes *from, void *to, size_t size)
{
    const size_t got = size < from->left ? size : from->left;
    memset(to, 0, size);
    memcpy(to, from->at, got);
    from->at += got;
    from->left -= got;
}

/* Of exactly this length, so that the sanitizer sees any byte read too many. */
static inline void *drawn(struct bytes *from, size_t count, size_t size)
{
    void *const column = malloc(count * size);
    draw(from, column, count * size);
    return column;
}

/* A number below `sides` of two bytes. */
static inline uint32_t below(struct bytes *from, uint32_t sides)
{
    uint16_t number;
    draw(from, &number, sizeof number);
    return number % sides;
}

#endif
