/* What must hold, in the C programs of the tests: else a message and exit status 1. */
#ifndef EXPECT_H
#define EXPECT_H
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                    \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fprintf(stderr, "line %d: " #condition " is false\n", __LINE__); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

#endif
