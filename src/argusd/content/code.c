/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - see code.h. The row of the registry is looked at once, at the submit: a job goes by the
 * hash from then on, and removing content that a live job has is refused. */
#include "argusd/content/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/spec/snapshot.h"
#include "core/spec/spec.h"
#include "fsroot/snapshot.h"

enum { TEXT_MAX = 64 << 10 };

struct naming {
    const struct snapshots *sn;
    const char *user;
    struct problems *ps;
    struct jout j;
    size_t n;
};

static void put_one(struct naming *x, const char *key, const struct snapshot *s, const char *tree)
{
    jout_open(&x->j, NULL, '{');
    jout_str(&x->j, "key", key);
    jout_str(&x->j, "name", s->ref);
    jout_bool(&x->j, "common", s->user == NULL);
    jout_str(&x->j, "hash", s->hash);
    jout_str(&x->j, "path", tree);
    jout_str(&x->j, "verl", s->verl);
    jout_close(&x->j, '}');
    x->n++;
}

static void resolve_name(struct naming *x, const char *key, const char *ref, char **ret_path)
{
    const struct snapshot *s = snapshots_find_for(x->sn, x->user, ref);
    if (!s) {
        problems_add(x->ps, PROBLEM_ERROR, key, 0, 0,
                     "'argus snapshot ls' shows those that there are",
                     "there is no snapshot '%.130s', neither a common one nor one of yours", ref);
        return;
    }
    free(*ret_path);
    *ret_path = snapshots_tree(x->sn, s);
    put_one(x, key, s, *ret_path);
}

/* A path of a snapshot stays as it was written. Another user's is as if it were not there. */
static void resolve_path(struct naming *x, const char *key, const char *path)
{
    const struct snapshot *s = path ? snapshots_find_path(x->sn, path) : NULL;
    if (!s || (s->user && strcmp(s->user, x->user) != 0))
        return;
    _cleanup_(freep) char *tree = snapshots_tree(x->sn, s);
    put_one(x, key, s, tree);
}

char *code_resolve(const struct snapshots *sn,
                   const char *user,
                   struct spec *spec,
                   struct problems *ps)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    struct naming x = {.sn = sn, .user = user, .ps = ps, .j = jout_begin(&out)};
    jout_open(&x.j, NULL, '[');
    if (spec->code)
        resolve_name(&x, "code", spec->code, &spec->code_path);
    else
        resolve_path(&x, "code_path", spec->code_path);
    if (spec->working_dir && snapshot_is_ref(spec->working_dir)) {
        _cleanup_(freep) char *ref = xstrdup(spec->working_dir);
        resolve_name(&x, "working_dir", ref, &spec->working_dir);
    } else {
        resolve_path(&x, "working_dir", spec->working_dir);
    }
    jout_close(&x.j, ']');
    char *text = x.n ? buf_take(&out) : NULL;
    buf_release(&out);
    return text;
}

/* ---- the text ---- */

static json_t *code_read_text(const char *text)
{
    json_t *v = NULL;
    return text && json_parse(text, strlen(text), TEXT_MAX, &v, NULL) == 0 ? v : NULL;
}

bool code_is_there(const struct snapshots *sn, const char *text, struct err *err)
{
    _cleanup_(json_unrefp) json_t *v = code_read_text(text);
    size_t i;
    const json_t *one;
    json_array_foreach (v, i, one) {
        const char *path = json_get_str(one, "path", "");
        if (!snapshots_find_path(sn, path)) {
            (void)err_set(err, ERR_CONFLICT, "snapshot '%s' was removed meanwhile",
                          json_get_str(one, "name", "")); /* only fills err */
            return false;
        }
    }
    return true;
}

bool code_has(const char *text, const char *hash)
{
    _cleanup_(json_unrefp) json_t *v = code_read_text(text);
    size_t i;
    const json_t *one;
    json_array_foreach (v, i, one)
        if (str_eq(json_get_str(one, "hash", NULL), hash))
            return true;
    return false;
}

void code_keep(struct snapshots *sn, const char *text, snapshots_row_f row, void *arg)
{
    _cleanup_(json_unrefp) json_t *v = code_read_text(text);
    size_t i;
    const json_t *one;
    json_array_foreach (v, i, one) {
        struct snapshot *s = snapshots_find_path(sn, json_get_str(one, "path", ""));
        if (!s || !s->passing)
            continue;
        snapshots_keep(sn, s);
        row(s, arg);
    }
}

void code_apply(const char *text, struct spec *spec)
{
    _cleanup_(json_unrefp) json_t *v = code_read_text(text);
    size_t i;
    const json_t *one;
    json_array_foreach (v, i, one) {
        const char *key = json_get_str(one, "key", ""), *path = json_get_str(one, "path", NULL);
        if (!strcmp(key, "code"))
            set_str(&spec->code_path, path);
        else if (!strcmp(key, "working_dir") && spec->working_dir &&
                 snapshot_is_ref(spec->working_dir))
            set_str(&spec->working_dir, path);
    }
}

int code_verify(const char *root, const char *text, struct err *err)
{
    _cleanup_(json_unrefp) json_t *v = code_read_text(text);
    size_t i;
    const json_t *one;
    json_array_foreach (v, i, one) {
        int r = snapshot_verify(root, json_get_str(one, "hash", ""), err);
        if (r == -ENOENT)
            r = err_set(err, ERR_REFUSED, "it is gone");
        if (r < 0)
            return r == ERR_REFUSED
                       ? err_prefix(err, "snapshot '%s' was changed after it was added",
                                    json_get_str(one, "name", ""))
                       : r;
    }
    return 0;
}

static const json_t *of_verl(const json_t *v)
{
    const json_t *first = json_array_get(v, 0);
    return str_starts(json_get_str(first, "key", ""), "code") ? first : NULL;
}

void code_put_proof(const char *text, struct jout *j)
{
    _cleanup_(json_unrefp) json_t *v = code_read_text(text);
    const json_t *one = of_verl(v);
    jout_str(j, "snapshot", json_get_str(one, "name", NULL));
    jout_str(j, "hash", json_get_str(one, "hash", NULL));
}

char *code_of_verl(const char *text)
{
    _cleanup_(json_unrefp) json_t *v = code_read_text(text);
    const json_t *one = of_verl(v);
    return one ? json_dumps(one, JSON_COMPACT) : NULL;
}
