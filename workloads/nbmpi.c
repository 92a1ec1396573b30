/* libnbmpi.so: the timed region of an MPI program, from the end of MPI_Init to the begin of
 * MPI_Finalize.
 *
 * Put into LD_PRELOAD of mpirun, which hands it on to the ranks. All ranks of this machine meet at
 * the end of their MPI_Init and begin at the common start. It knows no MPI's header: what it wraps
 * has the same face in all of them.
 */
#include "loaded_mpi.h"
#include "nbregion.h"

static struct nb_record *record;

static int number_from(const char *const *names, int otherwise)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        if (text && *text)
            return atoi(text);
    }
    return otherwise;
}

/* As mpirun of Open MPI, of MPICH and its relatives, and srun say it; a program started without one
 * is alone. */
static int ranks_here(void)
{
    static const char *const names[] = {
        "NOISEBOOK_RANKS_HERE", /* by an agent of ours (nbhelpers/nodes) */
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MPI_LOCALNRANKS",
        "MV2_COMM_WORLD_LOCAL_SIZE",
        "PALS_LOCAL_SIZE",
        "PMI_SIZE",
        NULL
    };
    return number_from(names, 1);
}

static int own_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                        "MV2_COMM_WORLD_RANK",  "PMIX_RANK",
                                        "SLURM_PROCID",         NULL};
    return number_from(names, 0);
}

static void *next_of(const char *name)
{
    return nb_find_surely(RTLD_NEXT, name, "libnbmpi.so");
}

static void begun(void)
{
    const char *folder = nb_region_folder("mpi");
    if (!folder || record)
        return;
    record = nb_map_record(folder);
    if (!record)
        return;
    record->rank = own_rank();
    record->begun = 1;
    nb_meet(folder, ranks_here());
    record->first_begin_ns = nb_now_ns();
}

static void ended(void)
{
    if (!record || record->ended)
        return;
    record->last_end_ns = nb_now_ns();
    record->inside_ns = record->last_end_ns - record->first_begin_ns;
    record->ended = 1;
}

/* dlsym() gives an address of data; POSIX lets it be taken for a function, ISO C does not. */
#define CALL_NEXT(type, name) (*(type *)&(void *){next_of(name)})

typedef int init_c(int *, char ***);
typedef int init_thread_c(int *, char ***, int, int *);
typedef int finalize_c(void);
typedef void init_fortran(int *);
typedef void init_thread_fortran(int *, int *, int *);

int MPI_Init(int *count, char ***words);
int MPI_Init_thread(int *count, char ***words, int required, int *provided);
int MPI_Finalize(void);

int MPI_Init(int *count, char ***words)
{
    int result = CALL_NEXT(init_c *, "MPI_Init")(count, words);
    begun();
    return result;
}

int MPI_Init_thread(int *count, char ***words, int required, int *provided)
{
    int result = CALL_NEXT(init_thread_c *, "MPI_Init_thread")(count, words, required, provided);
    begun();
    return result;
}

int MPI_Finalize(void)
{
    ended();
    return CALL_NEXT(finalize_c *, "MPI_Finalize")();
}

/* Fortran: `use mpi` and mpif.h, then `use mpi_f08`. Whether they call the C functions above
 * differs; the first counts. */
#define FORTRAN(suffix)                                                                         \
    void mpi_init##suffix(int *error);                                                          \
    void mpi_init_thread##suffix(int *required, int *provided, int *error);                     \
    void mpi_finalize##suffix(int *error);                                                      \
    void mpi_init##suffix(int *error)                                                           \
    {                                                                                           \
        CALL_NEXT(init_fortran *, "mpi_init" #suffix)(error);                                   \
        begun();                                                                                \
    }                                                                                           \
    void mpi_init_thread##suffix(int *required, int *provided, int *error)                      \
    {                                                                                           \
        CALL_NEXT(init_thread_fortran *, "mpi_init_thread" #suffix)(required, provided, error); \
        begun();                                                                                \
    }                                                                                           \
    void mpi_finalize##suffix(int *error)                                                       \
    {                                                                                           \
        ended();                                                                                \
        CALL_NEXT(init_fortran *, "mpi_finalize" #suffix)(error);                               \
    }
FORTRAN(_)
FORTRAN(_f08_)
