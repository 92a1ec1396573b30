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

/* --- the labels that are stored: none, as long as all are l1, l2, ... ---------------------------
 */

/* "l7" is what the seventh operation of a rank is called anyway. */
static int is_usual(const struct goal_word *label, int64_t number)
{
    int64_t read = 0;

    if (label->length < 2 || label->length > 18 || label->text[0] != 'l' || label->text[1] == '0')
        return 0;
    for (size_t i = 1; i < label->length; i++) {
        if (label->text[i] < '0' || label->text[i] > '9')
            return 0;
        read = read * 10 + (label->text[i] - '0');
    }
    return read == number;
}

static int store_label(struct goal_reader *reader, const char *text, size_t length)
{
    struct goal_column *blob = &reader->columns.label_text;

    if (goal_push(&reader->columns.label_start, blob->count) ||
        goal_reserve((void **)&blob->data, &blob->room, blob->count + (int64_t)length, 1))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    if (length)
        memcpy(blob->data + blob->count, text, length);
    blob->count += (int64_t)length;
    return GOAL_OK;
}

static size_t usual_label(int64_t number, char *text)
{
    char digits[20];
    size_t length = 0, used = 1;

    for (; number; number /= 10)
        digits[length++] = (char)('0' + number % 10);
    text[0] = 'l';
    while (length)
        text[used++] = digits[--length];
    return used;
}

/* The first label that is not the usual one: from now on labels are stored, and those so far are
 * written down. */
static int begin_labels(struct goal_reader *reader)
{
    struct goal_columns *columns = &reader->columns;
    int64_t before = 0;
    char text[24];
    int problem = GOAL_OK;

    reader->own_labels = 1;
    for (int64_t block = 0; block <= columns->operations.count && !problem; block++) {
        /* of the rank being read, but for the operation just stored */
        int64_t last = columns->kind.count - 1 - before;
        int64_t count = block < columns->operations.count
                            ? nb_goal_value(&columns->operations, block)
                            : last;

        for (int64_t i = 0; i < count && !problem; i++)
            problem = store_label(reader, text, usual_label(i + 1, text));
        before += count;
    }
    return problem;
}

int goal_name_operation(struct goal_reader *reader, const struct goal_word *label)
{
    int usual = is_usual(label, reader->columns.kind.count - reader->first);

    if (!reader->own_labels && !usual && begin_labels(reader))
        return reader->error.problem;
    return reader->own_labels ? store_label(reader, label->text, label->length) : GOAL_OK;
}
