/* minife.h: what minife.c and its SYCL twin have in common on the host; after options.h. C11 and
 * C++11. */
#define ERROR_BOUND 1e-6     /* of the largest value */
#define CONJUGATE_BOUND 1e-9 /* a cosine; a sound run stays below 1e-15 */

struct solution {
    long iterations;
    double norm_b, residual; /* of the recursion, relative */
    double cosine;           /* of the second direction and the first one's product: 0 */
};

static long neighbours(long at, long elements)
{
    return 1 + (at > 0) + (at < elements);
}

/* Whether the run is verified; a message where it is not. `residual` is the true one, `error` the
 * distance from the exact solution. */
static int is_solved(const struct solution *found, double residual, double error, double tolerance)
{
    int verified = nb_within(found->residual, tolerance) && nb_within(residual, 10 * tolerance) &&
                   nb_within(error, ERROR_BOUND) && nb_within(found->cosine, CONJUGATE_BOUND);
    if (!verified)
        fprintf(stderr,
                "minife: not verified: after %ld iterations the residual is %.3g (bound %.3g), the "
                "distance from the exact solution %.3g (bound %.3g), first directions are "
                "conjugate to %.3g "
                "(bound %.3g)\n",
                found->iterations, residual, 10 * tolerance, error, ERROR_BOUND, found->cosine,
                CONJUGATE_BOUND);
    return verified;
}
