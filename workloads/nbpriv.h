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

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* Linux 5.8 */
#endif
#define BIT(number) (1ULL << (number))
#define OUR_RIGHTS                                                                   \
    (BIT(CAP_SETUID) | BIT(CAP_CHOWN) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_RESOURCE) | \
     BIT(CAP_PERFMON))

/* The flags of perf_event_attr that a counter may have, by their bits. */
#define FLAG_DISABLED (1 << 0)
#define FLAG_INHERIT (1 << 1)
#define FLAG_NO_KERNEL (1 << 5)
#define FLAG_NO_HYPERVISOR (1 << 6)

enum { TEXT_BYTES = 4096, MOST_WORDS = 6 };

struct request {
    char text[TEXT_BYTES], *words[MOST_WORDS];
    int count, fd;
};

/* Takes these capabilities, and root's id for the files that only root may open; 0 or -EPERM. */
int with_rights(uint64_t capabilities, bool as_root);
void without_rights(void);
/* Sends an answer, and closes the descriptor that goes with it (-1: none). */
void answer(int error, const char *text, int fd);
bool is_number(const char *text, int64_t least, int64_t most, int64_t *number);
bool is_among_words(const char *word, const char *words);
uid_t the_user(void);
bool is_asked_by_its_maker(const char *instance);
/* Whether the process that an instance is named after has ended. */
bool has_a_dead_maker(const char *instance);
bool asker_is_dead(void);
bool has_only(const char *text, const char *letters, size_t most);
/* tracefs opened with root's id, or -errno; `leave_tracefs` puts both down again. */
int enter_tracefs(void);
void leave_tracefs(int tracefs);
int read_text(int folder, const char *path, char *text, size_t bytes);
bool is_event_list(const char *value);
bool is_counted(int64_t tracepoint);
/* The socket is closed: removes what a maker that is dead has left. */
void end_tracing(void);

/* From here on only the system calls that the helper makes; 0 or -errno. */
int confine(void);

void verb_event(struct request *request);
void verb_trace(struct request *request);
void verb_look(struct request *request);
void verb_knob(struct request *request);
void verb_watch(struct request *request);
void verb_untrace(struct request *request);

#endif
