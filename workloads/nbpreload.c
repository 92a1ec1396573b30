/* libnbstart.so: lets any dynamically linked program wait at Noisebook's barrier, just before its
 * main(), and gives it noisebook_begin() and noisebook_end(), the begin and the end of its timed
 * region.
 *
 * nbstart --preload puts it first in LD_PRELOAD; the constructor takes it out again, so that
 * children start as they always did, unless one of them may be the program whose region is looked
 * for (NOISEBOOK_REGION).
 *
 *     extern void noisebook_begin(void) __attribute__((weak));
 *     if (noisebook_begin) noisebook_begin();
 *
 * A program that cannot declare a weak symbol is linked with this library: without Noisebook the
 * two do nothing.
 */
#include <dlfcn.h>

#include "nbregion.h"
#include "open_file.h"

static const char *symbols_folder; /* NULL: nobody asked for the region of the two symbols */
static struct nb_record *record;

static const char *own_path(void)
{
    Dl_info info;
    return dladdr((void *)own_path, &info) && info.dli_fname ? info.dli_fname : "";
}

/* Takes `name` out of a list separated by colons or blanks, in place. */
static void remove_name(char *list, const char *name)
{
    char *out = list, *state = NULL;
    for (char *word = strtok_r(list, ": ", &state); word; word = strtok_r(NULL, ": ", &state)) {
        size_t length = strlen(word);
        if (!strcmp(word, name))
            continue;
        if (out != list)
            *out++ = ':';
        memmove(out, word, length);
        out += length;
    }
    *out = 0;
}

static void forget_preload(void)
{
    if (!strncmp(own_path(), OPEN_FILE, strlen(OPEN_FILE)))
        close(atoi(own_path() + strlen(OPEN_FILE)));
    const char *list = getenv("LD_PRELOAD");
    char *rest = list ? strdup(list) : NULL;
    if (!rest)
        return;
    remove_name(rest, own_path());
    if (*rest)
        setenv("LD_PRELOAD", rest, 1);
    else
        unsetenv("LD_PRELOAD");
    free(rest);
}

/* The region of kind "lines" ends when its line is written: a buffer of 4 KiB would keep the line
 * until the end. */
static void write_lines_at_once(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
}

__attribute__((constructor)) static void wait_before_main(void)
{
    int saved_errno = errno;
    const char *kind = getenv("NOISEBOOK_REGION"), *folder = nb_region_folder("symbols");
    symbols_folder = folder ? strdup(folder) : NULL; /* the program may change its environment */
    if (!kind)
        forget_preload();
    else if (!strcmp(kind, "lines"))
        write_lines_at_once();
    int64_t t0_ns = nb_barrier();
    if (t0_ns > 0)
        nb_sleep_until(t0_ns);
    errno = saved_errno;
}

/* The first begin is the barrier: it waits for the common start. A second one before an end is
 * passed over. */
void noisebook_begin(void)
{
    int saved_errno = errno;
    if (symbols_folder && !record)
        record = nb_map_record(symbols_folder);
    if (record && !record->open_ns) {
        if (!record->begun)
            nb_meet(symbols_folder, 1);
        record->begun++;
        record->open_ns = nb_now_ns();
        if (!record->first_begin_ns)
            record->first_begin_ns = record->open_ns;
    }
    errno = saved_errno;
}

void noisebook_end(void)
{
    if (!record || !record->open_ns)
        return;
    record->last_end_ns = nb_now_ns();
    record->inside_ns += record->last_end_ns - record->open_ns;
    record->open_ns = 0;
    record->ended++;
}

/* As Fortran calls them. */
void noisebook_begin_(void)
{
    noisebook_begin();
}

void noisebook_end_(void)
{
    noisebook_end();
}
