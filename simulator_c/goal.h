/* GOAL schedules: text, and the binary of the reference simulator.
 * A reader is fed pieces of a text of any length and keeps nothing of it but the columns of the
 * schedule and the labels of the rank it is in. A function that returns int returns 0 or a
 * goal_problem, which nb_goal_error explains.
 */
#ifndef NB_GOAL_H
#define NB_GOAL_H

#include <stddef.h>
#include <stdint.h>

enum goal_problem {
    GOAL_OK,
    GOAL_NO_MEMORY,
    GOAL_NO_NUM_RANKS,
    GOAL_TWO_NUM_RANKS,
    GOAL_NO_RANKS,
    GOAL_RANK_RANGE,
    GOAL_RANK_TWICE,
    GOAL_RANK_MISSING,
    GOAL_OUTSIDE_RANK,
    GOAL_INSIDE_RANK,
    GOAL_UNEXPECTED,
    GOAL_NOT_A_NUMBER,
    GOAL_NEGATIVE,
    GOAL_OVERFLOW,
    GOAL_PEER_RANGE,
    GOAL_OPTION_TWICE,
    GOAL_OPTION_OF_CALC,
    GOAL_LABEL_TWICE,
    GOAL_LABEL_UNKNOWN,
    GOAL_LABEL_KEYWORD,
    GOAL_NEEDS_ITSELF,
    GOAL_CYCLE,
    GOAL_OPEN_RANK,
    GOAL_OPEN_COMMENT,
    GOAL_TOO_MANY,
    GOAL_SHORT,
    GOAL_DAMAGED,
    GOAL_LONG_LINE,
    GOAL_INVALIDATED
};

struct goal_error {
    int32_t problem;
    int64_t line;  /* of a text; 0: none */
    int64_t rank;  /* -1: none */
    int64_t place; /* operation, or byte of a binary; -1: none */
    char word[64]; /* what was found, or what was expected */
};

/* A column of `count` numbers of `width` bytes; as long as all are `value`, none is stored. */
struct goal_column {
    uint8_t *data;
    int64_t count, room;
    int64_t value, limit;
    int32_t width, varied;
};

/* What a schedule consists of, in the order of the file; `rank` and `operations` have an entry a
 * rank block. */
struct goal_columns {
    int64_t ranks;
    struct goal_column rank, rank_line, operations;
    struct goal_column kind, peer, size, tag, cpu, nic, line;
    struct goal_column done_start, done_op, begun_start, begun_op;
};

struct goal_reader;

struct goal_reader *nb_goal_open(void);
int nb_goal_feed(struct goal_reader *reader, const char *text, size_t length);
int nb_goal_finish(struct goal_reader *reader);
int nb_goal_read_binary(struct goal_reader *reader, const uint8_t *data, size_t length);
struct goal_columns *nb_goal_columns(struct goal_reader *reader);
const struct goal_error *nb_goal_error(const struct goal_reader *reader);
int64_t nb_goal_value(const struct goal_column *column, int64_t entry);
void *nb_goal_take(struct goal_column *column);
void nb_goal_release(void *data);
void nb_goal_close(struct goal_reader *reader);

#endif
