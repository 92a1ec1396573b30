/* libnbstart.so: lets any dynamically linked program wait at Noisebook's barrier, just before its main().
 *
 * nbstart --preload puts it first in LD_PRELOAD; the constructor takes it out again, so that children start as they always did.
 */
#include <dlfcn.h>

#include "noisebook.h"

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

__attribute__((constructor)) static void wait_before_main(void)
{
    int saved_errno = errno;
    forget_preload();
    int64_t t0_ns = nb_barrier();
    if (t0_ns > 0)
        nb_sleep_until(t0_ns);
    errno = saved_errno;
}
