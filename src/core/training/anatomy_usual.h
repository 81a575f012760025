/* SPDX-License-Identifier: Apache-2.0 */
/* anatomy_usual.h - what is usual: the medians of the shares that stages took of the steps of a few
 * other trainings. Shares and not seconds, since models and lengths of answers differ; the mean
 * step is told beside them. Pure, in fixed memory. */
#pragma once
#include "core/training/anatomy.h"

enum {
    ANATOMY_USUAL_JOBS = 20, /* that count, the first ones that are added */
    ANATOMY_USUAL_LEAST = 3, /* fewer say nothing of what is usual */
};

struct anatomy_usual {
    size_t jobs;
    double step_s[ANATOMY_USUAL_JOBS], share[ANATOMY_STAGES][ANATOMY_USUAL_JOBS];
};
/* An anatomy as anatomy_to_json() wrote it; NULL, or one without steps, is passed over. False:
 * there are enough. */
bool anatomy_usual_add(struct anatomy_usual *u, const json_t *anatomy);

/* As it is shown: "UsualSteps" in openapi.json. */
struct anatomy_usual_page {
    int64_t jobs;
    double step_s;
    struct field_list stages;
    struct anatomy_usual_stage {
        const char *stage;
        double share;
    } stage[ANATOMY_STAGES];
};
extern const struct field_table anatomy_usual_table;
/* False: they are too few. *ret points into itself. */
bool anatomy_usual_fill(const struct anatomy_usual *u, struct anatomy_usual_page *ret);
