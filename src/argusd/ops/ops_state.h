/* SPDX-License-Identifier: Apache-2.0 */
/* ops_state.h - what the files of this room share. Nobody outside it includes this. */
#pragma once
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ops/ops.h"

struct ops {
    struct api *a;
    uv_timer_t timer;
    bool started, closing;
    struct ops_plan **v; /* by age */
    size_t n;
};

/* Things and facts are "kind/name". The kind of a job that Argus did not submit; its name is its id
 * in Ray. */
#define OPS_FOREIGN "foreign"

/* ---- ops_look.c ---- */

/* Fills what the plan touches, its facts and steps, from what is asked. p: else zeroed. */
must_check int ops_look(struct api *a,
                        struct ops_plan *p,
                        const struct checkpoints_answer *goes,
                        struct err *err);

/* Whose rights count, as they are now: those of whoever asked for the plan, with the role of the
 * token that did, or of a lesser one that applied it. *ret: else zeroed. */
void ops_maker(const struct api *a, const struct ops_plan *p, struct http_principal *ret);

/* ---- ops_steps.c ---- */

/* Decides what the step does; it may go on behind it. */
must_check int ops_step_act(struct ops_plan *p, const struct ops_step *s, struct err *err);
/* Is it as expected? real: what was found, as message_keep(), heap. */
enum ops_found { OPS_NOT_YET, OPS_AS_EXPECTED, OPS_NEVER };
enum ops_found ops_step_look(const struct ops_plan *p, const struct ops_step *s, char **ret_real);
usec_t ops_step_patience(const struct ops_plan *p, const struct ops_step *s); /* 0: for ever */
/* A start must not look for its end: it is told as broken off. */
bool ops_step_is_single(const struct ops_step *s);
/* What a step left under way is forgotten. */
void ops_step_forget(struct ops_plan *p);
