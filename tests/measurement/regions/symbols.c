#include "truth.h"

extern void noisebook_begin(void) __attribute__((weak));
extern void noisebook_end(void) __attribute__((weak));

int main(int count, char **words)
{
    int pairs = count > 1 ? atoi(words[1]) : 1;
    int64_t first = 0, last = 0;
    work_ms(20);
    for (int pair = 0; pair < pairs; pair++) {
        if (noisebook_begin)
            noisebook_begin();
        first = first ? first : now_ns();
        work_ms(10);
        last = now_ns();
        if (noisebook_end)
            noisebook_end();
        work_ms(5);
    }
    tell_truth(first, last);
    return 0;
}
