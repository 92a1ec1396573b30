/* Supervisor and lanes of an injection, executed by injector_c/owner.c; see injector_c/program.c.
 */
#define _GNU_SOURCE
#include "internal.h"

int main(int count, char **words)
{
    return nb_program(count, words);
}
