/* The labels of one rank: a hash table that forgets everything at the next rank without being
 * cleared. */
#include "goal_internal.h"

#include <stdlib.h>
#include <string.h>

static uint64_t scramble(uint64_t key)
{
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 29;
}

/* Words of up to eight characters are their own key; longer ones are hashed and compared. */
static uint64_t key_of(const struct goal_word *word)
{
    uint64_t key = 0xCBF29CE484222325u;

    if (word->length <= 8)
        return word->packed;
    for (size_t i = 0; i < word->length; i++)
        key = (key ^ (unsigned char)word->text[i]) * 0x100000001B3u;
    return key;
}

static int same(const struct goal_labels *labels, const struct goal_label *label, uint64_t key,
                const struct goal_word *word)
{
    return label->key == key && label->length == word->length &&
           (word->length <= 8 || !memcmp(labels->text + label->text, word->text, word->length));
}

static int grow_table(struct goal_labels *labels)
{
    uint64_t slots = labels->slots ? labels->slots * 2 : 1024;
    struct goal_slot *table = calloc(slots, sizeof *table);

    if (!table)
        return GOAL_NO_MEMORY;
    labels->generation = 1;
    for (uint32_t id = 0; id < labels->count; id++) {
        uint64_t at = scramble(labels->label[id].key) & (slots - 1);

        while (table[at].generation)
            at = (at + 1) & (slots - 1);
        table[at] = (struct goal_slot){1, id};
    }
    free(labels->table);
    labels->table = table;
    labels->slots = slots;
    return GOAL_OK;
}

static int keep_text(struct goal_labels *labels, const struct goal_word *word)
{
    if (goal_reserve((void **)&labels->text, &labels->text_room, labels->text_used + word->length,
                     1))
        return GOAL_NO_MEMORY;
    memcpy(labels->text + labels->text_used, word->text, word->length);
    labels->text_used += word->length;
    return GOAL_OK;
}

static int add(struct goal_labels *labels, uint64_t key, const struct goal_word *word, int64_t line)
{
    if (labels->count == INT32_MAX)
        return GOAL_TOO_MANY;
    if (goal_reserve((void **)&labels->label, &labels->room, labels->count + 1u,
                     sizeof *labels->label))
        return GOAL_NO_MEMORY;
    labels->label[labels->count++] = (struct goal_label){
        key, labels->text_used, line, -1, (uint32_t)word->length
    };
    return keep_text(labels, word);
}

int goal_label_id(struct goal_labels *labels, const struct goal_word *word, int64_t line,
                  uint32_t *id)
{
    uint64_t key = key_of(word), at;
    int problem;

    if (labels->count * 2u >= labels->slots && (problem = grow_table(labels)))
        return problem;
    at = scramble(key) & (labels->slots - 1);
    while (labels->table[at].generation == labels->generation) {
        if (same(labels, &labels->label[labels->table[at].id], key, word)) {
            *id = labels->table[at].id;
            return GOAL_OK;
        }
        at = (at + 1) & (labels->slots - 1);
    }
    *id = labels->count;
    labels->table[at] = (struct goal_slot){labels->generation, *id};
    return add(labels, key, word, line);
}

void goal_forget_labels(struct goal_labels *labels)
{
    labels->count = 0;
    labels->text_used = 0;
    if (++labels->generation)
        return;
    labels->generation = 1;
    if (labels->table)
        memset(labels->table, 0, labels->slots * sizeof *labels->table);
}

void goal_free_labels(struct goal_labels *labels)
{
    free(labels->table);
    free(labels->label);
    free(labels->text);
}
