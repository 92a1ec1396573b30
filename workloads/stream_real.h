/* stream_real.h: stream.c's arrays, kernels and checks in one precision. Included once for each:
 * NAME is its name, REAL its type, IN(name) gives a name of its own, EPSILON is twice its
 * rounding, FUSED its fused multiply-add.
 */
static void IN(fill)(const struct arrays *s)
{
    REAL *a = s->a, *b = s->b, *c = s->c;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++) {
        a[i] = (REAL)START_A;
        b[i] = (REAL)START_B;
        c[i] = (REAL)START_C;
    }
}

static void IN(copy)(const struct arrays *s)
{
    const REAL *restrict a = s->a;
    REAL *restrict c = s->c;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++)
        c[i] = a[i];
}

static void IN(mul)(const struct arrays *s)
{
    const REAL *restrict c = s->c;
    REAL *restrict b = s->b;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++)
        b[i] = (REAL)SCALAR * c[i];
}

static void IN(add)(const struct arrays *s)
{
    const REAL *restrict a = s->a, *restrict b = s->b;
    REAL *restrict c = s->c;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++)
        c[i] = a[i] + b[i];
}

static void IN(triad)(const struct arrays *s)
{
    const REAL *restrict b = s->b, *restrict c = s->c;
    REAL *restrict a = s->a;
#pragma omp parallel for schedule(static)
    for (long i = 0; i < s->count; i++)
        a[i] = b[i] + (REAL)SCALAR * c[i];
}

static REAL IN(dot)(const struct arrays *s)
{
    const REAL *restrict a = s->a, *restrict b = s->b;
    REAL sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (long i = 0; i < s->count; i++)
        sum += a[i] * b[i];
    return sum;
}

static double IN(kernel)(const struct arrays *s, int which)
{
    if (which == COPY)
        IN(copy)(s);
    else if (which == MUL)
        IN(mul)(s);
    else if (which == ADD)
        IN(add)(s);
    else if (which == TRIAD)
        IN(triad)(s);
    return which == DOT ? (double)IN(dot)(s) : 0;
}

static double IN(distance)(const REAL *values, long count, double expected)
{
    double worst = 0;
    for (long i = 0; i < count; i++)
        worst = larger(fabs((double)values[i] - expected) / fabs(expected), worst);
    return worst;
}

/* The greatest relative error of an element. */
static double IN(array_error)(const struct arrays *s, const struct expected *end)
{
    return larger(
        larger(IN(distance)(s->a, s->count, end->a), IN(distance)(s->b, s->count, end->b)),
        IN(distance)(s->c, s->count, end->c));
}

/* The sum of as many equal products, one after the other, as a thread takes it; the product rounded
 * or, as with fused multiply-add, not. */
static double IN(sum_in_order)(double a, double b, long count, int fused)
{
    REAL sum = 0, left = (REAL)a, right = (REAL)b;
    volatile REAL product = left * right; /* volatile: so that it is rounded */
    for (long i = 0; i < count; i++)
        sum = fused ? FUSED(left, right, sum) : sum + product;
    return (double)sum;
}

/* How far the last dot product is from what adding in order gives; rounding of n equal terms is
 * of one sign and grows with n. */
static double IN(order_error)(const struct arrays *s, double sum)
{
    const REAL *first_a = s->a, *first_b = s->b;
    long threads = omp_get_max_threads(), share = s->count / threads, more = s->count % threads;
    double best = 1e300, a = (double)*first_a, b = (double)*first_b;
    for (int fused = 0; fused < 2; fused++) {
        double total = (double)(threads - more) * IN(sum_in_order)(a, b, share, fused);
        if (more)
            total += (double)more * IN(sum_in_order)(a, b, share + 1, fused);
        best = fmin(best, fabs(sum - total) / total);
    }
    return best;
}

static const struct precision IN(precision) = {
    .name = NAME,
    .epsilon = EPSILON,
    .size = sizeof(REAL),
    .fill = IN(fill),
    .kernel = IN(kernel),
    .array_error = IN(array_error),
    .order_error = IN(order_error)
};

#undef NAME
#undef REAL
#undef IN
#undef EPSILON
#undef FUSED
