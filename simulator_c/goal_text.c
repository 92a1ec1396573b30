/* GOAL text: words, numbers, statements, rank blocks. Every line ends with a newline here, which
 * stops all scanning. */
#include "goal_internal.h"

#include <string.h>

#define IS(word, known) \
    ((word).length == sizeof(known) - 1 && !memcmp((word).text, known, sizeof(known) - 1))

enum { DIGIT = 1, LETTER = 2 };

static const uint8_t CLASS[256] = {
    ['0' ... '9'] = DIGIT, ['a' ... 'z'] = LETTER, ['A' ... 'Z'] = LETTER, ['_'] = LETTER
};

static int class_of(char c)
{
    return CLASS[(unsigned char)c];
}

int goal_fail(struct goal_reader *reader, int problem, int64_t line, const char *word,
              size_t length)
{
    struct goal_error *error = &reader->error;

    if (length >= sizeof error->word)
        length = sizeof error->word - 1;
    memcpy(error->word, word, length);
    error->word[length] = 0;
    error->problem = problem;
    error->line = line;
    error->rank = reader->rank;
    return problem;
}

int goal_fail_word(struct goal_reader *reader, int problem, const char *word)
{
    return goal_fail(reader, problem, reader->line, word, strlen(word));
}

/* The problem with whatever stands here, which is quoted up to the next blank. */
static int fail_here(struct goal_reader *reader, int problem)
{
    const char *end = reader->at;

    while (*end != '\n' && *end != ' ' && *end != '\t' && *end != '\r')
        end++;
    return end > reader->at
               ? goal_fail(reader, problem, reader->line, reader->at, (size_t)(end - reader->at))
               : goal_fail_word(reader, problem, "the end of the line");
}

static void leave_comment(struct goal_reader *reader)
{
    const char *at = reader->at;

    while (*at != '\n' && !(at[0] == '*' && at[1] == '/'))
        at++;
    reader->in_comment = *at == '\n';
    reader->at = reader->in_comment ? at : at + 2;
}

static void skip_blanks(struct goal_reader *reader)
{
    for (;;) {
        while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r')
            reader->at++;
        if (reader->at[0] != '/' || (reader->at[1] != '/' && reader->at[1] != '*'))
            return;
        if (reader->at[1] == '/') {
            while (*reader->at != '\n')
                reader->at++;
            return;
        }
        reader->comment_line = reader->line;
        reader->at += 2;
        leave_comment(reader);
    }
}

static int read_word(struct goal_reader *reader, struct goal_word *word)
{
    const char *at;

    skip_blanks(reader);
    at = reader->at;
    *word = (struct goal_word){at, 0, 0};
    if (class_of(*at) != LETTER)
        return fail_here(reader, GOAL_UNEXPECTED);
    for (; class_of(*at); at++)
        word->packed = word->packed << 8 | (unsigned char)*at;
    word->length = (size_t)(at - word->text);
    reader->at = at;
    return GOAL_OK;
}

/* A number from 0 to `limit`, or -1 for any where `any` allows it. */
static int read_number(struct goal_reader *reader, int64_t limit, int any, int64_t *number)
{
    const char *at;
    uint64_t value = 0;

    skip_blanks(reader);
    at = reader->at;
    if (*at == '-') {
        if (!any || at[1] != '1' || class_of(at[2]))
            return fail_here(reader, class_of(at[1]) == DIGIT ? GOAL_NEGATIVE : GOAL_NOT_A_NUMBER);
        *number = -1;
        reader->at = at + 2;
        return GOAL_OK;
    }
    if (class_of(*at) != DIGIT)
        return fail_here(reader, GOAL_NOT_A_NUMBER);
    for (; class_of(*at) == DIGIT; at++) {
        uint64_t digit = (uint64_t)(*at - '0');

        if (value > ((uint64_t)limit - digit) / 10)
            return fail_here(reader, GOAL_OVERFLOW);
        value = value * 10 + digit;
    }
    *number = (int64_t)value;
    reader->at = at;
    return GOAL_OK;
}

static int expect(struct goal_reader *reader, const char *wanted)
{
    size_t length = strlen(wanted);

    skip_blanks(reader);
    for (size_t i = 0; i < length; i++)
        if (reader->at[i] != wanted[i])
            return fail_here(reader, GOAL_UNEXPECTED);
    if (class_of(wanted[0]) && class_of(reader->at[length]))
        return fail_here(reader, GOAL_UNEXPECTED);
    reader->at += length;
    return GOAL_OK;
}

static int end_statement(struct goal_reader *reader)
{
    skip_blanks(reader);
    return *reader->at == '\n' || *reader->at == '}' ? GOAL_OK : fail_here(reader, GOAL_UNEXPECTED);
}

struct statement {
    int64_t kind, peer, size, tag, cpu, nic;
};

static int read_option(struct goal_reader *reader, struct statement *statement, int *seen)
{
    struct goal_word word;
    int which;

    if (read_word(reader, &word))
        return reader->error.problem;
    which = IS(word, "tag") ? 1 : IS(word, "cpu") ? 2 : IS(word, "nic") ? 4 : 0;
    if (!which)
        return goal_fail(reader, GOAL_UNEXPECTED, reader->line, word.text, word.length);
    if (*seen & which)
        return goal_fail(reader, GOAL_OPTION_TWICE, reader->line, word.text, word.length);
    if (statement->kind == 3 && which != 2)
        return goal_fail(reader, GOAL_OPTION_OF_CALC, reader->line, word.text, word.length);
    *seen |= which;
    if (which == 1)
        return read_number(reader, INT64_MAX, statement->kind == 2, &statement->tag);
    return which == 2 ? read_number(reader, INT32_MAX, 0, &statement->cpu)
                      : read_number(reader, UINT8_MAX, 0, &statement->nic);
}

static int read_statement(struct goal_reader *reader, struct statement *statement)
{
    int problem = read_number(reader, INT64_MAX, 0, &statement->size), seen = 0;

    if (!problem && statement->kind != 3) {
        problem = expect(reader, "b");
        if (!problem)
            problem = expect(reader, statement->kind == 1 ? "to" : "from");
        if (!problem)
            problem = read_number(reader, INT32_MAX, statement->kind == 2, &statement->peer);
        if (!problem && statement->peer >= reader->columns.ranks)
            problem = goal_fail_word(reader, GOAL_PEER_RANGE, "");
        if (problem == GOAL_PEER_RANGE)
            reader->error.place = statement->peer;
    }
    for (skip_blanks(reader); !problem && class_of(*reader->at) == LETTER; skip_blanks(reader))
        problem = read_option(reader, statement, &seen);
    return problem ? problem : end_statement(reader);
}

static int store(struct goal_reader *reader, const struct statement *statement)
{
    struct goal_columns *columns = &reader->columns;

    if (goal_push(&columns->kind, statement->kind) || goal_push(&columns->peer, statement->peer) ||
        goal_push(&columns->size, statement->size) || goal_push(&columns->tag, statement->tag) ||
        goal_push(&columns->cpu, statement->cpu) || goal_push(&columns->nic, statement->nic) ||
        goal_push(&columns->line, reader->line <= INT32_MAX ? reader->line : 0))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    return GOAL_OK;
}

static int define_label(struct goal_reader *reader, const struct goal_word *label)
{
    int64_t number = reader->columns.kind.count - reader->first;
    struct goal_label *known;
    uint32_t id;
    int problem;

    if (IS(*label, "send") || IS(*label, "recv") || IS(*label, "calc") || IS(*label, "rank"))
        return goal_fail(reader, GOAL_LABEL_KEYWORD, reader->line, label->text, label->length);
    problem = goal_label_id(&reader->labels, label, reader->line, &id);
    if (problem)
        return goal_fail_word(reader, problem, "labels of one rank");
    known = &reader->labels.label[id];
    if (known->operation >= 0) {
        reader->error.place = known->line;
        return goal_fail(reader, GOAL_LABEL_TWICE, reader->line, label->text, label->length);
    }
    known->operation = number;
    known->line = reader->line;
    return GOAL_OK;
}

static int read_operation(struct goal_reader *reader, const struct goal_word *label,
                          const struct goal_word *word)
{
    struct statement statement = {
        IS(*word, "send") ? 1 : IS(*word, "recv") ? 2 : IS(*word, "calc") ? 3 : 0, 0, 0, 0, 0, 0
    };

    if (!statement.kind)
        return goal_fail(reader, GOAL_UNEXPECTED, reader->line, word->text, word->length);
    if (label->length && define_label(reader, label))
        return reader->error.problem;
    return read_statement(reader, &statement) ? reader->error.problem : store(reader, &statement);
}

static int read_need(struct goal_reader *reader, const struct goal_word *operation, int begun)
{
    struct goal_need need = {0, 0, reader->line, begun};
    struct goal_word needed;
    int problem = read_word(reader, &needed);

    if (problem)
        return problem;
    if ((problem = goal_label_id(&reader->labels, operation, reader->line, &need.operation)) ||
        (problem = goal_label_id(&reader->labels, &needed, reader->line, &need.needed)))
        return goal_fail_word(reader, problem, "labels of one rank");
    if (need.operation == need.needed)
        return goal_fail(reader, GOAL_NEEDS_ITSELF, reader->line, needed.text, needed.length);
    if (goal_reserve((void **)&reader->need, &reader->need_room, reader->needs + 1,
                     sizeof *reader->need))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    reader->need[reader->needs++] = need;
    return end_statement(reader);
}

static int open_rank(struct goal_reader *reader)
{
    int64_t rank;

    if (reader->rank >= 0)
        return goal_fail(reader, GOAL_INSIDE_RANK, reader->line, "", 0);
    if (!reader->columns.ranks)
        return goal_fail_word(reader, GOAL_NO_NUM_RANKS, "rank");
    if (read_number(reader, INT32_MAX, 0, &rank))
        return reader->error.problem;
    if (rank >= reader->columns.ranks) {
        reader->error.place = rank;
        return goal_fail_word(reader, GOAL_RANK_RANGE, "");
    }
    if (goal_push(&reader->columns.rank, rank) ||
        goal_push(&reader->columns.rank_line, reader->line))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    reader->rank = rank;
    reader->first = reader->columns.kind.count;
    reader->rank_line = reader->line;
    return expect(reader, "{");
}

static int close_rank(struct goal_reader *reader)
{
    int64_t operations = reader->columns.kind.count - reader->first;

    if (reader->rank < 0)
        return goal_fail_word(reader, GOAL_OUTSIDE_RANK, "}");
    reader->at++;
    for (uint32_t id = 0; id < reader->labels.count; id++) {
        struct goal_label *label = &reader->labels.label[id];

        if (label->operation < 0)
            return goal_fail(reader, GOAL_LABEL_UNKNOWN, label->line,
                             reader->labels.text + label->text, label->length);
    }
    for (int64_t i = 0; i < reader->needs; i++) {
        reader->need[i].operation = (uint32_t)reader->labels.label[reader->need[i].operation]
                                        .operation;
        reader->need[i].needed = (uint32_t)reader->labels.label[reader->need[i].needed].operation;
    }
    if (goal_close_needs(reader, operations))
        return reader->error.problem;
    if (goal_push(&reader->columns.operations, operations))
        return goal_fail(reader, GOAL_NO_MEMORY, 0, "", 0);
    goal_forget_labels(&reader->labels);
    reader->needs = 0;
    reader->rank = -1;
    return GOAL_OK;
}

static int read_num_ranks(struct goal_reader *reader)
{
    if (reader->columns.ranks)
        return goal_fail_word(reader, GOAL_TWO_NUM_RANKS, "num_ranks");
    if (read_number(reader, INT32_MAX, 0, &reader->columns.ranks))
        return reader->error.problem;
    if (!reader->columns.ranks)
        return goal_fail_word(reader, GOAL_NO_RANKS, "0");
    return end_statement(reader);
}

static int read_inside(struct goal_reader *reader, const struct goal_word *word)
{
    struct goal_word none = {word->text, 0, 0}, next;

    skip_blanks(reader);
    if (*reader->at == ':') {
        reader->at++;
        return read_word(reader, &next) ? reader->error.problem
                                        : read_operation(reader, word, &next);
    }
    if (IS(*word, "send") || IS(*word, "recv") || IS(*word, "calc"))
        return read_operation(reader, &none, word);
    if (IS(*word, "rank"))
        return open_rank(reader);
    if (read_word(reader, &next))
        return reader->error.problem;
    if (!IS(next, "requires") && !IS(next, "irequires"))
        return goal_fail(reader, GOAL_UNEXPECTED, reader->line, word->text, word->length);
    return read_need(reader, word, next.text[0] == 'i');
}

static int read_item(struct goal_reader *reader)
{
    struct goal_word word;

    if (*reader->at == '}')
        return close_rank(reader);
    if (read_word(reader, &word))
        return reader->error.problem;
    if (reader->rank >= 0)
        return read_inside(reader, &word);
    if (IS(word, "rank"))
        return open_rank(reader);
    if (IS(word, "num_ranks"))
        return read_num_ranks(reader);
    return goal_fail(reader, reader->columns.ranks ? GOAL_OUTSIDE_RANK : GOAL_NO_NUM_RANKS,
                     reader->line, word.text, word.length);
}

int goal_read_line(struct goal_reader *reader, const char *line)
{
    int problem = GOAL_OK;

    reader->at = line;
    reader->line++;
    if (reader->in_comment)
        leave_comment(reader);
    for (skip_blanks(reader); !problem && *reader->at != '\n'; skip_blanks(reader))
        problem = read_item(reader);
    return problem;
}
