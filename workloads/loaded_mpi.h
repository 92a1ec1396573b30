/* A function of the MPI that a program uses, found by libnbmpi.so and libnbtrace.so without being
 * linked with any MPI.
 *
 * An MPI that was loaded by dlopen() (a Python module) is not among the libraries that RTLD_NEXT
 * searches: it is found among all that are loaded, by its file's name.
 */
#ifndef NB_LOADED_MPI_H
#define NB_LOADED_MPI_H

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nb_wanted {
    const char *name;
    void *found;
};

static int nb_look_into(struct dl_phdr_info *info, size_t size, void *data)
{
    struct nb_wanted *wanted = (struct nb_wanted *)data;
    (void)size;
    const char *file = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (!file || (strncmp(file, "/libmpi", 7) && strncmp(file, "/libpmpi", 8)))
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return 0;
    wanted->found = dlsym(library, wanted->name);
    dlclose(library); /* it stays loaded: this was one reference more */
    return wanted->found != NULL;
}

/* Among RTLD_NEXT or RTLD_DEFAULT, then in an MPI that was loaded later; NULL: nowhere. */
static inline void *nb_find_if_there(void *among, const char *name)
{
    struct nb_wanted wanted = {name, dlsym(among, name)};
    if (!wanted.found)
        dl_iterate_phdr(nb_look_into, &wanted);
    return wanted.found;
}

/* The same; without it the program cannot go on. */
static inline void *nb_find_surely(void *among, const char *name, const char *library)
{
    void *found = nb_find_if_there(among, name);
    if (!found) {
        fprintf(stderr, "noisebook: there is no %s behind %s\n", name, library);
        abort();
    }
    return found;
}

#endif
