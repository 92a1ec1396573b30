/* hello: every rank gives its number to a sum that all must get right. Proves that an installation
 * of MPI builds, starts and connects programs here; `make mpi` ends with it.
 */
#include <mpi.h>

#include <stdio.h>

int main(int count, char **words)
{
    int rank = 0, ranks = 0, sum = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int right = sum == ranks * (ranks + 1) / 2;
    if (rank == 0)
        printf("noisebook: hello ranks=%d sum=%d verified=%s\n", ranks, sum, right ? "yes" : "no");
    MPI_Finalize();
    return right ? 0 : 1;
}
