/* SPDX-License-Identifier: Apache-2.0 */
/* tailpages.c - see tailpages.h.
 *
 * Owns the tables of the three events and how they are put into JSON; who gets them and when is
 * tails.c's. */
#include "argusd/logs/tailpages.h"

#include "base/json.h"
#include "base/message.h"
#include "core/job/job.h"

static const struct field piece_rows[] = {
    FIELD_AT(tails_piece, "attempt", FIELD_INT32, attempt),
    FIELD_AT(tails_piece, "offset", FIELD_COUNT, offset),
    FIELD_AT(tails_piece, "b64", FIELD_STR, b64, .flags = FIELD_ALWAYS),
};
const struct field_table tails_piece_table = FIELD_TABLE(NULL, piece_rows, tails_piece);

static const struct field replaced_rows[] = {
    FIELD_AT(tails_replaced, "attempt", FIELD_INT32, attempt),
    FIELD_AT(tails_replaced,
             "was",
             FIELD_COUNT,
             was,
             .doc = "where the log that was followed ended"),
    FIELD_AT(tails_replaced,
             "offset",
             FIELD_COUNT,
             offset,
             .doc = "offset of the next byte, in the log that is there now"),
    FIELD_AT(tails_replaced,
             "lost",
             FIELD_COUNT,
             lost,
             .doc = "bytes before `was` that this client was not sent"),
};
const struct field_table tails_replaced_table = FIELD_TABLE(NULL, replaced_rows, tails_replaced);

struct end_page {
    const char *state, *code, *text;
    int exit_code;
};
static const struct field end_rows[] = {
    FIELD_AT(end_page, "state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    FIELD_AT(end_page, "exit_code", FIELD_INT32, exit_code, .flags = FIELD_NO_LIMIT),
    FIELD_AT(end_page, "reason.code", FIELD_STR, code, .flags = FIELD_ALWAYS),
    FIELD_AT(end_page, "reason.text", FIELD_STR, text, .flags = FIELD_ALWAYS),
};
const struct field_table tails_end_table = FIELD_TABLE(NULL, end_rows, end_page);

void tails_put_page(const struct field_table *table, const void *page, struct buf *out)
{
    struct jout j = jout_begin(out);
    field_to_json(table, page, FIELD_ALL, FIELD_PAGE, &j, NULL);
}

void tails_put_end(const struct job *job, struct buf *out)
{
    char text[JOB_REASON_TEXT_MAX];
    const struct reason *why = job_state_reason(job);
    message_to_string(why->code, why->text, false, text, sizeof(text));
    const struct end_page page = {.state = job_state_to_string(job->state),
                                  .exit_code = job->has_exit ? job->exit_code : -1,
                                  .code = why->code,
                                  .text = text};
    tails_put_page(&tails_end_table, &page, out);
}
