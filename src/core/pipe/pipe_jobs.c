/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_jobs.c - see pipe_jobs.h. A value with an expression is read as the text that it is, and
 * what is told of it is left out by its place. */
#include "core/pipe/pipe_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/spec/spec.h"

static bool jobs_has_expression(const struct node *n)
{
    bool has = n->kind == NODE_SCALAR && strstr(n->text, "${{");
    for (const struct node *c = n->first; c && !has; c = c->next)
        has = jobs_has_expression(c);
    return has;
}

/* Is this the place of a value that an expression makes? A mapping begins where its first key does,
 * and that may be wrong all the same. */
static bool jobs_is_open(const struct node *tree, const struct problem *p)
{
    for (const struct node *c = tree->first; c; c = c->next) {
        bool is_there = c->line == p->line && c->column == p->column;
        if ((is_there && c->kind != NODE_MAP && jobs_has_expression(c)) || jobs_is_open(c, p))
            return true;
    }
    return false;
}

/* tree: where the places are of; at: NULL, or the place of all. */
static void jobs_add(const struct pipe_step *s,
                     const struct node *tree,
                     const struct node *at,
                     const struct problems *found,
                     struct problems *to)
{
    const struct node *place = at ? at : s->with;
    for (size_t i = 0; place && i < found->n; i++) {
        const struct problem *p = &found->v[i];
        _cleanup_(freep) char *field =
            xasprintf("steps.%s.with%s%s", s->name, *p->field ? "." : "", p->field);
        bool has_place = !at && p->line;
        if (!p->line || !jobs_is_open(tree, p))
            problems_add_copy(to, p, field, has_place ? p->line : place->line,
                              has_place ? p->column : place->column);
    }
}

void pipe_jobs_tell(const struct pipe_step *s, const struct problems *found, struct problems *to)
{
    jobs_add(s, s->with, NULL, found, to);
}

void pipe_jobs_check_filled(const struct pipe_step *s,
                            const char *text,
                            size_t len,
                            struct problems *ps)
{
    struct problems found = {0};
    struct doc *d = NULL;
    if (doc_parse(text, len, true, &d, &found) == 0) {
        spec_check_rows(doc_root(d), &found);
        jobs_add(s, doc_root(d), s->with, &found, ps);
    }
    doc_free(d);
    problems_release(&found);
}

static const struct node *jobs_preset(const struct pipe_step *s)
{
    const struct node *n = s->uses == PIPE_USES_JOB ? node_find(s->with, "preset") : NULL;
    return n && !node_is_null(n) ? n : NULL;
}

const char *pipe_jobs_preset(const struct pipe_step *s)
{
    const struct node *n = jobs_preset(s);
    return n && n->kind == NODE_SCALAR && !jobs_has_expression(n) ? n->text : NULL;
}

void pipe_jobs_check(const struct pipe *p, struct problems *ps)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct pipe_step *s = &p->steps[i];
        struct problems found = {0};
        if (s->uses != PIPE_USES_JOB || jobs_preset(s))
            continue;
        spec_check_rows(s->with, &found);
        pipe_jobs_tell(s, &found, ps);
        problems_release(&found);
    }
}
