/* Communication that is known by heart: every rank sends to the next and to the one after it, in
 * each way that MPI has, SIZE(i) = 10 i + rank + 1 bytes with tag i (100 where it replaces), and
 * names what it sent and received, one line a message, on its standard output.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static char out[65536], in[65536];
static int rank, ranks, next, before;

static int size_of(int tag, int of)
{
    return 10 * tag + of + 1;
}

static void told(const char *how, int tag)
{
    printf("known %s %d %d %d %d\n", how, rank, next, tag, size_of(tag, rank));
}

static void exchange(const char *how, int tag,
                     int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm))
{
    MPI_Request request;
    MPI_Irecv(in, sizeof in, MPI_CHAR, before, tag, MPI_COMM_WORLD, &request);
    if (!strcmp(how, "rsend"))
        MPI_Barrier(MPI_COMM_WORLD);
    send(out, size_of(tag, rank), MPI_CHAR, next, tag, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    told(how, tag);
}

static void blocking(void)
{
    static char room[100000];
    MPI_Buffer_attach(room, sizeof room);
    exchange("send", 1, MPI_Send);
    exchange("ssend", 2, MPI_Ssend);
    exchange("bsend", 3, MPI_Bsend);
    exchange("rsend", 4, MPI_Rsend);
    void *address;
    int size;
    MPI_Buffer_detach(&address, &size);
    MPI_Sendrecv(out, size_of(5, rank), MPI_CHAR, next, 5, in, sizeof in, MPI_CHAR, MPI_ANY_SOURCE,
                 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    told("sendrecv", 5);
    MPI_Sendrecv_replace(in, 100, MPI_CHAR, next, 6, before, MPI_ANY_TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    printf("known replace %d %d 6 100\n", rank, next);
}

static void nonblocking(void)
{
    MPI_Request requests[64];
    MPI_Status status;
    int count = 0, which = 0, done = 0;
    for (int tag = 10; tag < 42; tag++) {
        MPI_Irecv(in, sizeof in, MPI_CHAR, tag % 2 ? MPI_ANY_SOURCE : before, tag, MPI_COMM_WORLD,
                  requests + count++);
        MPI_Isend(out, size_of(tag, rank), MPI_CHAR, next, tag, MPI_COMM_WORLD, requests + count++);
        told("isend", tag);
    }
    MPI_Waitany(4, requests, &which, &status);
    int several[64];
    MPI_Waitsome(8, requests, &done, several, MPI_STATUSES_IGNORE);
    while (!done)
        MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
    for (done = 0; !done;)
        MPI_Test(requests + 8, &done, MPI_STATUS_IGNORE);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static void persistent(void)
{
    MPI_Request requests[2];
    MPI_Recv_init(in, sizeof in, MPI_CHAR, before, 50, MPI_COMM_WORLD, requests);
    MPI_Send_init(out, size_of(50, rank), MPI_CHAR, next, 50, MPI_COMM_WORLD, requests + 1);
    for (int i = 0; i < 3; i++) {
        if (i == 1) {
            MPI_Start(requests);
            MPI_Start(requests + 1);
        } else {
            MPI_Startall(2, requests);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        told("persistent", 50);
    }
    MPI_Request_free(requests);
    MPI_Request_free(requests + 1);
}

static void probed(void)
{
    MPI_Request request;
    MPI_Status status;
    MPI_Message message;
    MPI_Isend(out, size_of(60, rank), MPI_CHAR, next, 60, MPI_COMM_WORLD, &request);
    told("probed", 60);
    MPI_Mprobe(MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(in, sizeof in, MPI_CHAR, &message, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Irecv(in, sizeof in, MPI_CHAR, before, 61, MPI_COMM_WORLD, &request); /* never sent */
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send(out, 5, MPI_CHAR, MPI_PROC_NULL, 62, MPI_COMM_WORLD);
    MPI_Recv(in, 5, MPI_CHAR, MPI_PROC_NULL, 62, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    next = (rank + 1) % ranks;
    before = (rank + ranks - 1) % ranks;
    blocking();
    nonblocking();
    persistent();
    probed();
    MPI_Finalize();
    return 0;
}
