/* libFuzzer on the readers of GOAL: a text in pieces of any length, or the reference simulator's
 * binary. */
#include "../simulation/goal_touch.h"
#include "bytes.h"

static int read_text(struct goal_reader *reader, struct bytes from, size_t piece)
{
    while (from.left) {
        const size_t length = piece < from.left ? piece : from.left;
        char *const text = drawn(&from, 1, length);
        nb_goal_feed(reader, text, length);
        free(text);
    }
    return nb_goal_finish(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes from = {data, size};
    uint8_t piece;
    draw(&from, &piece, 1);
    struct goal_reader *const reader = nb_goal_open();
    EXPECT(reader);
    const int binary = from.left >= 8 && (from.at[0] == 0x7f || from.at[0] == 0x26);
    uint8_t *const copy = malloc(from.left ? from.left : 1);
    memcpy(copy, from.at, from.left);
    const int problem = binary ? nb_goal_read_binary(reader, copy, from.left)
                               : read_text(reader, from, piece ? piece : 4096);
    if (problem)
        EXPECT(nb_goal_error(reader)->problem == problem);
    else
        touch(nb_goal_columns(reader));
    free(copy);
    nb_goal_close(reader);
    return 0;
}
