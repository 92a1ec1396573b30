/* The reader of GOAL: takes pieces of a text, hands on whole lines, and looks at the end whether
 * all ranks were there. */
#include "goal_internal.h"

#include <stdlib.h>
#include <string.h>

static struct goal_column column_of(int32_t width, int64_t limit, int32_t varied)
{
    return (struct goal_column){.width = width, .limit = limit, .varied = varied};
}

struct goal_reader *nb_goal_open(void)
{
    struct goal_reader *reader = calloc(1, sizeof *reader);

    if (!reader)
        return NULL;
    reader->columns = (struct goal_columns){
        .rank = column_of(4, INT32_MAX, 1),
        .rank_line = column_of(8, INT64_MAX, 1),
        .operations = column_of(4, INT32_MAX, 1),
        .kind = column_of(1, UINT8_MAX, 1),
        .peer = column_of(4, INT32_MAX, 1),
        .size = column_of(4, UINT32_MAX, 0),
        .tag = column_of(4, INT32_MAX, 0),
        .cpu = column_of(1, UINT8_MAX, 0),
        .nic = column_of(1, UINT8_MAX, 0),
        .line = column_of(4, INT32_MAX, 1),
        .done_start = column_of(4, INT32_MAX, 0),
        .done_op = column_of(4, INT32_MAX, 1),
        .begun_start = column_of(4, INT32_MAX, 0),
        .begun_op = column_of(4, INT32_MAX, 1)
    };
    reader->rank = -1;
    reader->error.place = -1;
    reader->error.rank = -1;
    goal_forget_labels(&reader->labels);
    return reader;
}

static int read_lines(struct goal_reader *reader, const char *text, const char *end)
{
    while (text < end) {
        if (goal_read_line(reader, text))
            return reader->error.problem;
        if (reader->at - text > GOAL_LINE_LIMIT)
            return goal_fail_word(reader, GOAL_LONG_LINE, "");
        text = reader->at + 1;
    }
    return GOAL_OK;
}

static int carry(struct goal_reader *reader, const char *text, size_t length)
{
    if ((int64_t)length + reader->carried > GOAL_LINE_LIMIT + 1) {
        reader->line++;
        return goal_fail_word(reader, GOAL_LONG_LINE, "");
    }
    if (goal_reserve((void **)&reader->carry, &reader->carry_room,
                     reader->carried + (int64_t)length, 1))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    if (length)
        memcpy(reader->carry + reader->carried, text, length);
    reader->carried += (int64_t)length;
    return GOAL_OK;
}

static int read_carried(struct goal_reader *reader)
{
    int64_t length = reader->carried;

    reader->carried = 0;
    return read_lines(reader, reader->carry, reader->carry + length);
}

int nb_goal_feed(struct goal_reader *reader, const char *text, size_t length)
{
    const char *end = text + length, *rest = end;
    const char *newline = length ? memchr(text, '\n', length) : NULL;

    if (reader->error.problem)
        return reader->error.problem;
    if (newline && reader->carried) {
        if (carry(reader, text, (size_t)(newline + 1 - text)) || read_carried(reader))
            return reader->error.problem;
        text = newline + 1;
    }
    while (newline && rest > text && rest[-1] != '\n')
        rest--;
    rest = newline ? rest : text;
    return read_lines(reader, text, rest) ? reader->error.problem
                                          : carry(reader, rest, (size_t)(end - rest));
}

static int check_blocks(struct goal_reader *reader)
{
    const struct goal_columns *columns = &reader->columns;
    int64_t count = columns->rank.count,
            bound = columns->ranks <= count ? columns->ranks : count + 1;
    int64_t *line_of = calloc((size_t)bound, sizeof *line_of);
    int problem = GOAL_OK;

    if (!line_of)
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    for (int64_t block = 0; block < count && !problem; block++) {
        int64_t rank = nb_goal_value(&columns->rank, block),
                line = nb_goal_value(&columns->rank_line, block);

        if (rank < bound && line_of[rank]) {
            reader->rank = rank;
            reader->error.place = line_of[rank];
            problem = goal_fail(reader, GOAL_RANK_TWICE, line, "", 0);
        } else if (rank < bound) {
            line_of[rank] = line;
        }
    }
    for (int64_t rank = 0; rank < bound && !problem; rank++)
        if (!line_of[rank]) {
            reader->rank = rank;
            problem = goal_fail(reader, GOAL_RANK_MISSING, 0, "", 0);
        }
    free(line_of);
    return problem;
}

int goal_close_columns(struct goal_reader *reader)
{
    struct goal_columns *columns = &reader->columns;

    if (goal_push(&columns->done_start, columns->done_op.count) ||
        goal_push(&columns->begun_start, columns->begun_op.count))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    return GOAL_OK;
}

int nb_goal_finish(struct goal_reader *reader)
{
    if (!reader->error.problem && reader->carried && !carry(reader, "\n", 1))
        read_carried(reader);
    if (reader->error.problem)
        return reader->error.problem;
    if (reader->in_comment)
        return goal_fail(reader, GOAL_OPEN_COMMENT, reader->comment_line, "", 0);
    if (reader->rank >= 0)
        return goal_fail(reader, GOAL_OPEN_RANK, reader->rank_line, "", 0);
    if (!reader->columns.ranks)
        return goal_fail_word(reader, GOAL_NO_NUM_RANKS, "the end of the file");
    return check_blocks(reader) ? reader->error.problem : goal_close_columns(reader);
}

struct goal_columns *nb_goal_columns(struct goal_reader *reader)
{
    return &reader->columns;
}

const struct goal_error *nb_goal_error(const struct goal_reader *reader)
{
    return &reader->error;
}

static void free_columns(struct goal_columns *columns)
{
    struct goal_column *all[] = {&columns->rank,        &columns->rank_line,  &columns->operations,
                                 &columns->kind,        &columns->peer,       &columns->size,
                                 &columns->tag,         &columns->cpu,        &columns->nic,
                                 &columns->line,        &columns->done_start, &columns->done_op,
                                 &columns->begun_start, &columns->begun_op};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
}

void nb_goal_close(struct goal_reader *reader)
{
    if (!reader)
        return;
    free_columns(&reader->columns);
    goal_free_labels(&reader->labels);
    free(reader->need);
    free(reader->scratch);
    free(reader->carry);
    free(reader);
}
