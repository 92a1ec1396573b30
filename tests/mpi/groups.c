/* Communicators of every making, and collectives in them whose sizes are known. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void alltoallv(MPI_Comm comm)
{
    int counts[8], places[8], rank, ranks, room[64] = {0}, into[64];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < ranks; i++) {
        counts[i] = 1;
        places[i] = i;
    }
    MPI_Alltoallv(room, counts, places, MPI_INT, into, counts, places, MPI_INT, comm);
    MPI_Reduce_scatter(room, into, counts, MPI_INT, MPI_SUM, comm);
}

static void reduced_twice(int *value, int *into, MPI_Comm comm)
{
    MPI_Request request;
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    MPI_Allreduce_init(value, into, 11, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(1, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
#else
    for (int i = 0; i < 2; i++) {
        MPI_Iallreduce(value, into, 11, MPI_INT, MPI_MAX, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
#endif
}

int main(int count, char **words)
{
    int rank, ranks, value[64] = {0}, into[64], flag = 0;
    MPI_Comm odd, backwards, grid, row, copy, later, small = MPI_COMM_NULL;
    MPI_Group all, few;
    MPI_Request request;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &odd);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
    MPI_Allreduce(value, into, 3, MPI_DOUBLE, MPI_SUM, odd);
    MPI_Bcast(value, 5, MPI_INT, 0, backwards); /* root: the last of the world */
    int sizes[2] = {2, ranks / 2}, periodic[2] = {1, 1}, kept[2] = {0, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periodic, 0, &grid);
    MPI_Cart_sub(grid, kept, &row);
    MPI_Reduce(value, into, 2, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
    MPI_Comm_dup(row, &copy);
    MPI_Barrier(copy);
    MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iallreduce(value, into, 7, MPI_INT, MPI_MAX, later, &request);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    reduced_twice(value, into, later);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    int members[2] = {1, 0};
    MPI_Group_incl(all, 2, members, &few);
    MPI_Comm_create(MPI_COMM_WORLD, few, &small);
    if (small != MPI_COMM_NULL) {
        int peer = -1;
        MPI_Comm_rank(small, &peer);
        MPI_Sendrecv(value, 1, MPI_INT, 1 - peer, 9, into, 1, MPI_INT, 1 - peer, 9, small,
                     MPI_STATUS_IGNORE);
        MPI_Comm_free(&small);
    }
    alltoallv(odd);
    MPI_Neighbor_alltoall(value, 1, MPI_INT, into, 1, MPI_INT, grid);
    MPI_Gather(MPI_COMM_SELF == MPI_COMM_WORLD ? into : value, 4, MPI_CHAR, into, 4, MPI_CHAR, 0,
               MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_SELF);
    MPI_Win window;
    MPI_Win_create(value, sizeof value, sizeof *value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(into, 2, MPI_INT, (rank + 1) % ranks, 0, 2, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_File self;
    if (MPI_File_open(MPI_COMM_SELF, words[0], MPI_MODE_RDONLY, MPI_INFO_NULL, &self) ||
        MPI_File_read_at(self, 1, value, 3, MPI_CHAR, MPI_STATUS_IGNORE) ||
        memcmp(value, "ELF", 3) || MPI_File_close(&self))
        return 1;
    MPI_Comm_free(&odd);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &odd); /* may get the handle of the one before */
    MPI_Barrier(odd);
    MPI_Finalize();
    return 0;
}
