/* options.h: long options of numbers with limits, for the OpenMP programs; a message and exit
 * status 2 for anything else. */
#ifndef NOISEBOOK_OPTIONS_H
#define NOISEBOOK_OPTIONS_H

#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NB_MOST_OPTIONS = 16 };

/* One of two kinds: a number between low and high (whole, or not), or, with words, one of the words
 * (its index is the value). */
struct nb_option {
    const char *name;
    double low, high, value;
    int fraction;
    const char *const *words;
};

/* By bits: with -ffast-math the compiler may take NaN and infinity for impossible, and any
 * comparison with them for true. */
static inline int nb_within(double value, double bound)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return ((bits >> 52) & 0x7ff) != 0x7ff && fabs(value) <= bound;
}

static inline int nb_usage(const char *program, const struct nb_option *options, const char *option,
                           const char *value)
{
    if (option)
        fprintf(stderr, "%s: '%s' does not fit %s\n", program, value, option);
    fprintf(stderr, "usage: %s", program);
    for (; options->name; options++) {
        fprintf(stderr, " [--%s ", options->name);
        if (!options->words)
            fprintf(stderr, "%.9g..%.10g", options->low, options->high);
        for (const char *const *word = options->words; word && *word; word++)
            fprintf(stderr, "%s%s", word == options->words ? "" : "|", *word);
        fputc(']', stderr);
    }
    fputc('\n', stderr);
    return 2;
}

static inline int nb_read_option(struct nb_option *option, const char *text)
{
    char *end = NULL;
    for (int i = 0; option->words && option->words[i]; i++)
        if (!strcmp(option->words[i], text)) {
            option->value = i;
            return 0;
        }
    if (option->words)
        return -1;
    double value = strtod(text, &end);
    if (end == text || *end || !nb_within(value, option->high) || value < option->low ||
        (!option->fraction && value != floor(value)))
        return -1;
    option->value = value;
    return 0;
}

/* Reads the command line into the table, which ends with an entry without a name; 0, or 2 after a
 * message. */
static inline int nb_parse_options(int count, char **words, struct nb_option *options)
{
    struct option names[NB_MOST_OPTIONS + 1];
    const char *program = strrchr(words[0], '/') ? strrchr(words[0], '/') + 1 : words[0];
    int index = 0, letter, known = 0;
    memset(names, 0, sizeof names);
    for (; options[known].name && known < NB_MOST_OPTIONS; known++)
        names[known] = (struct option){options[known].name, required_argument, NULL, 0};
    while ((letter = getopt_long(count, words, "", names, &index)) != -1) {
        if (letter != 0)
            return nb_usage(program, options, NULL, NULL);
        if (nb_read_option(&options[index], optarg))
            return nb_usage(program, options, options[index].name, optarg);
    }
    return optind < count ? nb_usage(program, options, "any option", words[optind]) : 0;
}

#endif
