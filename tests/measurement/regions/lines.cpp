#include <iostream>

#include "truth.h"

int main()
{
    work_ms(10);
    int64_t begin_ns = now_ns();
    std::cout << "Starting the solver\n";
    std::cout << "a line right behind it\n";
    work_ms(10);
    int64_t end_ns = now_ns();
    std::cout << "Solver took " << static_cast<double>(end_ns - begin_ns) * 1e-9 << " s\n";
    work_ms(5);
    tell_truth(begin_ns, end_ns);
    return 0;
}
