/* Kinds of noise beyond occupying a CPU: what an event may do with memory, caches, files, the
 * network and interrupts.
 *
 * cffi reads this file too: nothing but declarations and numbers. Each kind has an intensity, in a
 * unit of its own; what was achieved is counted while it is done (bytes moved, operations that
 * succeeded, timers that expired) and logged with it.
 */
#ifndef NB_KINDS_H
#define NB_KINDS_H
#include <stdint.h>

#define NB_DUTY 1          /* share of the CPU's time: busy, asleep, busy, ... */
#define NB_MEMORY_STREAM 4 /* bytes/s, past the caches where the machine can */
#define NB_CACHE_L3 7      /* bytes/s of lines made dirty, in a working set of that cache's size */
#define NB_IO_READ 10      /* bytes/s, past the page cache */
#define NB_IO_SYNC 12      /* bytes/s, through the page cache and forced to the disk */
#define NB_IO_METADATA 13  /* operations/s: create, stat, unlink, ... */
#define NB_NETWORK 14      /* bytes/s of UDP payload over the loopback device */
#define NB_TIMER 15        /* timer interrupts/s, without a process that wakes */
#define NB_IPI 16          /* function call interrupts/s from another CPU */
#define NB_KIND_COUNT 17   /* not all codes below are in use */

#define NB_PATH_BYTES 4096

struct nb_kind_options { /* of an injection; limits are for each lane, and enforced in C */
    /* scratch folder, made for this injection and removed with it; empty: none */
    char folder[NB_PATH_BYTES];
    int64_t memory_bytes; /* that a lane may hold */
    int64_t file_bytes;   /* size of a lane's file */
    int64_t cache_bytes;  /* of L3; 0: the machine has none */
};
#endif
