/* How nbstart names a preload library whose path LD_PRELOAD cannot hold: by a file that it leaves
 * open, which libnbstart.so closes again.
 */
#ifndef NB_OPEN_FILE_H
#define NB_OPEN_FILE_H

#define OPEN_FILE "/proc/self/fd/"

#endif
