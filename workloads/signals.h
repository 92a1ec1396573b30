/* signals.h: a signal that a program does not notice, for libnbspeed.so. */
#ifndef NB_SIGNALS_H
#define NB_SIGNALS_H

#include <signal.h>
#include <ucontext.h>

#include "noisebook.h"

/* What a timer of ours carries: any other signal of this number is the program's. */
extern char nb_signal_token;

/* Takes a signal that nobody uses; `handler` is called for those that carry the token. Returns its
 * number; 0: there is none. */
int nb_signal_take(void (*handler)(const ucontext_t *context));

/* The program needs the signal, or forbids system calls: no further one may be sent, and no system
 * call made. */
int nb_signal_yielded(void);

/* The least size of an alternative stack on which our handler can run. */
size_t nb_signal_stack(void);

/* Whether the program believes that the calling thread blocks the signal: threads inherit it. */
int nb_signal_hidden(void);
void nb_signal_hide(int from_program);

/* To be provided: sampling ends in this thread, or in all of them. */
void nb_signal_leave_thread(void);
void nb_signal_left(void);

#endif
