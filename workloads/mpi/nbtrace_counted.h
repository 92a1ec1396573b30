/* nbtrace_counted.h: the calls that count elements; included two times by nbtrace_calls.c, for
 * COUNT = int and, from MPI 4 on, for COUNT = MPI_Count (functions that end in _c).
 */

/* --- point to point --------------------------------------------------------------------------- */

#define SEND(name)                                                                              \
    int PASTE(MPI_, F(name))(const void *data, COUNT count, MPI_Datatype type, int to, int tag, \
                             MPI_Comm comm)                                                     \
    {                                                                                           \
        BEGIN(name);                                                                            \
        int result = NEXT(F(name))(data, count, type, to, tag, comm);                           \
        END;                                                                                    \
        note_send(call, comm, to, tag, count, type);                                            \
        return result;                                                                          \
    }
SEND(Send)
SEND(Bsend)
SEND(Ssend)
SEND(Rsend)

#define ISEND(name, note, kind)                                                                 \
    int PASTE(MPI_, F(name))(const void *data, COUNT count, MPI_Datatype type, int to, int tag, \
                             MPI_Comm comm, MPI_Request *request)                               \
    {                                                                                           \
        BEGIN(name);                                                                            \
        int result = NEXT(F(name))(data, count, type, to, tag, comm, request);                  \
        END;                                                                                    \
        note_send(call, comm, to, tag, count, type);                                            \
        note(call, request, kind);                                                              \
        return result;                                                                          \
    }
ISEND(Isend, note_request, NB_Isend)
ISEND(Ibsend, note_request, NB_Isend)
ISEND(Issend, note_request, NB_Isend)
ISEND(Irsend, note_request, NB_Isend)
ISEND(Send_init, note_persistent, NB_Start_send)
ISEND(Bsend_init, note_persistent, NB_Start_send)
ISEND(Ssend_init, note_persistent, NB_Start_send)
ISEND(Rsend_init, note_persistent, NB_Start_send)

int PASTE(MPI_, F(Recv))(void *data, COUNT count, MPI_Datatype type, int from, int tag,
                         MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    BEGIN(Recv);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    int result = NEXT(F(Recv))(data, count, type, from, tag, comm, status);
    END;
    note_peer(call, comm, from, tag);
    note_received(call, comm, status);
    return result;
}

#define IRECV(name, note, kind)                                                             \
    int PASTE(MPI_, F(name))(void *data, COUNT count, MPI_Datatype type, int from, int tag, \
                             MPI_Comm comm, MPI_Request *request)                           \
    {                                                                                       \
        BEGIN(name);                                                                        \
        int result = NEXT(F(name))(data, count, type, from, tag, comm, request);            \
        END;                                                                                \
        note_peer(call, comm, from, tag);                                                   \
        note(call, request, kind);                                                          \
        return result;                                                                      \
    }
IRECV(Irecv, note_request, NB_Irecv)
IRECV(Recv_init, note_persistent, NB_Start_receive)

int PASTE(MPI_, F(Sendrecv))(const void *data, COUNT count, MPI_Datatype type, int to, int tag,
                             void *into, COUNT room, MPI_Datatype into_type, int from, int from_tag,
                             MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    BEGIN(Sendrecv);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    int result = NEXT(F(Sendrecv))(data, count, type, to, tag, into, room, into_type, from,
                                   from_tag, comm, status);
    END;
    note_send(call, comm, to, tag, count, type);
    note_received(call, comm, status);
    return result;
}

int PASTE(MPI_, F(Sendrecv_replace))(void *data, COUNT count, MPI_Datatype type, int to, int tag,
                                     int from, int from_tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    BEGIN(Sendrecv_replace);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    int result = NEXT(F(Sendrecv_replace))(data, count, type, to, tag, from, from_tag, comm,
                                           status);
    END;
    note_send(call, comm, to, tag, count, type);
    note_received(call, comm, status);
    return result;
}

int PASTE(MPI_, F(Mrecv))(void *data, COUNT count, MPI_Datatype type, MPI_Message *message,
                          MPI_Status *status)
{
    MPI_Status own;
    struct nb_request about;
    intptr_t handle = HANDLE(*message);
    BEGIN(Mrecv);
    status = status == MPI_STATUS_IGNORE ? &own : status;
    int result = NEXT(F(Mrecv))(data, count, type, message, status);
    END;
    if (call && nb_request_take(handle, &about)) {
        note_like(call, &about);
        note_source(call, nb_comm_numbered(about.comm), status);
    }
    return result;
}

int PASTE(MPI_, F(Imrecv))(void *data, COUNT count, MPI_Datatype type, MPI_Message *message,
                           MPI_Request *request)
{
    struct nb_request about;
    intptr_t handle = HANDLE(*message);
    BEGIN(Imrecv);
    int result = NEXT(F(Imrecv))(data, count, type, message, request);
    END;
    if (call && nb_request_take(handle, &about)) {
        note_like(call, &about);
        note_request(call, request, NB_Irecv);
    }
    return result;
}

/* --- collectives ------------------------------------------------------------------------------
 * Each as it is, nonblocking and (MPI 4) persistent. SIZES says what the rank gives and gets. */

#define PLAIN(name, PARAMETERS, ARGUMENTS, SIZES)   \
    int PASTE(MPI_, F(name))(LIST PARAMETERS)       \
    {                                               \
        BEGIN(name);                                \
        int result = NEXT(F(name))(LIST ARGUMENTS); \
        END;                                        \
        if (note_comm(call, comm)) {                \
            SIZES;                                  \
        }                                           \
        return result;                              \
    }
#define NONBLOCKING(name, PARAMETERS, ARGUMENTS, SIZES)              \
    int PASTE(MPI_, F(name))(LIST PARAMETERS, MPI_Request * request) \
    {                                                                \
        BEGIN(name);                                                 \
        int result = NEXT(F(name))(LIST ARGUMENTS, request);         \
        END;                                                         \
        if (note_comm(call, comm)) {                                 \
            SIZES;                                                   \
            note_request(call, request, NB_Ibarrier);                \
        }                                                            \
        return result;                                               \
    }
#define PERSISTENT(name, starts, PARAMETERS, ARGUMENTS, SIZES)                      \
    int PASTE(MPI_, F(name))(LIST PARAMETERS, MPI_Info info, MPI_Request * request) \
    {                                                                               \
        BEGIN(name);                                                                \
        int result = NEXT(F(name))(LIST ARGUMENTS, info, request);                  \
        END;                                                                        \
        if (note_comm(call, comm)) {                                                \
            SIZES;                                                                  \
            note_persistent(call, request, PASTE(NB_, starts));                     \
        }                                                                           \
        return result;                                                              \
    }
#define LIST(...) __VA_ARGS__
#if NB_HAS_PERSISTENT
#define COLLECTIVE(name, lower, PARAMETERS, ARGUMENTS, SIZES)  \
    PLAIN(name, PARAMETERS, ARGUMENTS, SIZES)                  \
    NONBLOCKING(PASTE(I, lower), PARAMETERS, ARGUMENTS, SIZES) \
    PERSISTENT(PASTE(name, _init), PASTE(I, lower), PARAMETERS, ARGUMENTS, SIZES)
#else
#define COLLECTIVE(name, lower, PARAMETERS, ARGUMENTS, SIZES) \
    PLAIN(name, PARAMETERS, ARGUMENTS, SIZES)                 \
    NONBLOCKING(PASTE(I, lower), PARAMETERS, ARGUMENTS, SIZES)
#endif

COLLECTIVE(Bcast, bcast, (void *data, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
           (data, count, type, root, comm), rooted(call, comm, root, nb_bytes(count, type), -1))
COLLECTIVE(Reduce, reduce,
           (const void *data, void *into, COUNT count, MPI_Datatype type, MPI_Op op, int root,
            MPI_Comm comm),
           (data, into, count, type, op, root, comm),
           reduced(call, comm, root, nb_bytes(count, type)))
#define ALL_REDUCED                                                                           \
    (const void *data, void *into, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
        (data, into, count, type, op, comm),                                                  \
        sizes(call, nb_bytes(count, type), nb_bytes(count, type))
#define COLLECTIVE_(name, lower, ...) COLLECTIVE(name, lower, __VA_ARGS__)
COLLECTIVE_(Allreduce, allreduce, ALL_REDUCED)
COLLECTIVE_(Scan, scan, ALL_REDUCED)
COLLECTIVE_(Exscan, exscan, ALL_REDUCED)
COLLECTIVE(Reduce_scatter_block, reduce_scatter_block,
           (const void *data, void *into, COUNT count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (data, into, count, type, op, comm),
           sizes(call, nb_bytes((int64_t)count *size_of(comm), type), nb_bytes(count, type)))
COLLECTIVE(Reduce_scatter, reduce_scatter,
           (const void *data, void *into, const COUNT counts[], MPI_Datatype type, MPI_Op op,
            MPI_Comm comm),
           (data, into, counts, type, op, comm),
           sizes(call, nb_bytes(F(sum)(counts, size_of(comm)), type),
                 nb_bytes(counts[own_rank(comm)], type)))

#define BUFFERS \
    const void *data, COUNT count, MPI_Datatype type, void *into, COUNT room, MPI_Datatype to_type
COLLECTIVE(Gather, gather, (BUFFERS, int root, MPI_Comm comm),
           (data, count, type, into, room, to_type, root, comm),
           gathered(call, comm, root, data == MPI_IN_PLACE ? -1 : nb_bytes(count, type),
                    is_root(comm, root) ? nb_bytes((int64_t)room * size_of(comm), to_type) : 0))
COLLECTIVE(Scatter, scatter, (BUFFERS, int root, MPI_Comm comm),
           (data, count, type, into, room, to_type, root, comm),
           rooted(call, comm, root,
                  is_root(comm, root) ? nb_bytes((int64_t)count * size_of(comm), type) : 0,
                  into == MPI_IN_PLACE ? 0 : nb_bytes(room, to_type)))
COLLECTIVE(Gatherv, gatherv,
           (const void *data, COUNT count, MPI_Datatype type, void *into, const COUNT rooms[],
            const PLACE places[], MPI_Datatype to_type, int root, MPI_Comm comm),
           (data, count, type, into, rooms, places, to_type, root, comm),
           gathered(call, comm, root, data == MPI_IN_PLACE ? -1 : nb_bytes(count, type),
                    is_root(comm, root) ? nb_bytes(F(sum)(rooms, size_of(comm)), to_type) : 0))
COLLECTIVE(Scatterv, scatterv,
           (const void *data, const COUNT counts[], const PLACE places[], MPI_Datatype type,
            void *into, COUNT room, MPI_Datatype to_type, int root, MPI_Comm comm),
           (data, counts, places, type, into, room, to_type, root, comm),
           rooted(call, comm, root,
                  is_root(comm, root) ? nb_bytes(F(sum)(counts, size_of(comm)), type) : 0,
                  into == MPI_IN_PLACE ? 0 : nb_bytes(room, to_type)))
COLLECTIVE(Allgather, allgather, (BUFFERS, MPI_Comm comm),
           (data, count, type, into, room, to_type, comm),
           sizes(call, data == MPI_IN_PLACE ? nb_bytes(room, to_type) : nb_bytes(count, type),
                 nb_bytes((int64_t)room *size_of(comm), to_type)))
COLLECTIVE(Allgatherv, allgatherv,
           (const void *data, COUNT count, MPI_Datatype type, void *into, const COUNT rooms[],
            const PLACE places[], MPI_Datatype to_type, MPI_Comm comm),
           (data, count, type, into, rooms, places, to_type, comm),
           sizes(call,
                 data == MPI_IN_PLACE ? nb_bytes(rooms[own_rank(comm)], to_type)
                                      : nb_bytes(count, type),
                 nb_bytes(F(sum)(rooms, size_of(comm)), to_type)))
COLLECTIVE(Alltoall, alltoall, (BUFFERS, MPI_Comm comm),
           (data, count, type, into, room, to_type, comm),
           sizes(call,
                 data == MPI_IN_PLACE ? nb_bytes((int64_t)room * size_of(comm), to_type)
                                      : nb_bytes((int64_t)count * size_of(comm), type),
                 nb_bytes((int64_t)room *size_of(comm), to_type)))
#define BUFFERS_V                                                                                \
    const void *data, const COUNT counts[], const PLACE places[], MPI_Datatype type, void *into, \
        const COUNT rooms[], const PLACE to_places[], MPI_Datatype to_type
#define BUFFERS_W                                                                             \
    const void *data, const COUNT counts[], const PLACE places[], const MPI_Datatype types[], \
        void *into, const COUNT rooms[], const PLACE to_places[], const MPI_Datatype to_types[]
COLLECTIVE(Alltoallv, alltoallv, (BUFFERS_V, MPI_Comm comm),
           (data, counts, places, type, into, rooms, to_places, to_type, comm),
           sizes(call,
                 data == MPI_IN_PLACE ? nb_bytes(F(sum)(rooms, size_of(comm)), to_type)
                                      : nb_bytes(F(sum)(counts, size_of(comm)), type),
                 nb_bytes(F(sum)(rooms, size_of(comm)), to_type)))
COLLECTIVE(Alltoallw, alltoallw, (BUFFERS_W, MPI_Comm comm),
           (data, counts, places, types, into, rooms, to_places, to_types, comm),
           sizes(call,
                 data == MPI_IN_PLACE ? F(sum_of)(rooms, to_types, size_of(comm))
                                      : F(sum_of)(counts, types, size_of(comm)),
                 F(sum_of)(rooms, to_types, size_of(comm))))

/* With its neighbours only: behind the record of a blocking one stand its messages and their end.
 * `vary`: 0 all have the first count and type, 1 the counts differ, 2 the types, too. */
struct F(part) {
    const COUNT *counts;
    const MPI_Datatype *types;
    int vary;
};

static int64_t F(part_bytes)(struct F(part) part, int i)
{
    return nb_bytes(part.counts[part.vary ? i : 0], part.types[part.vary > 1 ? i : 0]);
}

static void F(among_neighbours)(struct nb_call *call, MPI_Comm comm, struct F(part) given,
                                struct F(part) gotten)
{
    int ins = neighbours(comm, 0), outs = neighbours(comm, 1);
    int *room = (int *)malloc((size_t)(2 * (ins + outs) + 1) * sizeof *room);
    struct sides sides = room ? neighbour_ranks(comm, ins, outs, room) : (struct sides){0};
    for (int i = 0; i < sides.outs; i++)
        call->bytes += F(part_bytes)(given, i);
    for (int i = 0; i < sides.ins; i++)
        call->received_bytes += F(part_bytes)(gotten, i);
    int blocking = call->call >= NB_Neighbor_allgather && call->call <= NB_Neighbor_alltoallw;
    int first = blocking ? nb_request_numbers(ins + outs) : 0;
    for (int i = 0; blocking && i < sides.outs; i++)
        note_neighbour(call, NB_Isend, first + i, sides.to[i], F(part_bytes)(given, i));
    for (int i = 0; blocking && i < sides.ins; i++)
        note_neighbour(call, NB_Irecv, first + outs + i, sides.from[i], F(part_bytes)(gotten, i));
    if (blocking)
        note_neighbour(call, NB_Waitall, -1, -1, 0);
    for (int i = 0; blocking && i < sides.outs; i++)
        note_neighbour(call, NB_Completed, first + i, -1, 0);
    for (int i = 0; blocking && i < sides.ins; i++)
        note_neighbour(call, NB_Completed, first + outs + i, sides.from[i],
                       F(part_bytes)(gotten, i));
    free(room);
}

#define PART(counts, types, vary) ((struct F(part)){counts, types, vary})
COLLECTIVE(Neighbor_allgather, neighbor_allgather, (BUFFERS, MPI_Comm comm),
           (data, count, type, into, room, to_type, comm),
           F(among_neighbours)(call, comm, PART(&count, &type, 0), PART(&room, &to_type, 0)))
COLLECTIVE(Neighbor_allgatherv, neighbor_allgatherv,
           (const void *data, COUNT count, MPI_Datatype type, void *into, const COUNT rooms[],
            const PLACE places[], MPI_Datatype to_type, MPI_Comm comm),
           (data, count, type, into, rooms, places, to_type, comm),
           F(among_neighbours)(call, comm, PART(&count, &type, 0), PART(rooms, &to_type, 1)))
COLLECTIVE(Neighbor_alltoall, neighbor_alltoall, (BUFFERS, MPI_Comm comm),
           (data, count, type, into, room, to_type, comm),
           F(among_neighbours)(call, comm, PART(&count, &type, 0), PART(&room, &to_type, 0)))
COLLECTIVE(Neighbor_alltoallv, neighbor_alltoallv, (BUFFERS_V, MPI_Comm comm),
           (data, counts, places, type, into, rooms, to_places, to_type, comm),
           F(among_neighbours)(call, comm, PART(counts, &type, 1), PART(rooms, &to_type, 1)))
#define BUFFERS_A                                                                                \
    const void *data, const COUNT counts[], const MPI_Aint places[], const MPI_Datatype types[], \
        void *into, const COUNT rooms[], const MPI_Aint to_places[], const MPI_Datatype to_types[]
COLLECTIVE(Neighbor_alltoallw, neighbor_alltoallw, (BUFFERS_A, MPI_Comm comm),
           (data, counts, places, types, into, rooms, to_places, to_types, comm),
           F(among_neighbours)(call, comm, PART(counts, types, 2), PART(rooms, to_types, 2)))

/* --- one-sided -------------------------------------------------------------------------------- */

#define TARGET int to, MPI_Aint at, COUNT to_count, MPI_Datatype to_type
#define ONE_SIDED(name, PARAMETERS, ARGUMENTS, given, gotten) \
    int PASTE(MPI_, F(name))(LIST PARAMETERS)                 \
    {                                                         \
        BEGIN(name);                                          \
        int result = NEXT(F(name))(LIST ARGUMENTS);           \
        END;                                                  \
        if (call)                                             \
            sizes(call, given, gotten);                       \
        return result;                                        \
    }
#define ONE_SIDED_R(name, PARAMETERS, ARGUMENTS, given, gotten)      \
    int PASTE(MPI_, F(name))(LIST PARAMETERS, MPI_Request * request) \
    {                                                                \
        BEGIN(name);                                                 \
        int result = NEXT(F(name))(LIST ARGUMENTS, request);         \
        END;                                                         \
        if (call) {                                                  \
            sizes(call, given, gotten);                              \
            note_request(call, request, NB_Ibarrier);                \
        }                                                            \
        return result;                                               \
    }
#define BOTH_SIDED(name, lower, ...) \
    ONE_SIDED(name, __VA_ARGS__)     \
    ONE_SIDED_R(PASTE(R, lower), __VA_ARGS__)
BOTH_SIDED(Put, put, (const void *data, COUNT count, MPI_Datatype type, TARGET, MPI_Win win),
           (data, count, type, to, at, to_count, to_type, win), nb_bytes(count, type), 0)
BOTH_SIDED(Get, get, (void *data, COUNT count, MPI_Datatype type, TARGET, MPI_Win win),
           (data, count, type, to, at, to_count, to_type, win), 0, nb_bytes(count, type))
BOTH_SIDED(Accumulate, accumulate,
           (const void *data, COUNT count, MPI_Datatype type, TARGET, MPI_Op op, MPI_Win win),
           (data, count, type, to, at, to_count, to_type, op, win), nb_bytes(count, type), 0)
BOTH_SIDED(Get_accumulate, get_accumulate,
           (const void *data, COUNT count, MPI_Datatype type, void *into, COUNT room,
            MPI_Datatype into_type, TARGET, MPI_Op op, MPI_Win win),
           (data, count, type, into, room, into_type, to, at, to_count, to_type, op, win),
           nb_bytes(count, type), nb_bytes(room, into_type))

#undef SEND
#undef ISEND
#undef IRECV
#undef PLAIN
#undef NONBLOCKING
#undef PERSISTENT
#undef LIST
#undef COLLECTIVE
#undef COLLECTIVE_
#undef ALL_REDUCED
#undef BUFFERS
#undef BUFFERS_V
#undef BUFFERS_W
#undef BUFFERS_A
#undef PART
#undef TARGET
#undef ONE_SIDED
#undef ONE_SIDED_R
#undef BOTH_SIDED
