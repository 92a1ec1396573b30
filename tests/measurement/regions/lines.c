#include "truth.h"

int main(void)
{
    work_ms(10);
    int64_t begin_ns = now_ns();
    printf("Starting the solver\n");
    printf("a line right behind it\n");
    work_ms(10);
    int64_t end_ns = now_ns();
    printf("Solver took %.3f s\n", (double)(end_ns - begin_ns) * 1e-9);
    work_ms(5);
    tell_truth(begin_ns, end_ns);
    return 0;
}
