/* SPDX-License-Identifier: Apache-2.0 */
/* view_spec.c - the spec of a job as its reader sees it: resolved, and without secrets. */
#include "argusd/kit/view.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/content/code.h"
#include "argusd/ground/jobspec.h"
#include "base/str.h"
#include "core/spec/spec.h"
#include "core/spec/spec_secret.h"
#include "fsroot/attempt/mask.h"

enum { RESOLVED_MAX = 8 << 20 };

/* ---- resolved ---- */

char *view_spec(const struct spec *spec)
{
    struct mask mask = {0};
    struct strv hidden = {0};
    struct buf open = BUF_INIT(RESOLVED_MAX), shown = BUF_INIT(RESOLVED_MAX);
    struct jout o = jout_begin(&open);
    for (size_t i = 0; i < spec->env.n; i++)
        if (str_is_secret_name(spec->env.v[i].key))
            mask_add(&mask, spec->env.v[i].value);
    spec_list_secrets(spec, &hidden);
    for (size_t i = 0; i < hidden.n; i++)
        mask_add(&mask, hidden.v[i]);
    strv_release(&hidden);
    spec_to_json(spec, &o, NULL);
    mask_json(&mask, buf_str(&open), &shown);
    bool whole = !open.failed && !shown.failed;
    char *text = whole ? buf_take(&shown) : NULL;
    mask_release(&mask);
    buf_release(&open);
    buf_release(&shown);
    return text;
}

char *view_resolved(const struct settings *settings,
                    const struct job *job,
                    const char *inputs,
                    const char *snapshots)
{
    struct spec spec = {0};
    char *text = NULL;
    const struct spec *given = jobspec_of(settings, job);
    if (given)
        spec_copy(&spec, given);
    if (given && spec_put_inputs(&spec, inputs, NULL) == 0) {
        code_apply(snapshots, &spec);
        text = view_spec(&spec);
    }
    spec_release(&spec);
    return text;
}

/* ---- masking ---- */

static void view_collect(const struct node *map, struct strv *values)
{
    for (const struct node *c = map && map->kind == NODE_MAP ? map->first : NULL; c; c = c->next)
        if (c->kind == NODE_SCALAR && str_is_secret_name(c->key) && *c->text)
            strv_add(values, c->text);
}

/* What looks like a key in a list of arguments, or in a line. */
static void collect_texts(const struct node *n, struct strv *values)
{
    const char *previous = NULL;
    if (n && n->kind == NODE_SCALAR)
        spec_add_secrets(n->text, NULL, values);
    for (const struct node *c = n && n->kind == NODE_SEQ ? n->first : NULL; c; c = c->next) {
        if (c->kind == NODE_SCALAR)
            spec_add_secrets(c->text, previous, values);
        previous = c->kind == NODE_SCALAR ? c->text : NULL;
    }
}

/* What looks like a key, or is named like one, in a spec. */
static void collect_spec(const struct node *spec, struct strv *values)
{
    view_collect(node_find(spec, "env"), values);
    view_collect(node_find(node_find(spec, "runtime_env"), "env_vars"), values);
    collect_texts(node_find(spec, "overrides"), values);
    collect_texts(node_find(spec, "entrypoint"), values);
}

/* Each of them once, sorted: so the mask adds them at its end. */
static void collect_all(const struct doc *d, struct strv *ret)
{
    collect_spec(doc_root(d), ret);
    collect_spec(node_find(doc_root(d), "eval_on_save"), ret);
    strv_sort_once(ret);
}

void view_mask_values(const char *text, struct mask *m)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    struct strv values = {0};
    if (doc_parse(text, strlen(text), false, &d, &ps) == 0)
        collect_all(d, &values);
    for (size_t i = 0; i < values.n; i++)
        mask_add(m, values.v[i]);
    doc_free(d);
    problems_release(&ps);
    strv_release(&values);
}

/* False when one of them is written otherwise than it reads: in quotes with escapes, folded. */
static bool stand_as_they_are(const struct strv *values, const char *text)
{
    for (size_t i = 0; i < values->n; i++)
        if (!strstr(text, values->v[i]))
            return false;
    return true;
}

static void replace(struct buf *out, const char *text, const struct strv *values)
{
    while (*text) {
        const char *hit = NULL; /* the longest: one secret may begin like another */
        for (size_t i = 0; i < values->n; i++)
            if (str_starts(text, values->v[i]) && (!hit || strlen(values->v[i]) > strlen(hit)))
                hit = values->v[i];
        (void)buf_add(out, hit ? "***" : text, hit ? 3 : 1); /* at most as long as a spec */
        text += hit ? strlen(hit) : 1;
    }
}

char *view_mask_spec(const char *text)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    struct strv values = {0};
    struct buf out = BUF_INIT(4 * (size_t)DOC_MAX_BYTES);
    bool shown = doc_parse(text, strlen(text), false, &d, &ps) == 0;
    if (shown) {
        collect_all(d, &values);
        doc_free(d);
        shown = stand_as_they_are(&values, text);
    }
    if (shown)
        replace(&out, text, &values);
    else
        (void)buf_adds(&out, "# *** a secret in this spec cannot be cut out of its text\n");
    problems_release(&ps);
    strv_release(&values);
    return buf_take(&out);
}
