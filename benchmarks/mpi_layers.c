/* MPI_Allreduce recorded in part, each LAYER a part more: 1 it is passed on through a function of a
 * preloaded library, 2 the clock is read before and after, 3 a record is taken, filled and ended.
 * What libnbtrace.so does beyond is the arguments: bytes, communicator, root. For
 * benchmarks/mpi_overhead.py, which builds it with nbtrace.c and nbtrace_numbers.c.
 */
#include "nbtrace.h"

int MPI_Allreduce(const void *data, void *sum, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
#if LAYER == 1
    return NEXT(Allreduce)(data, sum, count, type, op, comm);
#elif LAYER == 2
    static volatile int64_t took;
    int64_t start = nb_ticks(nb_trace.tsc);
    int result = NEXT(Allreduce)(data, sum, count, type, op, comm);
    took = nb_ticks(nb_trace.tsc) - start;
    return result;
#else
    BEGIN(Allreduce);
    int result = NEXT(Allreduce)(data, sum, count, type, op, comm);
    END;
    return result;
#endif
}
