/* Rank 1 kills itself within the region (words: a signal's number), or by MPI_Abort (0). */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

int main(int count, char **words)
{
    int rank, value = 1, sum, how = count > 1 ? atoi(words[1]) : SIGKILL;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 100; i++)
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 1 && how == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 1)
        raise(how);
    MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
