/* What the parts of the GOAL reader and writer share. */
#ifndef NB_GOAL_INTERNAL_H
#define NB_GOAL_INTERNAL_H

#include "goal.h"

enum { GOAL_LINE_LIMIT = 1 << 20 };

/* The binary: little endian, packed, offsets counted from byte GOAL_BASE; a pair of offsets a rank
 * follows the header. */
enum {
    GOAL_MAGIC = 4223,
    GOAL_INVALID_MAGIC = 2342,
    GOAL_BASE = 8,
    GOAL_HEADER = GOAL_BASE + 6,
    GOAL_PAIR = 16,
    GOAL_RECORD = 39
};
/* In a record: an operation's columns, and its lists of dependents (length, first entry). */
enum { AT_TYPE = 4, AT_PEER = 5, AT_SIZE = 9, AT_TAG = 17, AT_CPU = 21, AT_NIC = 22 };
enum { AT_DONE = 23, AT_BEGUN = 31 };

struct goal_word {
    const char *text;
    size_t length;
    uint64_t packed; /* the last eight characters */
};

struct goal_label {
    uint64_t key;
    int64_t text, line, operation; /* operation -1: not defined yet */
    uint32_t length;
};

struct goal_slot {
    uint32_t generation, id;
};

struct goal_labels {
    struct goal_slot *table;
    struct goal_label *label;
    char *text;
    int64_t slots, room, text_room, text_used;
    uint32_t generation, count;
};

/* A dependency of the rank being read: labels' ids, later numbers of operations. */
struct goal_need {
    uint32_t operation, needed;
    int64_t line;
    int32_t begun;
};

struct goal_reader {
    struct goal_columns columns;
    struct goal_error error;
    struct goal_labels labels;
    struct goal_need *need;
    int64_t needs, need_room;
    int32_t *scratch;
    int64_t scratch_room;
    char *carry;
    int64_t carried, carry_room;
    const char *at;
    int64_t line, comment_line, rank, rank_line, first;
    int32_t in_comment;
};

int goal_reserve(void **data, int64_t *room, int64_t wanted, size_t width);
int goal_push_slowly(struct goal_column *column, int64_t value);
int goal_push_same(struct goal_column *column, int64_t value, int64_t times);

static inline int goal_push(struct goal_column *column, int64_t value)
{
    if (column->varied && column->count < column->room && value <= column->limit) {
        if (column->width == 1)
            column->data[column->count++] = (uint8_t)value;
        else if (column->width == 4)
            ((int32_t *)column->data)[column->count++] = (int32_t)value;
        else
            ((int64_t *)column->data)[column->count++] = value;
        return GOAL_OK;
    }
    if (!column->varied && column->count && column->value == value) {
        column->count++;
        return GOAL_OK;
    }
    return goal_push_slowly(column, value);
}

int goal_label_id(struct goal_labels *labels, const struct goal_word *word, int64_t line,
                  uint32_t *id);
void goal_forget_labels(struct goal_labels *labels);
void goal_free_labels(struct goal_labels *labels);

int goal_read_line(struct goal_reader *reader, const char *line);
int goal_fail(struct goal_reader *reader, int problem, int64_t line, const char *word,
              size_t length);
int goal_fail_word(struct goal_reader *reader, int problem, const char *word);
int goal_close_columns(struct goal_reader *reader);
int goal_close_needs(struct goal_reader *reader, int64_t operations);

#endif
