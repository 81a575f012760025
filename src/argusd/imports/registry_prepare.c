/* SPDX-License-Identifier: Apache-2.0 */
/* registry_prepare.c - the form and the order of a preparation; lib/argus_prepare.py does it. The
 * raw set is in use while it is read: the job counts as its user. */
#include "argusd/imports/registry_prepare.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"

enum { ORDER_MAX = 64 << 10, ARGS_MAX = 100 };

static_assert(offsetof(struct registry_preparation, f) == 0, "as its rows say");
#define FORM(member) offsetof(struct registry_preparation, member)
static const struct field keys[] = {
    {.name = "name",
     .type = FIELD_STR,
     .offset = FORM(f.source),
     .flags = FIELD_REQUIRED,
     .doc = "the raw data set"},
    {.name = "with",
     .type = FIELD_STR,
     .offset = FORM(with),
     .flags = FIELD_REQUIRED,
     .doc = "gsm8k, or the path of a script"},
    {.name = "as",
     .type = FIELD_STR,
     .offset = FORM(f.name),
     .doc = "what is made is called so; <name>-verl if absent"},
    {.name = "args", .type = FIELD_STRV, .offset = FORM(args), .doc = "more, for the script"},
    REGISTRY_FORM_ROWS,
};
const struct field_table registry_preparation_table = {.name = "PrepareForm",
                                                       .rows = keys,
                                                       .n = array_len(keys),
                                                       .size = sizeof(struct registry_preparation)};

void registry_preparation_release(struct registry_preparation *x)
{
    registry_form_release(&x->f);
    strv_release(&x->args);
    free(x->with);
    *x = (struct registry_preparation){0};
}

static void registry_prepare_complain(struct problems *ps,
                                      const char *field,
                                      const char *code,
                                      const struct message_arg *args)
{
    problems_add(ps, PROBLEM_ERROR, field, 0, 0, code, args);
}

static void registry_prepare_check(struct registry_preparation *x, struct problems *ps)
{
    struct dataref ref;
    struct err err = {0};
    bool built_in = str_eq(x->with, "gsm8k");
    if (!dataref_read(x->f.source, &ref) || ref.file)
        registry_prepare_complain(ps, "name", "prepare_no_data", MESSAGE_NO_ARGS);
    else if (!x->f.name)
        x->f.name = xasprintf("%s-verl", ref.name);
    if (x->f.name && dataref_check_name("data set", x->f.name, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, "as", 0, 0, &err);
    if (!built_in && *x->with != '/' && !str_starts(x->with, "${"))
        registry_prepare_complain(ps, "with", "prepare_with", MESSAGE_NO_ARGS);
    if (built_in && x->args.n)
        registry_prepare_complain(ps, "args", "prepare_args", MESSAGE_NO_ARGS);
    if (x->args.n > ARGS_MAX || x->f.secrets.n > ARGS_MAX)
        registry_prepare_complain(ps, "args", "form_too_many",
                                  MESSAGE_ARGS(MESSAGE_NUM("most", 100)));
}

int registry_preparation_read(const char *body,
                              size_t n,
                              struct registry_preparation *x,
                              struct problems *ps)
{
    struct doc *d = NULL;
    if (doc_parse(n ? body : "{}", n ? n : 2, true, &d, ps) < 0)
        return ERR_BAD_SPEC;
    conf_read(keys, array_len(keys), doc_root(d), x, ps);
    doc_free(d);
    if (!ps->errors)
        registry_prepare_check(x, ps);
    return ps->errors ? ERR_BAD_SPEC : 0;
}

static void registry_prepare_write_order(const struct importer *im,
                                         const struct registry_entry *e,
                                         const struct registry_preparation *x,
                                         const struct registry_entry *raw,
                                         const char *script,
                                         const struct strv *roots,
                                         struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    registry_put_order(&j, im, e, roots);
    jout_str(&j, "with", script ? "script" : x->with);
    jout_str(&j, "input", raw->path);
    jout_bool(&j, "single", json_get_bool(raw->about, "single", false));
    if (script)
        jout_str(&j, "script", script);
    jout_open(&j, "args", '[');
    for (size_t i = 0; i < x->args.n; i++)
        jout_str(&j, NULL, x->args.v[i]);
    jout_close(&j, ']');
    jout_close(&j, '}');
}

static int find_raw(const struct importer *im,
                    const struct http_principal *p,
                    const char *name,
                    struct registry_entry **ret,
                    struct err *err)
{
    struct dataref ref;
    struct access_who who;
    people_who(im->people, p, &who);
    if (!dataref_read(name, &ref))
        return message_refuse(
            err, ERR_BAD_SPEC, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "data set"), MESSAGE_STR("name", name)));
    int r = registry_find(im->registry, REGISTRY_DATASET, &who, &ref, ret, err);
    if (r == 0 && (*ret)->state != REGISTRY_ready)
        return message_refuse(err, ERR_CONFLICT, "being_imported",
                              MESSAGE_ARGS(MESSAGE_STR("noun", "data set"),
                                           MESSAGE_STR("name", name),
                                           MESSAGE_STR("job", (*ret)->job)));
    return r;
}

int registry_prepare(const struct importer *im,
                     const struct http_principal *p,
                     const struct registry_preparation *x,
                     struct registry_entry **ret,
                     const char **ret_field,
                     struct err *err)
{
    struct strv roots = {0};
    struct registry_entry *raw = NULL, *e = NULL;
    _cleanup_(freep) char *script = NULL;
    char ref[REGISTRY_REF_MAX];
    struct buf order = BUF_INIT(ORDER_MAX);
    *ret_field = "name";
    int r = find_raw(im, p, x->f.source, &raw, err);
    if (r == 0 && raw && !str_eq(x->with, "gsm8k")) {
        *ret_field = "with";
        r = registry_read_path(im, p, x->with, NULL, &script, &roots, err);
    }
    if (r == 0 && raw) {
        e = registry_make(im, p, REGISTRY_DATASET, &x->f);
        e->source = xasprintf("%s with %s", registry_ref(raw, ref), str_or(script, x->with));
        e->lineage = json_pack("{s:[s], s:s?, s:s}", "data", registry_ref(raw, ref), "hash",
                               raw->hash, "with", str_or(script, x->with));
        e->is_recorded = true;
        r = storage_check(im->storage, e->owner, e->project, 0, err);
        if (r == 0)
            r = registry_add(im->registry, e, &e, err);
        else
            registry_entry_free(e);
    }
    if (r == 0 && e) {
        registry_prepare_write_order(im, e, x, raw, script, &roots, &order);
        r = registry_submit(im, p, e, &x->f, "prepare", buf_str(&order), ret_field, err);
        if (r == 0) {
            registry_note_use(im->registry, raw, e->job);
            *ret = e;
        }
    }
    strv_release(&roots);
    buf_release(&order);
    return r;
}
