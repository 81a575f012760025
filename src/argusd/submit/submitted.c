/* SPDX-License-Identifier: Apache-2.0 */
/* submitted.c - see submitted.h. What a preset was filled with is a spec that is complete in
 * itself: that is what the job keeps, whatever becomes of the preset. */
#include "argusd/submit/submitted.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/jobspec.h"
#include "base/str.h"
#include "core/spec/smoke.h"

static int submitted_read_text(const struct submitted *s,
                               const char *text,
                               size_t len,
                               bool want_places,
                               struct spec *ret,
                               struct problems *ps)
{
    int r = jobspec_read(s->settings, text, len, s->who->user, want_places, ret, ps);
    for (size_t i = 0; r == 0 && i < ret->notify.n; i++) {
        struct err err = {0};
        r = alert_notify_check(&s->settings->alerts, ret->notify.v[i], &err);
        if (r < 0)
            problems_add_err(ps, PROBLEM_ERROR, "notify", 0, 0, &err);
    }
    return r;
}

static int submitted_read_again(const struct submitted *s,
                                const char *text,
                                size_t len,
                                bool want_places,
                                struct spec *ret,
                                struct problems *ps)
{
    spec_release(ret);
    *ret = (struct spec){0};
    return submitted_read_text(s, text, len, want_places, ret, ps);
}

static int submitted_read_given(const struct submitted *s, struct spec *ret, struct problems *ps)
{
    int r = submitted_read_text(s, s->text, s->len, false, ret, ps);
    if (ps->n == 0 || *s->text != '{' || ret->preset)
        return r;
    /* JSON was read without places: again, for those of what is to be told. */
    problems_release(ps);
    return submitted_read_again(s, s->text, s->len, true, ret, ps);
}

/* ---- presets ---- */

static int submitted_fill(const struct submitted *s,
                          const char *ref,
                          const struct node *given,
                          struct buf *out,
                          struct problems *ps)
{
    const struct node *project = node_find(given, "project"), *at = node_find(given, "preset");
    const char *named = project && project->kind == NODE_SCALAR ? project->text : NULL;
    const struct preset_item *i;
    struct err err = {0};
    if (presets_look_up(s->presets, s->who, named, ref, &i, &err) < 0) {
        problems_add_err(ps, PROBLEM_ERROR, "preset", at ? at->line : 0, at ? at->column : 0, &err);
        return ERR_BAD_SPEC;
    }
    return preset_fill(i->preset, i->name, given, out, ps);
}

/* What was told of the body does not count: it is no spec before its preset is filled. */
static int read_filled(const struct submitted *s,
                       struct spec *ret,
                       char **ret_text,
                       struct problems *ps)
{
    _cleanup_(freep) char *ref = xstrdup(ret->preset);
    struct buf out = BUF_INIT(DOC_MAX_BYTES);
    struct doc *d = NULL;
    problems_release(ps);
    int r = doc_parse(s->text, s->len, true, &d, ps);
    if (r == 0)
        r = submitted_fill(s, ref, doc_root(d), &out, ps);
    doc_free(d);
    if (r == 0) {
        *ret_text = buf_take(&out);
        r = submitted_read_again(s, *ret_text, strlen(*ret_text), false, ret, ps);
    }
    buf_release(&out);
    return r;
}

/* ---- smoke runs ---- */

/* What is wrong was told of the spec as it was given; the small one follows from it. */
static int read_small(const struct submitted *s,
                      struct spec *ret,
                      char **ret_text,
                      struct problems *ps)
{
    const char *text = *ret_text ? *ret_text : s->text;
    size_t len = *ret_text ? strlen(*ret_text) : s->len;
    struct problems none = {0};
    struct doc *d = NULL;
    struct buf out = BUF_INIT(DOC_MAX_BYTES);
    int r = doc_parse(text, len, false, &d, &none);
    if (r == 0) {
        smoke_spec(doc_root(d), &out);
        doc_free(d);
        free(*ret_text);
        *ret_text = buf_take(&out);
        r = submitted_read_again(s, *ret_text, strlen(*ret_text), false, ret, ps);
    }
    buf_release(&out);
    problems_release(&none);
    return r;
}

int submitted_read(const struct submitted *s,
                   struct spec *ret,
                   char **ret_text,
                   struct problems *ps)
{
    int r = submitted_read_given(s, ret, ps);
    *ret_text = NULL;
    if (ret->preset)
        r = read_filled(s, ret, ret_text, ps);
    return r == 0 && s->smoke ? read_small(s, ret, ret_text, ps) : r;
}
