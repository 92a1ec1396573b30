/* nbtrace_timed.c: the calls of which only name and time are recorded (ONLY_TIMED of
 * nbtrace_names.h).
 *
 * They are passed on without their parameters' types: in C's calling conventions for x86-64 and
 * ARM64 every parameter of an MPI function is a register or eight bytes of the stack, and what is
 * passed beyond the last is not looked at. So a call needs nothing but its name here, and one that
 * this MPI does not have does no harm.
 */
#include "nbtrace.h"

typedef intptr_t word;
typedef word any_call(word, word, word, word, word, word, word, word, word, word, word, word, word,
                      word);

#define CALL(name)
#define ONLY_TIMED(name)                                                                        \
    int nb_timed_##name(word a, word b, word c, word d, word e, word f, word g, word h, word i, \
                        word j, word k, word l, word m, word n) __asm__("MPI_" #name);          \
    int nb_timed_##name(word a, word b, word c, word d, word e, word f, word g, word h, word i, \
                        word j, word k, word l, word m, word n)                                 \
    {                                                                                           \
        static void *found;                                                                     \
        if (!found)                                                                             \
            found = nb_find("PMPI_" #name);                                                     \
        BEGIN(name);                                                                            \
        int result = (int)(*(any_call **)&found)(a, b, c, d, e, f, g, h, i, j, k, l, m, n);     \
        END;                                                                                    \
        return result;                                                                          \
    }
#include "nbtrace_names.h"
