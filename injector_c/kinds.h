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

#define NB_DUTY 1        /* share of the CPU's time: busy, asleep, busy, ... */
#define NB_MEMORY_READ 2 /* bytes/s */
/* bytes/s, through the caches: each line is read before it is written */
#define NB_MEMORY_WRITE 3
#define NB_MEMORY_STREAM 4 /* bytes/s, past the caches where the machine can */
/* bytes/s of lines made dirty, in a working set of that cache's size */
#define NB_CACHE_L1 5
#define NB_CACHE_L2 6
#define NB_CACHE_L3 7
/* bytes: taken as fast as possible, held, given back at the end */
#define NB_MEMORY_HOLD 8
#define NB_MEMORY_LEAK 9  /* bytes/s: grows, given back at the end */
#define NB_IO_READ 10     /* bytes/s, past the page cache */
#define NB_IO_WRITE 11    /* bytes/s, past the page cache */
#define NB_IO_SYNC 12     /* bytes/s, through the page cache and forced to the disk */
#define NB_IO_METADATA 13 /* operations/s: create, stat, unlink, ... */
#define NB_NETWORK 14     /* bytes/s of UDP payload */
#define NB_TIMER 15       /* timer interrupts/s, without a process that wakes */
#define NB_IPI 16         /* function call interrupts/s from another CPU */
#define NB_TLB 17         /* TLB shootdowns/s from another CPU */
/* forced migrations/s: the stopper thread and a rescheduling interrupt each */
#define NB_MIGRATE 18
#define NB_KIND_COUNT 19

#define NB_PATH_BYTES 4096

struct nb_kind_options { /* of an injection; limits are for each lane, and enforced in C */
    /* scratch folder, made for this injection and removed with it; empty: none */
    char folder[NB_PATH_BYTES];
    int64_t memory_bytes;   /* that a lane may hold */
    int64_t file_bytes;     /* size of a lane's file */
    int64_t cache_bytes[3]; /* of L1, L2, L3; 0: the machine has none */
    uint8_t address[16];    /* of the network noise's target, network byte order */
    int32_t family;         /* 4, 6; 0: loopback, received again by the lane itself */
    int32_t port;
};
#endif
