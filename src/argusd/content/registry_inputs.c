/* SPDX-License-Identifier: Apache-2.0 */
/* registry_inputs.c - from names to files; see registry_inputs.h.
 *
 * train_file takes a data set's train split, val_file its val split, else its test split; one that
 * has no splits is taken whole. The names of splits were said by a job: they are checked again. */
#include "argusd/content/registry_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { INPUTS_MAX = 1 << 20 };

/* A name of the spec, and the files that it stood for. */
struct input_use {
    char *key, *text, *kind, *ref, *entry, *hash; /* owned */
    struct strv files;
};
#define USE(member, ftype, ...) FIELD_AT(input_use, #member, ftype, member, __VA_ARGS__)
static const struct field use_rows[] = {
    USE(key, FIELD_STR, .flags = FIELD_ALWAYS),   USE(text, FIELD_STR, .flags = FIELD_ALWAYS),
    USE(kind, FIELD_STR, .flags = FIELD_ALWAYS),  USE(ref, FIELD_STR, .flags = FIELD_ALWAYS),
    USE(entry, FIELD_STR, .flags = FIELD_ALWAYS), USE(hash, FIELD_STR, .flags = 0),
    USE(files, FIELD_STRV, .flags = 0),
};
const struct field_table registry_input_table = FIELD_TABLE("InputUse", use_rows, input_use);

struct resolving {
    const struct registry *rg;
    const struct access_who *who;
    struct spec *spec;
    struct problems *ps;
    struct input_use *v; /* owned */
    size_t n;
};

static void registry_inputs_complain(struct resolving *x,
                                     const char *field,
                                     const char *code,
                                     const struct message_arg *args)
{
    problems_add(x->ps, PROBLEM_ERROR, field, 0, 0, code, args);
}

/* ---- which files ---- */

static bool is_clean(const char *file)
{
    struct dataref ref;
    _cleanup_(freep) char *text = xasprintf("x/%s", file);
    return dataref_read(text, &ref) && ref.file;
}

static void add_file(struct strv *files, const struct registry_entry *e, const char *file)
{
    bool single = json_get_bool(e->about, "single", false);
    _cleanup_(freep) char *path = single ? xstrdup(e->path) : xasprintf("%s/%s", e->path, file);
    if (is_clean(file))
        strv_add(files, path);
}

static void add_files(struct strv *files,
                      const struct registry_entry *e,
                      const char *key,
                      const char *file)
{
    static const char *const train[] = {"train", "all", NULL};
    static const char *const val[] = {"val", "test", "all", NULL};
    const json_t *splits = json_get_object(e->about, "splits");
    size_t i;
    const json_t *name;
    if (file) {
        add_file(files, e, file);
        return;
    }
    for (const char *const *s = !strcmp(key, "train_file") ? train : val; *s && !files->n; s++)
        json_array_foreach (json_get_array(splits, *s), i, name)
            if (json_is_string(name))
                add_file(files, e, json_string_value(name));
}

/* ---- fit ---- */

static const char *fit_key(int workload)
{
    switch (workload) {
    case WORKLOAD_PPO:
    case WORKLOAD_GRPO:
        return "rl";
    case WORKLOAD_SFT:
        return "sft";
    case WORKLOAD_EVAL:
        return "eval";
    default:
        return NULL;
    }
}

static void check_fit(struct resolving *x, const struct registry_entry *e, const char *key)
{
    const char *what = fit_key(x->spec->workload);
    const json_t *fit = what ? json_get_object(json_get_object(e->about, "fit"), what) : NULL;
    char ref[REGISTRY_REF_MAX];
    struct buf lacks = BUF_INIT(1024);
    size_t i;
    const json_t *name;
    if (!fit || json_get_bool(fit, "fit", true))
        return;
    json_array_foreach (json_get_array(fit, "missing"), i, name)
        (void)buf_addf(&lacks, "%s'%.60s'", i ? ", " : "",
                       str_or(json_string_value(name), "?")); /* cut: fine */
    problems_add(
        x->ps, PROBLEM_WARNING, key, 0, 0, "data_not_fit",
        MESSAGE_ARGS(MESSAGE_STR("ref", registry_ref(e, ref)),
                     MESSAGE_STR("workload", workload_to_string((enum workload)x->spec->workload)),
                     MESSAGE_STR("columns", buf_str(&lacks))));
    buf_release(&lacks);
}

/* ---- one name ---- */

/* Its files are added by the caller. */
static struct input_use *add_input(struct resolving *x,
                                   const struct registry_entry *e,
                                   const char *key,
                                   const char *text)
{
    char ref[REGISTRY_REF_MAX];
    x->v = xrealloc(x->v, x->n + 1, sizeof(*x->v));
    struct input_use *use = &x->v[x->n++];
    *use = (struct input_use){.key = xstrdup(key),
                              .text = xstrdup(text),
                              .kind = xstrdup(registry_kind_word(e->kind)),
                              .ref = xstrdup(registry_ref(e, ref)),
                              .entry = xstrdup(e->key),
                              .hash = xstrdup(e->hash)};
    return use;
}

/* What is stored of them, and releases them. Heap; NULL: the spec names none. */
static char *take_inputs(struct resolving *x, bool *ret_too_long)
{
    struct buf out = BUF_INIT(INPUTS_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < x->n; i++) {
        field_to_json(&registry_input_table, &x->v[i], FIELD_ALL, FIELD_PAGE, &j, NULL);
        field_release(&registry_input_table, &x->v[i]);
    }
    jout_close(&j, ']');
    *ret_too_long = out.failed;
    char *text = x->n ? buf_take(&out) : NULL;
    buf_release(&out);
    freep(&x->v);
    return text;
}

static struct registry_entry *registry_inputs_find(struct resolving *x,
                                                   enum registry_kind kind,
                                                   const char *key,
                                                   const char *text,
                                                   bool must)
{
    struct dataref ref;
    struct registry_entry *e = NULL;
    struct err err = {0};
    if (!dataref_read(text, &ref))
        return NULL;
    int r = registry_find(x->rg, kind, x->who, &ref, &e, &err);
    if (r == 0 && e->state != REGISTRY_ready) {
        registry_inputs_complain(x, key, "being_imported",
                                 MESSAGE_ARGS(MESSAGE_STR("noun", registry_kind_name(kind)),
                                              MESSAGE_STR("name", text),
                                              MESSAGE_STR("job", e->job)));
    } else if (r == ERR_NOT_FOUND && must) {
        registry_inputs_complain(
            x, key, "not_registered",
            MESSAGE_ARGS(MESSAGE_STR("path", text), MESSAGE_STR("noun", registry_kind_name(kind))));
    } else if (r < 0 && r != ERR_NOT_FOUND) {
        problems_add_err(x->ps, PROBLEM_ERROR, key, 0, 0, &err);
    }
    return r == 0 && e->state == REGISTRY_ready ? e : NULL;
}

static void resolve_files(struct resolving *x, const char *key, const struct strv *list)
{
    struct dataref ref;
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->v[i];
        if (!dataref_read(text, &ref))
            continue; /* a path */
        const struct registry_entry *e = registry_inputs_find(x, REGISTRY_DATASET, key, text, true);
        if (!e)
            continue;
        _cleanup_(strv_release) struct strv files = {0};
        add_files(&files, e, key, ref.file);
        if (!files.n) {
            registry_inputs_complain(
                x, key, "data_no_files",
                MESSAGE_ARGS(MESSAGE_STR("ref", text), MESSAGE_STR("key", key)));
            continue;
        }
        check_fit(x, e, key);
        strv_copy(&add_input(x, e, key, text)->files, &files);
    }
}

/* A name that is not registered may be a Hugging Face id. */
static void resolve_model(struct resolving *x)
{
    struct dataref ref;
    const char *text = x->spec->model_id;
    if (!text || !dataref_read(text, &ref) || ref.file)
        return;
    bool ours = ref.version || *ref.owner;
    const struct registry_entry *e =
        registry_inputs_find(x, REGISTRY_MODEL, "model_id", text, ours);
    if (!e) {
        if (!ours && !strchr(text, '/'))
            problems_add(x->ps, PROBLEM_WARNING, "model_id", 0, 0, "model_not_registered",
                         MESSAGE_ARGS(MESSAGE_STR("model", text)));
        return;
    }
    strv_add(&add_input(x, e, "model_id", text)->files, e->path);
}

int registry_resolve(const struct registry *rg,
                     const struct access_who *who,
                     struct spec *spec,
                     char **ret,
                     struct problems *ps)
{
    size_t before = ps->errors;
    struct resolving x = {.rg = rg, .who = who, .spec = spec, .ps = ps};
    struct err err = {0};
    resolve_files(&x, "train_file", &spec->train_file);
    resolve_files(&x, "val_file", &spec->val_file);
    resolve_model(&x);
    bool too_long = false;
    char *text = take_inputs(&x, &too_long);
    if (too_long)
        registry_inputs_complain(&x, "train_file", "inputs_too_many", MESSAGE_NO_ARGS);
    else if (spec_put_inputs(spec, text, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, "train_file", 0, 0, &err);
    if (ps->errors > before) {
        free(text);
        return ERR_BAD_SPEC;
    }
    *ret = text;
    return 0;
}

void registry_note_inputs(struct registry *rg, const char *inputs, const char *job)
{
    _cleanup_(json_unrefp) json_t *all = NULL;
    size_t i;
    const json_t *one;
    if (!inputs || json_parse(inputs, strlen(inputs), INPUTS_MAX, &all, NULL) < 0)
        return;
    json_array_foreach (all, i, one) {
        bool model = str_eq(json_get_str(one, "kind", ""), registry_kind_word(REGISTRY_MODEL));
        struct registry_entry *e = map_find(rg->tables[model ? REGISTRY_MODEL : REGISTRY_DATASET],
                                            json_get_str(one, "entry", ""));
        if (e && !(e->used.n && str_eq(e->used.v[e->used.n - 1], job)))
            registry_note_use(rg, e, job);
    }
}
