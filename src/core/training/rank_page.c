/* SPDX-License-Identifier: Apache-2.0 */
/* rank_page.c - a slow rank as it is said and shown; see rank.h. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/training/rank.h"
#include "core/training/training_message.h"

static const char *const codes[RANK_CAUSES] = {
#define X(e, word) [e] = "rank_slow_" word,
    RANK_CAUSE_TABLE(X)
#undef X
};

const char *rank_message(const struct rank_verdict *v, char *text, size_t size)
{
    char factor[32], lost[32];
    text_printf(factor, "%.1f", v->factor);
    text_printf(lost, "%.0f", 100 * v->lost);
    message_write(text, size,
                  MESSAGE_ARGS(MESSAGE_NUM("rank", v->rank), MESSAGE_STR("node", v->node),
                               MESSAGE_STR("factor", factor), MESSAGE_STR("lost", lost)));
    return codes[v->cause];
}

struct rank_page {
    int64_t rank, ranks;
    const char *node, *cause;
    double factor, lost;
    usec_t since;
    struct training_message said;
};
#define RANK(name, ftype, member, ...) FIELD_AT(rank_page, name, ftype, member, __VA_ARGS__)
static const struct field rank_rows[] = {
    RANK("rank", FIELD_INT, rank, .flags = FIELD_ALWAYS),
    RANK("node", FIELD_STR, node, .flags = FIELD_ALWAYS),
    RANK("cause",
         FIELD_STR,
         cause,
         .flags = FIELD_ALWAYS,
         .doc = "cpu_cap, memory, disk, network, blocked or computes"),
    RANK("factor", FIELD_REAL, factor, .doc = "times the work of the others, or the round trip"),
    RANK("lost", FIELD_REAL, lost, .doc = "of the time of the others, from 0 to 1"),
    RANK("ranks", FIELD_INT, ranks, .doc = "that were held against each other"),
    RANK("since", FIELD_TIME, since, .doc = "seen to be slow"),
    TRAINING_MESSAGE_ROWS(rank_page, said),
};
const struct field_table rank_table = FIELD_TABLE("SlowRank", rank_rows, rank_page);

char *rank_to_json(const struct rank_verdict *v, usec_t since, struct jout *j)
{
    char args[TRAINING_ARGS_MAX];
    struct rank_page p = {.rank = v->rank,
                          .ranks = (int64_t)v->ranks,
                          .node = v->node,
                          .cause = rank_cause_to_string(v->cause),
                          .factor = v->factor,
                          .lost = v->lost,
                          .since = since};
    const char *code = rank_message(v, args, sizeof(args));
    training_message_say_text(&p.said, code, args);
    field_to_json(&rank_table, &p, FIELD_ALL, FIELD_PAGE, j, NULL);
    char *says = xstrdup(p.said.text);
    training_message_release(&p.said);
    return says;
}
