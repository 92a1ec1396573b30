#include <mpi.h>

#include "truth.h"

int main(int count, char **words)
{
    int rank;
    work_ms(5);
    MPI_Init(&count, &words);
    int64_t begin_ns = now_ns();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    work_ms(10 + 10 * rank);
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t end_ns = now_ns();
    tell_truth(begin_ns, end_ns);
    if (count > 1 && rank == atoi(words[1]))
        _Exit(0); /* it never comes to MPI_Finalize */
    MPI_Finalize();
    work_ms(5);
    return 0;
}
