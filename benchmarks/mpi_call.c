/* What one recorded call takes: batches of calls of a rank that is alone, the least and the median
 * batch in ns a call. "cold": single calls, each after more memory was read than the caches of a
 * core hold. For benchmarks/mpi_overhead.py.
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 2001, CALLS = 200, COLD = 301, MEMORY = 1 << 25 };

static int order(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static void report(const char *name, double *ns, int count)
{
    qsort(ns, (size_t)count, sizeof *ns, order);
    printf("%s %.2f %.2f\n", name, ns[0], ns[count / 2]);
}

static void cold_calls(double *ns)
{
    static char memory[MEMORY];
    double value = 1, sum;
    for (int i = 0; i < COLD; i++) {
        for (int j = 0; j < MEMORY; j += 64)
            ((volatile char *)memory)[j]++;
        double begin = MPI_Wtime();
        MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        ns[i] = (MPI_Wtime() - begin) * 1e9;
    }
    report("Allreduce,cold", ns, COLD);
}

int main(int count, char **words)
{
    static double ns[BATCHES];
    double value = 1, sum;
    MPI_Request requests[2];
    MPI_Init(&count, &words);
    for (int i = 0; i < BATCHES; i++) {
        double begin = MPI_Wtime();
        for (int j = 0; j < CALLS; j++)
            MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        ns[i] = (MPI_Wtime() - begin) * 1e9 / CALLS;
    }
    report("Allreduce", ns, BATCHES);
    for (int i = 0; i < BATCHES; i++) {
        double begin = MPI_Wtime();
        for (int j = 0; j < CALLS; j++) {
            MPI_Irecv(&sum, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, requests);
            MPI_Isend(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, requests + 1);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        ns[i] = (MPI_Wtime() - begin) * 1e9 / (3 * CALLS);
    }
    report("Irecv,Isend,Waitall", ns, BATCHES);
    cold_calls(ns);
    MPI_Finalize();
    return 0;
}
