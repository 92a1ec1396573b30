/* compiler.h: by what a program was built and which OpenMP runtime it uses, as words for its last
 * line. */
#ifndef NOISEBOOK_COMPILER_H
#define NOISEBOOK_COMPILER_H

#define NB_TEXT_(x) #x
#define NB_TEXT(x) NB_TEXT_(x)

#if defined(__clang__)
#define NB_COMPILER "clang-" NB_TEXT(__clang_major__) "." NB_TEXT(__clang_minor__)
#elif defined(__GNUC__)
#define NB_COMPILER "gcc-" NB_TEXT(__GNUC__) "." NB_TEXT(__GNUC_MINOR__)
#else
#define NB_COMPILER "unknown"
#endif

#endif
