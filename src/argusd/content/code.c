/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - see code.h. The row of the registry is looked at once, at the submit: a job goes by the
 * hash from then on, and removing content that a live job has is refused. */
#include "argusd/content/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/spec/snapshot.h"
#include "core/spec/spec.h"
#include "fsroot/content/snapshot.h"

enum { TEXT_MAX = 64 << 10 };

struct code_use {
    char *key, *name, *hash, *path, *verl; /* owned */
    bool common;
};
#define USE(member, ftype, ...) FIELD_AT(code_use, #member, ftype, member, __VA_ARGS__)
static const struct field use_rows[] = {
    USE(key, FIELD_STR, .flags = FIELD_ALWAYS),  USE(name, FIELD_STR, .flags = FIELD_ALWAYS),
    USE(common, FIELD_BOOL, .flags = 0),         USE(hash, FIELD_STR, .flags = FIELD_ALWAYS),
    USE(path, FIELD_STR, .flags = FIELD_ALWAYS), USE(verl, FIELD_STR, .flags = 0),
};
const struct field_table code_use_table = FIELD_TABLE("SnapshotUse", use_rows, code_use);

/* The snapshots of one spec: its code and its working_dir. */
enum { USES_MAX = 4 };
struct code_uses {
    struct code_use v[USES_MAX];
    size_t n;
};

static void code_uses_release(struct code_uses *u)
{
    for (size_t i = 0; i < u->n; i++)
        field_release(&code_use_table, &u->v[i]);
}

struct naming {
    const struct snapshots *sn;
    const char *user;
    struct problems *ps;
    struct code_uses uses;
};

static void add_use(struct naming *x, const char *key, const struct snapshot *s, const char *tree)
{
    x->uses.v[x->uses.n++] = (struct code_use){.key = xstrdup(key),
                                               .name = xstrdup(s->ref),
                                               .common = s->user == NULL,
                                               .hash = xstrdup(s->hash),
                                               .path = xstrdup(tree),
                                               .verl = xstrdup(s->verl)};
}

static void resolve_name(struct naming *x, const char *key, const char *ref, char **ret_path)
{
    const struct snapshot *s = snapshots_find_for(x->sn, x->user, ref);
    if (!s) {
        problems_add(x->ps, PROBLEM_ERROR, key, 0, 0, "no_snapshot",
                     MESSAGE_ARGS(MESSAGE_STR("ref", ref)));
        return;
    }
    free(*ret_path);
    *ret_path = snapshots_tree(x->sn, s);
    add_use(x, key, s, *ret_path);
}

/* A path of a snapshot stays as it was written. Another user's is as if it were not there. */
static void resolve_path(struct naming *x, const char *key, const char *path)
{
    const struct snapshot *s = path ? snapshots_find_path(x->sn, path) : NULL;
    if (!s || (s->user && strcmp(s->user, x->user) != 0))
        return;
    _cleanup_(freep) char *tree = snapshots_tree(x->sn, s);
    add_use(x, key, s, tree);
}

static char *code_uses_text(const struct code_uses *u)
{
    struct buf out = BUF_INIT(TEXT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < u->n; i++)
        field_to_json(&code_use_table, &u->v[i], FIELD_ALL, FIELD_PAGE, &j, NULL);
    jout_close(&j, ']');
    return buf_take(&out);
}

char *code_resolve(const struct snapshots *sn,
                   const char *user,
                   struct spec *spec,
                   struct problems *ps)
{
    struct naming x = {.sn = sn, .user = user, .ps = ps};
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
    char *text = x.uses.n ? code_uses_text(&x.uses) : NULL;
    code_uses_release(&x.uses);
    return text;
}

/* ---- the text ---- */

/* What code_resolve() wrote; NULL: none. */
static void code_uses_read(const char *text, struct code_uses *ret)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    *ret = (struct code_uses){0};
    if (!text || json_parse(text, strlen(text), TEXT_MAX, &v, NULL) < 0)
        return;
    for (; ret->n < json_array_size(v) && ret->n < USES_MAX; ret->n++) {
        struct code_use *use = &ret->v[ret->n];
        field_from_json(&code_use_table, json_array_get(v, ret->n), FIELD_ALL, use);
    }
}

bool code_is_there(const struct snapshots *sn, const char *text, struct err *err)
{
    _cleanup_(code_uses_release) struct code_uses u;
    code_uses_read(text, &u);
    for (size_t i = 0; i < u.n; i++)
        if (!snapshots_find_path(sn, str_or(u.v[i].path, ""))) {
            (void)message_refuse(
                err, ERR_CONFLICT, "snapshot_removed",
                MESSAGE_ARGS(MESSAGE_STR("ref", str_or(u.v[i].name, "")))); /* only fills err */
            return false;
        }
    return true;
}

bool code_has(const char *text, const char *hash)
{
    _cleanup_(code_uses_release) struct code_uses u;
    code_uses_read(text, &u);
    for (size_t i = 0; i < u.n; i++)
        if (str_eq(u.v[i].hash, hash))
            return true;
    return false;
}

void code_keep(struct snapshots *sn, const char *text, snapshots_row_f row, void *arg)
{
    _cleanup_(code_uses_release) struct code_uses u;
    code_uses_read(text, &u);
    for (size_t i = 0; i < u.n; i++) {
        struct snapshot *s = snapshots_find_path(sn, str_or(u.v[i].path, ""));
        if (!s || !s->passing)
            continue;
        snapshots_keep(sn, s);
        row(s, arg);
    }
}

void code_apply(const char *text, struct spec *spec)
{
    _cleanup_(code_uses_release) struct code_uses u;
    code_uses_read(text, &u);
    for (size_t i = 0; i < u.n; i++) {
        if (str_eq(u.v[i].key, "code"))
            set_str(&spec->code_path, u.v[i].path);
        else if (str_eq(u.v[i].key, "working_dir") && spec->working_dir &&
                 snapshot_is_ref(spec->working_dir))
            set_str(&spec->working_dir, u.v[i].path);
    }
}

int code_verify(const char *root, const char *text, struct err *err)
{
    _cleanup_(code_uses_release) struct code_uses u;
    code_uses_read(text, &u);
    for (size_t i = 0; i < u.n; i++) {
        int r = snapshot_verify(root, str_or(u.v[i].hash, ""), err);
        if (r == -ENOENT)
            return message_refuse(err, ERR_REFUSED, "snapshot_gone",
                                  MESSAGE_ARGS(MESSAGE_STR("ref", u.v[i].name)));
        if (r == ERR_REFUSED && err) {
            const struct err why = *err;
            return message_refuse(
                err, r, "snapshot_changed",
                MESSAGE_ARGS(MESSAGE_STR("ref", u.v[i].name), MESSAGE_ERR("why", &why)));
        }
        if (r < 0)
            return r;
    }
    return 0;
}

/* NULL: none stands for the package verl. */
static const struct code_use *code_use_of_verl(const struct code_uses *u)
{
    return u->n && str_starts(str_or(u->v[0].key, ""), "code") ? &u->v[0] : NULL;
}

void code_put_proof(const char *text, struct jout *j)
{
    _cleanup_(code_uses_release) struct code_uses u;
    code_uses_read(text, &u);
    const struct code_use *use = code_use_of_verl(&u);
    jout_str(j, "snapshot", use ? use->name : NULL);
    jout_str(j, "hash", use ? use->hash : NULL);
}

char *code_of_verl(const char *text)
{
    _cleanup_(code_uses_release) struct code_uses u;
    code_uses_read(text, &u);
    const struct code_use *use = code_use_of_verl(&u);
    return use ? field_to_text(&code_use_table, use, FIELD_ALL, FIELD_PAGE) : NULL;
}
