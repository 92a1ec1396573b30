/* nbtrace_numbers.c: the numbers of communicators and requests.
 *
 * A communicator gets a number in the rank and a line in comms.RANK: NUMBER KIND PARENT PLACE :
 * its members' ranks in MPI_COMM_WORLD (of an intercommunicator the other side's : its own). PLACE
 * is the count of those made of the parent before. All this is the same on all its ranks, by which
 * the reader finds it again. A request gets the next number, and is found by its handle until it is
 * completed.
 */
#include "nbtrace.h"

enum { MOST_COMMS = 16384, WORLD = 0 };

static struct nb_comm comms[MOST_COMMS];
static int comm_count, lines = -1;
static pthread_mutex_t comms_lock = PTHREAD_MUTEX_INITIALIZER;

static struct nb_request *requests; /* open addressing, a power of two of places */
static size_t places, request_count;
static int next_number;
static pthread_mutex_t requests_lock = PTHREAD_MUTEX_INITIALIZER;

static int *world_ranks(MPI_Comm comm, int other_side, int *size)
{
    MPI_Group group, world;
    if (other_side)
        NEXT(Comm_remote_group)(comm, &group);
    else
        NEXT(Comm_group)(comm, &group);
    NEXT(Comm_group)(nb_trace.world, &world);
    NEXT(Group_size)(group, size);
    int *own = (int *)malloc(2 * (size_t)(*size + 1) * sizeof *own), *found = own + *size + 1;
    for (int i = 0; own && i < *size; i++)
        own[i] = i;
    if (own)
        NEXT(Group_translate_ranks)(group, *size, own, world, found);
    for (int i = 0; own && i < *size; i++)
        own[i] = found[i] < 0 ? -1 : found[i]; /* spawned: not in this world */
    NEXT(Group_free)(&group);
    NEXT(Group_free)(&world);
    return own;
}

/* `own`: of an intercommunicator the ranks of this side. */
static void write_line(const struct nb_comm *comm, const char *kind, int parent, int place,
                       const int *own, int own_size)
{
    size_t room = 128 + 12 * ((size_t)comm->size + (size_t)own_size);
    char *text = (char *)malloc(room);
    if (!text || lines < 0)
        return free(text);
    int length = snprintf(text, room, "%d %s %d %d :", comm->number, kind, parent, place);
    for (int i = 0; i < comm->size; i++)
        length += snprintf(text + length, room - (size_t)length, " %d",
                           comm->world ? comm->world[i] : i);
    for (int i = 0; i < own_size; i++)
        length += snprintf(text + length, room - (size_t)length, "%s %d", i ? "" : " :", own[i]);
    text[length++] = '\n';
    if (write(lines, text, (size_t)length) != length)
        lines = -1; /* the disk is full: the reader says what is missing */
    free(text);
}

static struct nb_comm *add(MPI_Comm handle, const char *kind, int parent, int place)
{
    if (comm_count == MOST_COMMS)
        return NULL;
    struct nb_comm *comm = comms + comm_count;
    *comm = (struct nb_comm){.handle = HANDLE(handle), .number = comm_count++};
    NEXT(Comm_test_inter)(handle, &comm->inter);
    comm->world = world_ranks(handle, comm->inter, &comm->size);
    int own_size = 0, *own = comm->inter ? world_ranks(handle, 0, &own_size) : NULL;
    write_line(comm, kind, parent, place, own, own_size);
    free(own);
    return comm;
}

void nb_comms_begin(const char *folder)
{
    char path[PATH_MAX];
    int rank = 0;
    NEXT(Comm_rank)(nb_trace.world, &rank);
    int length = snprintf(path, sizeof path, "%s/comms.%d", folder, rank);
    if (length > 0 && (size_t)length < sizeof path)
        lines = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    add(nb_trace.world, "world", -1, 0);
}

/* A copy that is not ready yet: its group cannot be asked for, but is that of the original. */
void nb_comm_copied(MPI_Comm original, MPI_Comm copy)
{
    struct nb_comm *from = nb_comm_of(original);
    nb_lock(&comms_lock);
    if (from && comm_count < MOST_COMMS) {
        struct nb_comm *comm = comms + comm_count;
        *comm = *from;
        comm->handle = HANDLE(copy);
        comm->number = comm_count++;
        comm->children = 0;
        write_line(comm, "dup", from->number, from->children++, NULL, 0);
    }
    nb_unlock(&comms_lock);
}

static struct nb_comm *known(intptr_t handle)
{
    for (int i = comm_count - 1; i >= 0; i--)
        if (comms[i].handle == handle)
            return comms + i;
    return NULL;
}

/* One that was made by a call that is not recorded (MPI_COMM_SELF, by nobody) is added when it is
 * first seen. */
struct nb_comm *nb_comm_of(MPI_Comm comm)
{
    if (comm == nb_trace.world)
        return comms + WORLD;
    nb_lock(&comms_lock);
    struct nb_comm *found = known(HANDLE(comm));
    if (!found)
        found = add(comm, "unseen", WORLD, 0);
    nb_unlock(&comms_lock);
    return found;
}

struct nb_comm *nb_comm_numbered(int number)
{
    return number < 0 ? NULL : comms + number;
}

static int is_null(MPI_Comm comm)
{
#if defined(OPEN_MPI)
    static void *null;
    if (!null)
        null = nb_find_variable("ompi_mpi_comm_null");
    return !comm || HANDLE(comm) == HANDLE(null);
#else
    return comm == MPI_COMM_NULL;
#endif
}

/* `place` < 0: the next one of the parent, which all its members count alike, since making one is
 * collective on it. */
void nb_comm_made(MPI_Comm parent, MPI_Comm made, const char *kind, int place)
{
    struct nb_comm *from = nb_comm_of(parent);
    nb_lock(&comms_lock);
    if (from && place < 0)
        place = from->children++;
    if (from && !is_null(made))
        add(made, kind, from->number, place);
    nb_unlock(&comms_lock);
}

void nb_comm_gone(intptr_t handle)
{
    nb_lock(&comms_lock);
    struct nb_comm *comm = known(handle);
    if (comm)
        comm->handle = 0; /* the next may get the same */
    nb_unlock(&comms_lock);
}

/* --- requests --------------------------------------------------------------------------------- */

static size_t place_of(intptr_t handle)
{
    uint64_t mixed = (uint64_t)handle * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 20) & (places - 1);
}

/* Sends that are complete at once may all get one handle: then the newest is meant. */
static struct nb_request *find(intptr_t handle)
{
    struct nb_request *found = NULL;
    if (!places)
        return NULL;
    for (size_t i = place_of(handle); requests[i].handle; i = (i + 1) & (places - 1))
        if (requests[i].handle == handle && (!found || requests[i].number > found->number))
            found = requests + i;
    return found;
}

static void put(const struct nb_request *request)
{
    size_t i = place_of(request->handle);
    while (requests[i].handle)
        i = (i + 1) & (places - 1);
    request_count++;
    requests[i] = *request;
}

static int grow(void)
{
    struct nb_request *before = requests;
    size_t count = places;
    struct nb_request *more = (struct nb_request *)calloc(count ? 2 * count : 256, sizeof *more);
    if (!more)
        return -ENOMEM;
    requests = more;
    places = count ? 2 * count : 256;
    request_count = 0;
    for (size_t i = 0; i < count; i++)
        if (before[i].handle)
            put(before + i);
    free(before);
    return 0;
}

/* Those behind it that would no longer be found move up. */
static void take_out(struct nb_request *request)
{
    size_t hole = (size_t)(request - requests);
    for (size_t i = (hole + 1) & (places - 1); requests[i].handle; i = (i + 1) & (places - 1)) {
        size_t wanted = place_of(requests[i].handle);
        if (((i - wanted) & (places - 1)) >= ((i - hole) & (places - 1))) {
            requests[hole] = requests[i];
            hole = i;
        }
    }
    requests[hole].handle = 0;
    request_count--;
}

/* The first of so many numbers that no request has. */
int nb_request_numbers(int count)
{
    nb_lock(&requests_lock);
    int first = next_number;
    next_number += count;
    nb_unlock(&requests_lock);
    return first;
}

/* Its number; a persistent one gets one whenever it starts. */
int nb_request_new(intptr_t handle, struct nb_request about)
{
    if (handle == nb_trace.request_null || !handle)
        return -1;
    nb_lock(&requests_lock);
    about.handle = handle;
    about.number = about.persistent ? -1 : next_number++;
    if (2 * request_count < places || !grow())
        put(&about);
    nb_unlock(&requests_lock);
    return about.number;
}

/* A persistent one starts: it gets a number of its own; what it was made with is in `about`. */
int nb_request_again(intptr_t handle, struct nb_request *about)
{
    nb_lock(&requests_lock);
    struct nb_request *request = find(handle);
    if (request) {
        request->number = next_number++;
        *about = *request;
    }
    nb_unlock(&requests_lock);
    return request != NULL;
}

/* It was completed; 0 if nothing is known of it. */
int nb_request_take(intptr_t handle, struct nb_request *about)
{
    if (handle == nb_trace.request_null)
        return 0;
    nb_lock(&requests_lock);
    struct nb_request *request = find(handle);
    if (request)
        *about = *request;
    int active = request && request->number >= 0;
    if (request && request->persistent)
        request->number = -1;
    else if (request)
        take_out(request);
    nb_unlock(&requests_lock);
    return active;
}

/* It was taken before a call that did not complete it. */
void nb_request_put_back(const struct nb_request *about)
{
    nb_lock(&requests_lock);
    struct nb_request *request = about->persistent ? find(about->handle) : NULL;
    if (request)
        request->number = about->number;
    else if (2 * request_count < places || !grow())
        put(about);
    nb_unlock(&requests_lock);
}

void nb_request_cancelled(intptr_t handle)
{
    nb_lock(&requests_lock);
    struct nb_request *request = find(handle);
    if (request)
        request->cancelled = 1;
    nb_unlock(&requests_lock);
}

void nb_request_gone(intptr_t handle)
{
    nb_lock(&requests_lock);
    struct nb_request *request = find(handle);
    if (request)
        take_out(request);
    nb_unlock(&requests_lock);
}
