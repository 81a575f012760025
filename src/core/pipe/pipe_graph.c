/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_graph.c - which steps a step needs, and an order of the steps in which each comes behind all
 * that it needs. A reference to a step is a need. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/pipe/pipe.h"
#include "core/pipe/pipe_text.h"

/* One step while its references are looked at. */
struct pipe_linking {
    struct pipe *p;
    struct pipe_step *step;
    const char *field; /* with, if */
    int line, column;
    struct problems *ps;
};

static void pipe_link_problem(const struct pipe_linking *l,
                              const char *code,
                              const struct message_arg *args)
{
    _cleanup_(freep) char *field = xasprintf("steps.%s.%s", l->step->name, l->field);
    problems_add(l->ps, PROBLEM_ERROR, field, l->line, l->column, code, args);
}

static void pipe_unknown_step(const struct pipe_linking *l, const char *name)
{
    const char *names[PIPE_STEPS_MAX];
    for (size_t i = 0; i < l->p->n_steps; i++)
        names[i] = l->p->steps[i].name;
    const char *near = str_nearest(name, names, l->p->n_steps);
    pipe_link_problem(
        l, "pipe_step_unknown",
        MESSAGE_ARGS(MESSAGE_STR("step", name), MESSAGE_STR("near", str_or(near, ""))));
}

static void pipe_add_need(const struct pipe_linking *l, const char *name)
{
    struct pipe_step *s = l->step;
    const struct pipe_step *other = pipe_find_step(l->p, name);
    if (!other) {
        pipe_unknown_step(l, name);
        return;
    }
    int at = (int)(other - l->p->steps);
    for (int i = 0; i < s->n_before; i++)
        if (s->before[i] == at)
            return;
    s->before[s->n_before++] = at;
}

/* What each kind of step leaves behind. */
static const struct pipe_leaves {
    const char *word;
    unsigned uses; /* bits of enum pipe_uses */
    int more;      /* how many names follow */
} pipe_leaves[] = {
    {"state", ~0U, 0},
    {"job", 1U << PIPE_USES_JOB | 1U << PIPE_USES_PREPARE | 1U << PIPE_USES_PUBLISH, 0},
    {"checkpoint", 1U << PIPE_USES_JOB, 1},
    {"metrics", 1U << PIPE_USES_JOB, 1},
    {"dir", 1U << PIPE_USES_JOB, 0},
    {"value", 1U << PIPE_USES_CHECK, 0},
    {"model", 1U << PIPE_USES_PUBLISH, 0},
    {"dataset", 1U << PIPE_USES_PREPARE, 0},
    {"service", 1U << PIPE_USES_DEPLOY, 0},
    {"version", 1U << PIPE_USES_DEPLOY, 0},
    {"url", 1U << PIPE_USES_DEPLOY, 0},
};

static bool pipe_leaves_that(const struct pipe_step *s, const struct pipe_ref *ref)
{
    for (size_t i = 0; i < array_len(pipe_leaves); i++)
        if (str_eq(pipe_leaves[i].word, ref->part[2]))
            return (pipe_leaves[i].uses >> s->uses & 1) && ref->n == 3 + pipe_leaves[i].more;
    return false;
}

static void pipe_link_step_ref(const struct pipe_linking *l, const struct pipe_ref *ref, char *text)
{
    const struct pipe_step *other = ref->n > 1 ? pipe_find_step(l->p, ref->part[1]) : NULL;
    struct buf all = BUF_INIT(512);
    if (ref->n > 1)
        pipe_add_need(l, ref->part[1]);
    if (ref->n > 1 && !other)
        return;
    for (size_t i = 0; other && i < array_len(pipe_leaves); i++)
        if (pipe_leaves[i].uses >> other->uses & 1)
            (void)buf_addf(&all, "%s%s", all.len ? ", " : "", pipe_leaves[i].word); /* it fits */
    if (!other || ref->n < 3 || !pipe_leaves_that(other, ref))
        pipe_link_problem(
            l, "pipe_ref_step",
            MESSAGE_ARGS(MESSAGE_STR("ref", text), MESSAGE_STR("all", buf_str(&all))));
    buf_release(&all);
}

static void pipe_link_ref(const struct pipe_linking *l, const struct pipe_ref *ref)
{
    static const char *const of_run[] = {"id", "user", "project", "number"};
    struct buf text = BUF_INIT(PIPE_REF_PARTS * (PIPE_REF_PART_MAX + 1));
    for (int i = 0; i < ref->n; i++)
        (void)buf_addf(&text, "%s%s", i ? "." : "", ref->part[i]); /* it fits */
    _cleanup_(freep) char *said = buf_take(&text);
    const char *word = ref->part[0], *name = ref->n == 2 ? ref->part[1] : "";
    bool is_known = false;
    if (str_eq(word, "steps")) {
        pipe_link_step_ref(l, ref, said);
        return;
    }
    if (str_eq(word, "params"))
        is_known = pipe_find_param(l->p, name) != NULL;
    else if (str_eq(word, "matrix"))
        is_known = l->step->matrix && node_find(l->step->matrix, name);
    for (size_t i = 0; str_eq(word, "run") && i < array_len(of_run); i++)
        is_known = is_known || str_eq(name, of_run[i]);
    if (!is_known)
        pipe_link_problem(l, "pipe_ref_unknown", MESSAGE_ARGS(MESSAGE_STR("ref", said)));
}

static void pipe_link_expr(const struct pipe_linking *l, const struct pipe_expr *e)
{
    const struct pipe_ref *ref;
    for (int pos = 0; (ref = pipe_expr_next_ref(e, &pos));)
        pipe_link_ref(l, ref);
}

static void pipe_link_hole(const struct node *at, const struct pipe_hole *hole, void *arg)
{
    struct pipe_linking *l = arg;
    struct pipe_expr *e = NULL;
    l->line = at->line;
    l->column = at->column;
    int r = pipe_expr_parse(hole->text, hole->n, &e, NULL);
    assert(r == 0); /* pipe_read() has parsed it */
    (void)r;
    pipe_link_expr(l, e);
    pipe_expr_free(e);
}

static void pipe_link_step(struct pipe *p, struct pipe_step *s, struct problems *ps)
{
    struct pipe_linking l = {
        .p = p, .step = s, .field = "needs", .line = s->line, .column = s->column, .ps = ps};
    for (size_t i = 0; i < s->needs.n; i++)
        pipe_add_need(&l, s->needs.v[i]);
    l.field = "if";
    if (s->when)
        pipe_link_expr(&l, s->when);
    l.field = "with";
    pipe_text_each(s->with, pipe_link_hole, &l);
}

/* ---- its references, for who asks ---- */

struct pipe_refs {
    void (*each)(const struct pipe_ref *ref, void *arg);
    void *arg;
};

static void pipe_refs_of_expr(const struct pipe_expr *e, const struct pipe_refs *refs)
{
    const struct pipe_ref *ref;
    for (int pos = 0; (ref = pipe_expr_next_ref(e, &pos));)
        refs->each(ref, refs->arg);
}

static void pipe_refs_of_hole(const struct node *at, const struct pipe_hole *hole, void *arg)
{
    struct pipe_expr *e = NULL;
    int r = pipe_expr_parse(hole->text, hole->n, &e, NULL);
    assert(r == 0); /* as above */
    (void)r;
    (void)at;
    pipe_refs_of_expr(e, arg);
    pipe_expr_free(e);
}

void pipe_step_each_ref(const struct pipe_step *s,
                        unsigned in,
                        void (*each)(const struct pipe_ref *ref, void *arg),
                        void *arg)
{
    struct pipe_refs refs = {each, arg};
    if (in & PIPE_REFS_IF && s->when)
        pipe_refs_of_expr(s->when, &refs);
    if (in & PIPE_REFS_WITH)
        pipe_text_each(s->with, pipe_refs_of_hole, &refs);
}

void pipe_ref_write(const struct pipe_ref *ref, struct buf *out)
{
    for (int i = 0; i < ref->n; i++) {
        const char *part = ref->part[i];
        bool is_plain = *part && !part[strspn(part, "abcdefghijklmnopqrstuvwxyz"
                                                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")];
        (void)buf_addf(out, is_plain ? (i ? ".%s" : "%s") : "['%s']",
                       part); /* a failure shows in out->failed */
    }
}

/* ---- the order ---- */

struct pipe_walk {
    struct pipe *p;
    char mark[PIPE_STEPS_MAX]; /* 0: not seen, 1: on the way down, 2: done */
    int n;
    struct problems *ps;
};

static void pipe_tell_circle(const struct pipe_walk *w, const int *path, int n, int back)
{
    struct buf text = BUF_INIT(PIPE_STEPS_MAX * (PIPE_NAME_MAX + 4));
    int from = 0;
    while (path[from] != back)
        from++;
    for (int i = from; i < n; i++)
        (void)buf_addf(&text, "%s → ", w->p->steps[path[i]].name); /* it fits */
    (void)buf_adds(&text, w->p->steps[back].name);
    const struct pipe_step *s = &w->p->steps[back];
    _cleanup_(freep) char *field = xasprintf("steps.%s", s->name);
    problems_add(w->ps, PROBLEM_ERROR, field, s->line, s->column, "pipe_circle",
                 MESSAGE_ARGS(MESSAGE_STR("circle", buf_str(&text))));
    buf_release(&text);
}

/* Depth first without recursion: path is the way down, next the need that is looked at. */
static void pipe_walk_from(struct pipe_walk *w, int first)
{
    int path[PIPE_STEPS_MAX] = {0}, next[PIPE_STEPS_MAX] = {0}, n = 0;
    path[n] = first;
    next[n++] = 0;
    w->mark[first] = 1;
    while (n) {
        const struct pipe_step *s = &w->p->steps[path[n - 1]];
        if (next[n - 1] == s->n_before) {
            w->mark[path[--n]] = 2;
            w->p->order[w->n++] = path[n];
            continue;
        }
        int need = s->before[next[n - 1]++];
        if (w->mark[need] == 1)
            pipe_tell_circle(w, path, n, need);
        else if (!w->mark[need]) {
            w->mark[need] = 1;
            path[n] = need;
            next[n++] = 0;
        }
    }
}

void pipe_link(struct pipe *p, struct problems *ps)
{
    struct pipe_walk w = {.p = p, .ps = ps};
    for (size_t i = 0; i < p->n_steps; i++)
        pipe_link_step(p, &p->steps[i], ps);
    for (size_t i = 0; i < p->n_steps; i++)
        if (!w.mark[i])
            pipe_walk_from(&w, (int)i);
}
