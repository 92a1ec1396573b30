/* Each rank's threads talk to the same threads of the next rank at the same time. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, MESSAGES = 60 };
static int rank, ranks;

static void *talk(void *own)
{
    int tag = (int)(long)own, next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    char out[500] = {0}, in[500];
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Request requests[2];
        MPI_Irecv(in, sizeof in, MPI_CHAR, before, tag, MPI_COMM_WORLD, requests);
        MPI_Isend(out, 1 + (i + tag) % 400, MPI_CHAR, next, tag, MPI_COMM_WORLD, requests + 1);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    return NULL;
}

int main(int count, char **words)
{
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (long i = 0; i < THREADS; i++)
        pthread_create(threads + i, NULL, talk, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Finalize();
    return provided == MPI_THREAD_MULTIPLE ? 0 : 77;
}
