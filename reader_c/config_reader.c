/* Reads the lists of events of a noise config: a cursor over the text, and a function a piece of the grammar.
 *
 * Each function moves the cursor behind its piece, or tells false. Nothing is read beyond the end: the text needs no closing zero.
 */
#include "config_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { PROBES = 64 };

struct cursor {
    const char *begin, *at, *end;
};

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

static bool is_next(const struct cursor *c, char wanted)
{
    return c->at < c->end && *c->at == wanted;
}

static bool is_digit(const struct cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

/* The character, and the space around it. */
static bool take(struct cursor *c, char wanted)
{
    skip_space(c);
    if (!is_next(c, wanted))
        return false;
    c->at++;
    skip_space(c);
    return true;
}

/* Below 2^62, without leading zeros. */
static bool take_digits(struct cursor *c, int64_t *value)
{
    const char *const first = c->at;
    uint64_t number = 0;
    while (is_digit(c) && c->at - first < 19)
        number = number * 10 + (uint64_t)(*c->at++ - '0');
    *value = (int64_t)number;
    return c->at > first && !is_digit(c) && (*first != '0' || c->at - first == 1) && number < (uint64_t)1 << 62;
}

/* A fraction of zeros only is one that every reader takes for the same number, below 2^53. */
static bool take_time(struct cursor *c, int64_t *value, int32_t *fractions)
{
    if (!take_digits(c, value))
        return false;
    if (!is_next(c, '.'))
        return true;
    const char *const point = c->at++;
    while (is_next(c, '0'))
        c->at++;
    *fractions = 1;
    return c->at > point + 1 && !is_digit(c) && *value < (int64_t)1 << 53;
}

/* From one quotation mark to behind the other. */
static bool skip_string(struct cursor *c)
{
    if (!is_next(c, '"'))
        return false;
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++)
        if (*c->at == '\\' && c->end - c->at > 1)
            c->at++;
    if (c->at == c->end)
        return false;
    c->at++;
    return true;
}

/* To the comma or the bracket that ends a value, without looking what it is. */
static bool skip_value(struct cursor *c)
{
    for (int64_t depth = 0; c->at < c->end;) {
        const char now = *c->at;
        if (depth == 0 && (now == ',' || now == '}' || now == ']'))
            return true;
        if (now == '"' && !skip_string(c))
            return false;
        if (now == '"')
            continue;
        depth += (now == '[' || now == '{') - (now == ']' || now == '}');
        c->at++;
    }
    return false;
}

static uint64_t hash_of(const char *text, ptrdiff_t length)
{
    uint64_t hash = (uint64_t)length, word = 0;
    for (; length >= 8; length -= 8, text += 8) {
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, text, (size_t)length);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* The place of a tail among those that were met, or -1 when there are too many. */
static int32_t place_of_tail(struct nb_config_lists *config, const struct cursor *c, const char *first)
{
    const ptrdiff_t length = c->at - first;
    uint64_t slot = hash_of(first, length);
    for (int probe = 0; probe < PROBES; probe++, slot++) {
        int32_t *const found = &config->slots[slot % NB_TAIL_SLOTS];
        const int32_t place = *found - 1;
        if (place < 0) {
            if (config->tails == NB_TAILS)
                return -1;
            config->tail_begin[config->tails] = first - c->begin;
            config->tail_end[config->tails] = c->at - c->begin;
            *found = ++config->tails;
            return *found - 1;
        }
        if (config->tail_end[place] - config->tail_begin[place] == length &&
            memcmp(c->begin + config->tail_begin[place], first, (size_t)length) == 0)
            return place;
    }
    return -1;
}

/* To the bracket that ends the event; another one in it, outside of a string, is none of an event's. */
static bool skip_tail(struct cursor *c)
{
    while (c->at < c->end && *c->at != ']') {
        if (*c->at == '[' || *c->at == '{' || *c->at == '}')
            return false;
        if (*c->at != '"')
            c->at++;
        else if (!skip_string(c))
            return false;
    }
    return c->at < c->end;
}

static bool read_event(struct cursor *c, struct nb_config_lists *config)
{
    const int64_t i = config->events;
    if (i >= config->room || !take(c, '[') || !take_time(c, &config->start_ns[i], &config->fractions) || !take(c, ',') ||
        !take_time(c, &config->duration_ns[i], &config->fractions) || !take(c, ','))
        return false;
    const char *const first = c->at;
    if (!skip_tail(c))
        return false;
    config->tail[i] = place_of_tail(config, c, first);
    config->events++;
    return config->tail[i] >= 0 && take(c, ']');
}

static bool read_events(struct cursor *c, struct nb_config_lists *config)
{
    if (!take(c, '['))
        return false;
    if (take(c, ']'))
        return true;
    do {
        if (!read_event(c, config))
            return false;
    } while (take(c, ','));
    return take(c, ']');
}

static bool read_list(struct cursor *c, struct nb_config_lists *config)
{
    int64_t cpu;
    if (config->lists == NB_LISTS || !is_next(c, '"'))
        return false;
    c->at++;
    if (!take_digits(c, &cpu) || cpu > 99999 || !is_next(c, '"'))
        return false;
    c->at++;
    config->cpu[config->lists] = (int32_t)cpu;
    config->first_event[config->lists++] = config->events;
    return take(c, ':') && read_events(c, config);
}

static bool read_lists(struct cursor *c, struct nb_config_lists *config)
{
    config->lists_begin = c->at - c->begin;
    if (!take(c, '{'))
        return false;
    do {
        if (!read_list(c, config))
            return false;
    } while (take(c, ','));
    if (!is_next(c, '}'))
        return false;
    config->lists_end = ++c->at - c->begin;
    return true;
}

/* A field of the document; of the field "cpus" the lists. */
static bool read_field(struct cursor *c, struct nb_config_lists *config)
{
    static const char name[] = {'"', 'c', 'p', 'u', 's', '"'};
    const char *const first = c->at;
    if (!skip_string(c))
        return false;
    const bool here = c->at - first == sizeof name && memcmp(first, name, sizeof name) == 0;
    if (!take(c, ':') || (here && config->lists_end))
        return false;
    return here ? read_lists(c, config) : skip_value(c);
}

static bool read_document(struct cursor *c, struct nb_config_lists *config)
{
    skip_space(c);
    const struct cursor start = *c;
    if (!take(c, '{') || !is_next(c, '"'))
        return false;
    config->whole_text = c->end - c->at > 1 && c->at[1] >= '0' && c->at[1] <= '9';
    if (config->whole_text) {
        *c = start;
        return read_lists(c, config);
    }
    do {
        if (!read_field(c, config))
            return false;
    } while (take(c, ','));
    return take(c, '}') && config->lists_end > 0;
}

int nb_read_config(const char *text, int64_t length, struct nb_config_lists *config)
{
    struct cursor c = {text, text, text + length};
    config->events = config->lists_begin = config->lists_end = 0;
    config->whole_text = config->fractions = config->lists = config->tails = 0;
    memset(config->slots, 0, sizeof config->slots);
    if (!read_document(&c, config))
        return -1;
    skip_space(&c);
    return c.at == c.end ? 0 : -1;
}
