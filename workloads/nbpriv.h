/* What the files of noisebook-priv share. */
#ifndef NB_PRIV_H
#define NB_PRIV_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define BIT(number) (1ULL << (number))
#define OUR_RIGHTS                                                                   \
    (BIT(CAP_SETUID) | BIT(CAP_CHOWN) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_RESOURCE) | \
     BIT(CAP_PERFMON))

enum { TEXT_BYTES = 4096, MOST_WORDS = 6, MOST_INSTANCES = 4, HELD_FROM = 100 };

/* What a process asks, and the words that answer it. */
struct request {
    char text[TEXT_BYTES], *words[MOST_WORDS], said[TEXT_BYTES - 16];
    int count, fd;
};

extern uid_t user;  /* whom it serves */
extern pid_t asker; /* the process that made the socket */

/* Takes these capabilities, and root's id for the files that only root may open; 0 or -EPERM. */
int with_rights(uint64_t capabilities, bool as_root);
void without_rights(void);
/* -errno, in these words. */
int refused(struct request *request, int error, const char *why);
bool is_number(const char *text, int64_t least, int64_t most, int64_t *number);
bool is_among_words(const char *word, const char *words);
bool has_only(const char *text, const char *letters, size_t most);
/* A file of the kernel, read with one call; written, but never made. 0 or -errno. */
int read_text(int folder, const char *path, char *text, size_t bytes);
int write_text(int folder, const char *path, const char *value);
/* tracefs opened with root's id; or -errno. */
int enter_tracefs(void);
bool is_event_list(const char *value);
bool is_counted(int64_t tracepoint);
/* The socket is closed: removes the instances that this helper made. */
void end_tracing(void);

/* From here on only the system calls that the helper makes; 0 or -errno. */
int confine(void);

/* They return a descriptor for who asks, 0 or -errno. */
int verb_event(struct request *request);
int verb_instance(struct request *request);
int verb_watch(struct request *request);

#endif
