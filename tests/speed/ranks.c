/* ranks.c: two ranks that compute and speak with each other. */
#include <mpi.h>
#include <stdio.h>

int main(int count, char **words)
{
    double value = 1, sum = 0;
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 300; round++) {
        for (int step = 0; step < 100000; step++)
            value = value * 0.999 + 0.001 * (rank + 1);
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (!rank)
        printf("%a\n", sum);
    MPI_Finalize();
}
