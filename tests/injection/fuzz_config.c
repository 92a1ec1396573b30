/* libFuzzer on the reader of noise configs: whatever the text, it stays within the text and the
 * columns, and what it tells is consistent. */
#include "config_reader.h"

#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) \
    do {                  \
        if (!(condition)) \
            abort();      \
    } while (0)

static void check_places(const struct nb_config_lists *config, int64_t length)
{
    EXPECT(config->events >= 0 && config->events <= config->room);
    EXPECT(0 <= config->lists_begin && config->lists_begin < config->lists_end &&
           config->lists_end <= length);
    for (int i = 0; i < config->tails; i++)
        EXPECT(config->lists_begin < config->tail_begin[i] &&
               config->tail_begin[i] <= config->tail_end[i] &&
               config->tail_end[i] < config->lists_end);
    for (int i = 0; i < config->lists; i++)
        EXPECT(config->cpu[i] >= 0 && config->cpu[i] < 100000 &&
               config->first_event[i] >= (i ? config->first_event[i - 1] : 0) &&
               config->first_event[i] <= config->events);
}

static void check_events(const struct nb_config_lists *config)
{
    const int64_t highest = (int64_t)1 << 62;
    for (int64_t i = 0; i < config->events; i++)
        EXPECT(config->start_ns[i] >= 0 && config->start_ns[i] < highest &&
               config->duration_ns[i] >= 0 && config->duration_ns[i] < highest &&
               config->tail[i] >= 0 && config->tail[i] < config->tails);
}

/* The first byte says how much room there is: mostly enough. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct nb_config_lists config;
    if (size < 1)
        return 0;
    const int64_t length = (int64_t)size - 1, enough = length / NB_SHORTEST_EVENT + 1;
    config.room = data[0] < 32 ? data[0] : enough;
    config.start_ns = malloc((size_t)config.room * sizeof(int64_t));
    config.duration_ns = malloc((size_t)config.room * sizeof(int64_t));
    config.tail = malloc((size_t)config.room * sizeof(int32_t));
    /* of exactly this length, so that a byte beyond it is noticed */
    char *const text = malloc((size_t)length);
    memcpy(text, data + 1, (size_t)length);
    if (nb_read_config(text, length, &config) == 0) {
        check_places(&config, length);
        check_events(&config);
    }
    free(text);
    free(config.start_ns);
    free(config.duration_ns);
    free(config.tail);
    return 0;
}
