/* SPDX-License-Identifier: Apache-2.0 */
/* sample_pick.h - a few samples of a step that show what a figure says, for people to look at:
 * their step, prompt and score, and the command that opens them. Never a text: these go into events
 * and alerts, which leave the house. Pure. */
#pragma once
#include <stdbool.h>

#include "base/field.h"
#include "core/sample/sample_order.h"

/* Which samples come first. Those with the least score where the samples have nothing of what is
 * asked for. */
enum sample_pick_by {
    SAMPLE_PICK_WORST,   /* the least score */
    SAMPLE_PICK_BEST,    /* the greatest score */
    SAMPLE_PICK_REPEATS, /* says again what it said before */
    SAMPLE_PICK_WIDE,    /* bytes that are not ASCII */
    SAMPLE_PICK_BLANK,   /* no word */
    SAMPLE_PICK_TEMPLATE /* turns of a chat */
};
/* By the name of a metric: what one of samples is of, else the worst. */
enum sample_pick_by sample_pick_by_metric(const char *metric);

enum { SAMPLE_PICKS = 5, SAMPLE_COMMAND_MAX = 256 };
struct sample_picks {
    int64_t wanted; /* up to this step */
    bool is_last;   /* the index had all of them: no later one will come */
    uint64_t stamp; /* of that index; 0: it could not be read */
    size_t n;
    struct sample_pick {
        int64_t step;
        char prompt[17]; /* as `argus samples --prompt` takes it */
        double score;    /* NaN: none */
        char command[SAMPLE_COMMAND_MAX];
    } v[SAMPLE_PICKS];
};

/* Takes the first SAMPLE_PICKS of the samples of this step, one of each prompt, into n and v of
 * ret. Those that compare equal stand as they are in v. */
void sample_pick(enum sample_pick_by by,
                 const char *job,
                 int64_t step,
                 const struct sample_place *v,
                 size_t n,
                 struct sample_picks *ret);

/* As it is shown: a row of "samples". */
extern const struct field_table sample_pick_table;
/* A list; NULL has none. */
void sample_picks_to_json(const struct sample_picks *picks, struct jout *j, const char *key);
