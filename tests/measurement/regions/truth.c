/* truth.h for Fortran. */
#define now_ns static_now_ns
#define work_ms static_work_ms
#define tell_truth static_tell_truth
#include "truth.h"
#undef now_ns
#undef work_ms
#undef tell_truth

int64_t now_ns(void);
void work_ms(int milliseconds);
void tell_truth(int64_t begin_ns, int64_t end_ns);

int64_t now_ns(void)
{
    return static_now_ns();
}

void work_ms(int milliseconds)
{
    static_work_ms(milliseconds);
}

void tell_truth(int64_t begin_ns, int64_t end_ns)
{
    static_tell_truth(begin_ns, end_ns);
}
