/* nbtrace_calls.c: the MPI's functions as libnbtrace.so has them: the call is timed, then what it
 * moved is written down.
 */
#include "nbtrace.h"

/* --- what is written down --------------------------------------------------------------------- */

static struct nb_comm *note_comm(struct nb_call *call, MPI_Comm comm)
{
    if (!call)
        return NULL;
    struct nb_comm *known = nb_comm_of(comm);
    call->comm = known ? known->number : -1;
    return known;
}

static void note_peer(struct nb_call *call, MPI_Comm comm, int rank, int tag)
{
    struct nb_comm *known = note_comm(call, comm);
    if (!known)
        return;
    call->peer = nb_rank_in_world(known, rank);
    call->tag = tag < 0 ? -1 : tag;
}

static void note_send(struct nb_call *call, MPI_Comm comm, int to, int tag, int64_t count,
                      MPI_Datatype type)
{
    note_peer(call, comm, to, tag);
    if (call && to != MPI_PROC_NULL)
        call->bytes = nb_bytes(count, type);
}

static void note_source(struct nb_call *call, const struct nb_comm *comm, const MPI_Status *status)
{
    call->source = nb_rank_in_world(comm, status->MPI_SOURCE);
    if (call->source < 0)
        return; /* MPI_PROC_NULL, or cancelled */
    call->received_tag = status->MPI_TAG;
    call->received_bytes = nb_received(status);
}

static void note_received(struct nb_call *call, MPI_Comm comm, const MPI_Status *status)
{
    if (call)
        note_source(call, note_comm(call, comm), status);
}

static void remember(struct nb_call *call, const MPI_Request *request, int kind, int persistent)
{
    if (!call)
        return;
    struct nb_request about = {
        .comm = call->comm,
        .code = kind,
        .peer = call->peer,
        .tag = call->tag,
        .root = call->root,
        .persistent = persistent,
        .bytes = call->bytes,
        .received_bytes = call->received_bytes
    };
    call->request = nb_request_new(HANDLE(*request), about);
}

/* `kind`: NB_Isend, NB_Irecv or NB_Ibarrier (any collective). */
static void note_request(struct nb_call *call, const MPI_Request *request, int kind)
{
    remember(call, request, kind, 0);
}

/* `kind`: what stands in the record of its start. */
static void note_persistent(struct nb_call *call, const MPI_Request *request, int kind)
{
    remember(call, request, kind, 1);
}

static void note_like(struct nb_call *call, const struct nb_request *about)
{
    call->comm = about->comm;
    call->peer = about->peer;
    call->tag = about->tag;
    call->root = about->root;
    call->bytes = about->bytes;
    call->received_bytes = about->received_bytes;
}

static void sizes(struct nb_call *call, int64_t given, int64_t gotten)
{
    call->bytes = given;
    call->received_bytes = gotten;
}

static int size_of(MPI_Comm comm)
{
    const struct nb_comm *known = nb_comm_of(comm);
    return known ? known->size : 0;
}

static int own_rank(MPI_Comm comm)
{
    int rank = 0;
    NEXT(Comm_rank)(comm, &rank);
    return rank;
}

/* On an intercommunicator the root calls itself MPI_ROOT. */
static int is_root(MPI_Comm comm, int root)
{
    return root == MPI_ROOT || (root >= 0 && !nb_comm_of(comm)->inter && own_rank(comm) == root);
}

static void note_root(struct nb_call *call, MPI_Comm comm, int root)
{
    call->root = nb_rank_in_world(nb_comm_of(comm), root);
}

/* From the root to all; `gotten` -1: each gets what it gives. */
static void rooted(struct nb_call *call, MPI_Comm comm, int root, int64_t given, int64_t gotten)
{
    note_root(call, comm, root);
    int here = is_root(comm, root);
    if (gotten < 0)
        sizes(call, here ? given : 0, here ? 0 : given);
    else
        sizes(call, given, gotten);
}

static void reduced(struct nb_call *call, MPI_Comm comm, int root, int64_t bytes)
{
    note_root(call, comm, root);
    sizes(call, bytes, is_root(comm, root) ? bytes : 0);
}

/* To the root; `given` -1: in place, a share of what it gets. */
static void gathered(struct nb_call *call, MPI_Comm comm, int root, int64_t given, int64_t gotten)
{
    int ranks = size_of(comm);
    note_root(call, comm, root);
    sizes(call, given >= 0 ? given : ranks ? gotten / ranks : 0, gotten);
}

static int64_t sum(const int *counts, int count)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++)
        total += counts[i];
    return total;
}

static int64_t sum_of(const int *counts, const MPI_Datatype *types, int count)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++)
        total += nb_bytes(counts[i], types[i]);
    return total;
}

static int topology(MPI_Comm comm)
{
    int kind = MPI_UNDEFINED;
    NEXT(Topo_test)(comm, &kind);
    return kind;
}

static int neighbours(MPI_Comm comm, int out)
{
    int kind = topology(comm), number = 0, to = 0, weighted = 0;
    if (kind == MPI_CART) {
        NEXT(Cartdim_get)(comm, &number);
        return 2 * number;
    }
    if (kind == MPI_GRAPH)
        NEXT(Graph_neighbors_count)(comm, own_rank(comm), &number);
    else if (kind == MPI_DIST_GRAPH)
        NEXT(Dist_graph_neighbors_count)(comm, &number, &to, &weighted);
    return kind == MPI_DIST_GRAPH && out ? to : number;
}

enum { NEIGHBOUR_TAG = 1 << 30 };
struct sides {
    int ins, outs, *from, *to; /* their ranks in the communicator, in the standard's order */
};

/* `room`: 2 * (ins + outs) ints. */
static struct sides neighbour_ranks(MPI_Comm comm, int ins, int outs, int *room)
{
    struct sides sides = {ins, outs, room, room + ins};
    int kind = topology(comm);
    if (kind == MPI_DIST_GRAPH) {
        int *weights = room + ins + outs;
        NEXT(Dist_graph_neighbors)(comm, ins, sides.from, weights, outs, sides.to, weights + ins);
        return sides;
    }
    sides.to = sides.from;
    if (kind == MPI_GRAPH)
        NEXT(Graph_neighbors)(comm, own_rank(comm), ins, sides.from);
    for (int i = 0; kind == MPI_CART && i < ins / 2; i++)
        NEXT(Cart_shift)(comm, i, 1, sides.from + 2 * i, sides.from + 2 * i + 1);
    return sides;
}

/* One message of a collective among neighbours, behind its record: it takes no time. */
static void note_neighbour(const struct nb_call *call, int code, int number, int rank,
                           int64_t bytes)
{
    struct nb_call *one = nb_new_record(code, call->end);
    if (!one)
        return;
    one->end = call->end;
    one->comm = call->comm;
    one->request = number;
    int world = nb_rank_in_world(nb_comm_numbered(call->comm), rank);
    if (code == NB_Isend) {
        one->peer = world;
        one->tag = NEIGHBOUR_TAG;
        one->bytes = world < 0 ? 0 : bytes;
    } else if (world >= 0) {
        one->peer = one->source = world;
        one->tag = one->received_tag = NEIGHBOUR_TAG;
        one->received_bytes = bytes;
    }
}

/* --- calls that count elements ---------------------------------------------------------------- */

#define COUNT int
#define PLACE int
#define F(name) name
#include "nbtrace_counted.h"
#undef COUNT
#undef PLACE
#undef F

#if MPI_VERSION >= 4
static int64_t sum_c(const MPI_Count *counts, int count)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++)
        total += counts[i];
    return total;
}

static int64_t sum_of_c(const MPI_Count *counts, const MPI_Datatype *types, int count)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++)
        total += nb_bytes(counts[i], types[i]);
    return total;
}

#define COUNT MPI_Count
#define PLACE MPI_Aint
#define F(name) PASTE(name, _c)
#include "nbtrace_counted.h"
#endif

/* --- collectives without counts --------------------------------------------------------------- */

int MPI_Barrier(MPI_Comm comm)
{
    BEGIN(Barrier);
    int result = NEXT(Barrier)(comm);
    END;
    note_comm(call, comm);
    return result;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    BEGIN(Ibarrier);
    int result = NEXT(Ibarrier)(comm, request);
    END;
    note_comm(call, comm);
    note_request(call, request, NB_Ibarrier);
    return result;
}

#if NB_HAS_PERSISTENT
int MPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
    BEGIN(Barrier_init);
    int result = NEXT(Barrier_init)(comm, info, request);
    END;
    note_comm(call, comm);
    note_persistent(call, request, NB_Ibarrier);
    return result;
}
#endif

/* --- persistent requests start ---------------------------------------------------------------- */

static void note_start(struct nb_call *call, MPI_Request request)
{
    struct nb_request about;
    if (!call || !nb_request_again(HANDLE(request), &about))
        return;
    call->call = (int16_t)about.code;
    call->request = about.number;
    note_like(call, &about);
}

int MPI_Start(MPI_Request *request)
{
    BEGIN(Start);
    int result = NEXT(Start)(request);
    END;
    note_start(call, *request);
    return result;
}

/* A record of the call, then one of each request, which takes no time. */
int MPI_Startall(int count, MPI_Request requests[])
{
    BEGIN(Startall);
    int result = NEXT(Startall)(count, requests);
    END;
    for (int i = 0; call && i < count; i++) {
        struct nb_call *one = nb_new_record(NB_Start, call->end);
        if (one)
            one->end = call->end;
        note_start(one, requests[i]);
    }
    return result;
}

int MPI_Cancel(MPI_Request *request)
{
    BEGIN(Cancel);
    int result = NEXT(Cancel)(request);
    END;
    nb_request_cancelled(HANDLE(*request));
    return result;
}

int MPI_Request_free(MPI_Request *request)
{
    intptr_t handle = HANDLE(*request);
    BEGIN(Request_free);
    int result = NEXT(Request_free)(request);
    END;
    if (call)
        nb_request_gone(handle);
    return result;
}

/* --- requests are completed ------------------------------------------------------------------- */

/* The requests of a call that may complete them. Where other threads may begin some meanwhile, a
 * handle that is completed may be theirs at once: then what is known of the requests is taken out
 * before the call, and what was not completed is put back. */
enum { FEW = 16 };

struct waiting {
    int count;
    intptr_t few_handles[FEW], *handles;
    MPI_Status few_statuses[FEW], *own, *statuses;
    struct nb_request few_taken[FEW], *taken;
};

static void *room_for(int count, size_t size, void *few)
{
    return count <= FEW ? few : calloc((size_t)count, size);
}

static void free_room(void *room, const void *few)
{
    if (room != few)
        free(room);
}

static void wait_for(struct waiting *waiting, int count, const MPI_Request *requests,
                     MPI_Status *statuses)
{
    waiting->count = count;
    waiting->handles = (intptr_t *)room_for(count, sizeof *waiting->handles, waiting->few_handles);
    int wants_none = statuses == MPI_STATUSES_IGNORE || statuses == MPI_STATUS_IGNORE;
    waiting->own = NULL;
    if (wants_none)
        waiting->own = (MPI_Status *)room_for(count, sizeof *waiting->own, waiting->few_statuses);
    waiting->statuses = wants_none ? waiting->own : statuses;
    waiting->taken = NULL;
    for (int i = 0; waiting->handles && i < count; i++)
        waiting->handles[i] = HANDLE(requests[i]);
    if (!nb_trace.threads || !nb_trace.header || nb_depth)
        return;
    waiting->taken = (struct nb_request *)room_for(count, sizeof *waiting->taken,
                                                   waiting->few_taken);
    for (int i = 0; waiting->taken && waiting->handles && i < count; i++)
        if (!nb_request_take(waiting->handles[i], waiting->taken + i))
            waiting->taken[i].handle = 0;
}

static int completed(struct waiting *waiting, int which, struct nb_request *about)
{
    if (!waiting->taken)
        return waiting->handles && nb_request_take(waiting->handles[which], about);
    *about = waiting->taken[which];
    waiting->taken[which].handle = 0;
    return about->handle != 0;
}

static void waited(struct waiting *waiting)
{
    for (int i = 0; waiting->taken && i < waiting->count; i++)
        if (waiting->taken[i].handle)
            nb_request_put_back(waiting->taken + i);
    free_room(waiting->handles, waiting->few_handles);
    free_room(waiting->own, waiting->few_statuses);
    free_room(waiting->taken, waiting->few_taken);
}

/* Into the record of the wait itself, or (NULL) into one of its own behind it. */
static void note_completed(const struct nb_call *wait, struct nb_call *call,
                           struct waiting *waiting, int which, const MPI_Status *status)
{
    struct nb_request about;
    int cancelled = 0;
    if (!wait || !completed(waiting, which, &about))
        return;
    if (!call) {
        call = nb_new_record(NB_Completed, wait->end);
        if (!call)
            return;
        call->end = wait->end;
    }
    call->request = about.number;
    call->comm = about.comm;
    if (about.code != NB_Irecv && about.code != NB_Start_receive)
        return;
    if (about.cancelled)
        NEXT(Test_cancelled)(status, &cancelled);
    if (!cancelled)
        note_source(call, nb_comm_numbered(about.comm), status);
}

static void note_all(const struct nb_call *call, struct waiting *waiting, int count,
                     const int *which)
{
    for (int i = 0; call && i < count; i++)
        note_completed(call, NULL, waiting, which ? which[i] : i, waiting->statuses + i);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct waiting waiting;
    wait_for(&waiting, 1, request, status);
    BEGIN(Wait);
    int result = NEXT(Wait)(request, waiting.statuses);
    END;
    note_completed(call, call, &waiting, 0, waiting.statuses);
    waited(&waiting);
    return result;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status *statuses)
{
    struct waiting waiting;
    wait_for(&waiting, count, requests, statuses);
    BEGIN(Waitall);
    int result = NEXT(Waitall)(count, requests, waiting.statuses);
    END;
    note_all(call, &waiting, count, NULL);
    waited(&waiting);
    return result;
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    MPI_Status own;
    struct waiting waiting;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    wait_for(&waiting, count, requests, status);
    BEGIN(Waitany);
    int result = NEXT(Waitany)(count, requests, index, status);
    END;
    if (*index != MPI_UNDEFINED)
        note_completed(call, call, &waiting, *index, status);
    waited(&waiting);
    return result;
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int which[], MPI_Status *statuses)
{
    struct waiting waiting;
    wait_for(&waiting, count, requests, statuses);
    BEGIN(Waitsome);
    int result = NEXT(Waitsome)(count, requests, done, which, waiting.statuses);
    END;
    note_all(call, &waiting, *done == MPI_UNDEFINED ? 0 : *done, which);
    waited(&waiting);
    return result;
}

/* --- tests and probes ------------------------------------------------------------------------- */

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct waiting waiting;
    wait_for(&waiting, 1, request, status);
    BEGIN(Test);
    int result = NEXT(Test)(request, flag, waiting.statuses);
    END;
    if (*flag)
        note_completed(call, call, &waiting, 0, waiting.statuses);
    waited(&waiting);
    return result;
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status *statuses)
{
    struct waiting waiting;
    wait_for(&waiting, count, requests, statuses);
    BEGIN(Testall);
    int result = NEXT(Testall)(count, requests, flag, waiting.statuses);
    END;
    note_all(call, &waiting, *flag ? count : 0, NULL);
    waited(&waiting);
    return result;
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    MPI_Status own;
    struct waiting waiting;
    status = status == MPI_STATUS_IGNORE ? &own : status;
    wait_for(&waiting, count, requests, status);
    BEGIN(Testany);
    int result = NEXT(Testany)(count, requests, index, flag, status);
    END;
    if (*flag && *index != MPI_UNDEFINED)
        note_completed(call, call, &waiting, *index, status);
    waited(&waiting);
    return result;
}

int MPI_Testsome(int count, MPI_Request requests[], int *done, int which[], MPI_Status *statuses)
{
    struct waiting waiting;
    wait_for(&waiting, count, requests, statuses);
    BEGIN(Testsome);
    int result = NEXT(Testsome)(count, requests, done, which, waiting.statuses);
    END;
    note_all(call, &waiting, *done == MPI_UNDEFINED ? 0 : *done, which);
    waited(&waiting);
    return result;
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    BEGIN(Probe);
    int result = NEXT(Probe)(from, tag, comm, status);
    END;
    note_peer(call, comm, from, tag);
    return result;
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    BEGIN(Iprobe);
    int result = NEXT(Iprobe)(from, tag, comm, flag, status);
    END;
    note_peer(call, comm, from, tag);
    return result;
}

int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    BEGIN(Mprobe);
    int result = NEXT(Mprobe)(from, tag, comm, message, status);
    END;
    note_peer(call, comm, from, tag);
    if (call) {
        struct nb_request about = {
            .comm = call->comm, .peer = call->peer, .tag = call->tag, .root = -1
        };
        nb_request_new(HANDLE(*message), about);
    }
    return result;
}

int MPI_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                MPI_Status *status)
{
    BEGIN(Improbe);
    int result = NEXT(Improbe)(from, tag, comm, flag, message, status);
    END;
    note_peer(call, comm, from, tag);
    if (call && *flag) {
        struct nb_request about = {
            .comm = call->comm, .peer = call->peer, .tag = call->tag, .root = -1
        };
        nb_request_new(HANDLE(*message), about);
    }
    return result;
}

/* --- communicators ---------------------------------------------------------------------------- */

#define MAKER(name, kind, place, parent, PARAMETERS, ARGUMENTS) \
    int MPI_##name PARAMETERS                                   \
    {                                                           \
        BEGIN(name);                                            \
        int result = NEXT(name) ARGUMENTS;                      \
        END;                                                    \
        if (note_comm(call, parent) && result == MPI_SUCCESS)   \
            nb_comm_made(parent, *made, kind, place);           \
        return result;                                          \
    }
MAKER(Comm_dup, "dup", -1, comm, (MPI_Comm comm, MPI_Comm *made), (comm, made))
MAKER(Comm_dup_with_info, "dup", -1, comm, (MPI_Comm comm, MPI_Info info, MPI_Comm *made),
      (comm, info, made))
MAKER(Comm_create, "create", -1, comm, (MPI_Comm comm, MPI_Group group, MPI_Comm *made),
      (comm, group, made))
MAKER(Comm_create_group, "group", tag, comm,
      (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made), (comm, group, tag, made))
MAKER(Comm_split, "split", -1, comm, (MPI_Comm comm, int color, int key, MPI_Comm *made),
      (comm, color, key, made))
MAKER(Comm_split_type, "split", -1, comm,
      (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
      (comm, type, key, info, made))
MAKER(Intercomm_create, "inter", tag, comm,
      (MPI_Comm comm, int leader, MPI_Comm bridge, int remote, int tag, MPI_Comm *made),
      (comm, leader, bridge, remote, tag, made))
MAKER(Intercomm_merge, "merge", -1, comm, (MPI_Comm comm, int high, MPI_Comm *made),
      (comm, high, made))
MAKER(Cart_create, "cart", -1, comm,
      (MPI_Comm comm, int count, const int sizes[], const int periodic[], int reorder,
       MPI_Comm *made),
      (comm, count, sizes, periodic, reorder, made))
MAKER(Cart_sub, "cart", -1, comm, (MPI_Comm comm, const int kept[], MPI_Comm *made),
      (comm, kept, made))
MAKER(Graph_create, "graph", -1, comm,
      (MPI_Comm comm, int count, const int index[], const int edges[], int reorder, MPI_Comm *made),
      (comm, count, index, edges, reorder, made))
MAKER(Dist_graph_create, "graph", -1, comm,
      (MPI_Comm comm, int count, const int nodes[], const int degrees[], const int targets[],
       const int weights[], MPI_Info info, int reorder, MPI_Comm *made),
      (comm, count, nodes, degrees, targets, weights, info, reorder, made))
MAKER(Dist_graph_create_adjacent, "graph", -1, comm,
      (MPI_Comm comm, int ins, const int sources[], const int source_weights[], int outs,
       const int targets[], const int target_weights[], MPI_Info info, int reorder, MPI_Comm *made),
      (comm, ins, sources, source_weights, outs, targets, target_weights, info, reorder, made))

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *made, MPI_Request *request)
{
    BEGIN(Comm_idup);
    int result = NEXT(Comm_idup)(comm, made, request);
    END;
    if (note_comm(call, comm)) {
        note_request(call, request, NB_Ibarrier);
        nb_comm_copied(comm, *made);
    }
    return result;
}

#define UNMAKER(name)                    \
    int MPI_##name(MPI_Comm *comm)       \
    {                                    \
        intptr_t handle = HANDLE(*comm); \
        BEGIN(name);                     \
        note_comm(call, *comm);          \
        int result = NEXT(name)(comm);   \
        END;                             \
        if (call)                        \
            nb_comm_gone(handle);        \
        return result;                   \
    }
UNMAKER(Comm_free)
UNMAKER(Comm_disconnect)
