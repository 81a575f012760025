/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_check.c - what is wrong with the jobs of a run before it begins: core/pipe/pipe_jobs.h, and
 * of steps that name a preset what that takes, by the presets that the user sees now. */
#include <string.h>

#include "argusd/content/presets.h"
#include "argusd/pipes/pipes_state.h"
#include "core/pipe/pipe_jobs.h"

static void pipes_check_preset(const struct pipe_life *r,
                               const struct access_who *who,
                               const struct pipe_step *s,
                               struct problems *ps)
{
    const struct node *given = node_find(s->with, "project");
    const struct node *project = given && !node_is_null(given) ? given : NULL;
    const char *ref = pipe_jobs_preset(s);
    const struct preset_item *item;
    struct problems found = {0};
    struct err err = {0};
    struct buf filled = BUF_INIT(DOC_MAX_BYTES);
    if (project && (project->kind != NODE_SCALAR || strstr(project->text, "${{")))
        return; /* whose presets are meant is known at the submit */
    if (presets_look_up(r->pipes->a->presets, who, project ? project->text : r->project, ref, &item,
                        &err) < 0) {
        const struct node *at = node_find(s->with, "preset");
        problems_add_err(&found, PROBLEM_ERROR, "preset", at->line, at->column, &err);
    } else if (preset_fill(item->preset, item->name, s->with, &filled, &found) == 0) {
        pipe_jobs_check_filled(s, buf_str(&filled), filled.len, ps);
    }
    pipe_jobs_tell(s, &found, ps);
    problems_release(&found);
    buf_release(&filled);
}

void pipes_check_jobs(const struct pipe_life *r, struct problems *ps)
{
    const struct http_principal p = pipes_principal(r);
    struct access_who who;
    people_who(r->pipes->a->people, &p, &who);
    pipe_jobs_check(r->pipe, ps);
    for (size_t i = 0; i < r->pipe->n_steps; i++)
        if (pipe_jobs_preset(&r->pipe->steps[i]))
            pipes_check_preset(r, &who, &r->pipe->steps[i], ps);
}
