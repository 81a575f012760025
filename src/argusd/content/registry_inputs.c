/* SPDX-License-Identifier: Apache-2.0 */
/* registry_inputs.c - from names to files; see registry_inputs.h.
 *
 * train_file takes a data set's train split, val_file its val split, else its test split; one that
 * has no splits is taken whole. The names of splits were said by a job: they are checked again. */
#include "argusd/content/registry_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "base/text.h"

enum { INPUTS_MAX = 1 << 20 };

struct resolving {
    const struct registry *rg;
    const struct access_who *who;
    struct spec *spec;
    struct problems *ps;
    json_t *all;
};

static void registry_inputs_complain(struct resolving *x,
                                     const char *field,
                                     const char *hint,
                                     const char *text)
{
    problems_add(x->ps, PROBLEM_ERROR, field, 0, 0, hint, "%s", text);
}

/* ---- which files ---- */

static bool is_clean(const char *file)
{
    struct dataref ref;
    _cleanup_(freep) char *text = xasprintf("x/%s", file);
    return dataref_read(text, &ref) && ref.file;
}

static void add_file(json_t *files, const struct registry_entry *e, const char *file)
{
    bool single = json_get_bool(e->about, "single", false);
    _cleanup_(freep) char *path = single ? xstrdup(e->path) : xasprintf("%s/%s", e->path, file);
    if (is_clean(file))
        (void)json_array_append_new(files, json_string(path)); /* fails for lack of memory */
}

static json_t *files_of(const struct registry_entry *e, const char *key, const char *file)
{
    static const char *const train[] = {"train", "all", NULL};
    static const char *const val[] = {"val", "test", "all", NULL};
    const json_t *splits = json_get_object(e->about, "splits");
    json_t *files = json_array();
    size_t i;
    const json_t *name;
    if (file) {
        add_file(files, e, file);
        return files;
    }
    for (const char *const *s = !strcmp(key, "train_file") ? train : val;
         *s && !json_array_size(files); s++)
        json_array_foreach (json_get_array(splits, *s), i, name)
            if (json_is_string(name))
                add_file(files, e, json_string_value(name));
    return files;
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
    problems_add(x->ps, PROBLEM_WARNING, key, 0, 0, "'argus data prepare' makes such columns",
                 "data set '%s' does not fit %s: it lacks the column%s %s", registry_ref(e, ref),
                 workload_to_string((enum workload)x->spec->workload), i == 1 ? "" : "s",
                 lacks.len ? buf_str(&lacks) : "that it reads");
    buf_release(&lacks);
}

/* ---- one name ---- */

static void add_input(struct resolving *x,
                      const struct registry_entry *e,
                      const char *key,
                      const char *text,
                      json_t *taken_files)
{
    char ref[REGISTRY_REF_MAX];
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?, s:o}", "key", key, "text", text, "kind",
                          registry_kind_word(e->kind), "ref", registry_ref(e, ref), "entry", e->key,
                          "hash", e->hash, "files", taken_files);
    (void)json_array_append_new(x->all, o); /* fails for lack of memory */
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
    char why[512];
    if (!dataref_read(text, &ref))
        return NULL;
    int r = registry_find(x->rg, kind, x->who, &ref, &e, &err);
    if (r == 0 && e->state != REGISTRY_ready) {
        text_printf(why, "%s '%.80s' is being imported, by job '%s'", registry_kind_name(kind),
                    text, e->job);
        registry_inputs_complain(x, key, "submit when it is ready", why);
    } else if (r == ERR_NOT_FOUND && must) {
        text_printf(why, "'%.200s' is not an absolute path, nor a registered %s", text,
                    registry_kind_name(kind));
        registry_inputs_complain(
            x, key, "begin it with ${SHARED_ROOT}/ or ${USER_ROOT}/, or register it", why);
    } else if (r < 0 && r != ERR_NOT_FOUND) {
        registry_inputs_complain(x, key, NULL, err.text);
    }
    return r == 0 && e->state == REGISTRY_ready ? e : NULL;
}

static void resolve_files(struct resolving *x, const char *key, const struct strv *list)
{
    struct dataref ref;
    char why[512];
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->v[i];
        if (!dataref_read(text, &ref))
            continue; /* a path */
        const struct registry_entry *e = registry_inputs_find(x, REGISTRY_DATASET, key, text, true);
        if (!e)
            continue;
        json_t *files = files_of(e, key, ref.file);
        if (!json_array_size(files)) {
            text_printf(why, "data set '%.80s' has no files for %s", text, key);
            registry_inputs_complain(x, key, "name one of its files: NAME/FILE", why);
            json_decref(files);
            continue;
        }
        check_fit(x, e, key);
        add_input(x, e, key, text, files);
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
    if (!e)
        return;
    json_t *files = json_array();
    (void)json_array_append_new(files, json_string(e->path)); /* fails for lack of memory */
    add_input(x, e, "model_id", text, files);
}

int registry_resolve(const struct registry *rg,
                     const struct access_who *who,
                     struct spec *spec,
                     char **ret,
                     struct problems *ps)
{
    size_t before = ps->errors;
    struct resolving x = {.rg = rg, .who = who, .spec = spec, .ps = ps, .all = json_array()};
    struct err err = {0};
    resolve_files(&x, "train_file", &spec->train_file);
    resolve_files(&x, "val_file", &spec->val_file);
    resolve_model(&x);
    char *text = json_array_size(x.all) ? json_dumps(x.all, JSON_COMPACT) : NULL;
    json_decref(x.all);
    if (text && strlen(text) > INPUTS_MAX)
        registry_inputs_complain(&x, "train_file", "merge its files",
                                 "the data sets have too many files");
    else if (spec_put_inputs(spec, text, &err) < 0)
        registry_inputs_complain(&x, "train_file", NULL, err.text);
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
