/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_hash.c - what the inputs of a step are: its `with` with all values, the hashes of the data
 * sets, models and snapshots that it names, and of plain paths the names, sizes and times of their
 * files. The same inputs, the same result: an earlier item stands in for one with the same hash,
 * while what it left is there.
 *
 * A path below jobs/ is what a job left: its id says which, and its files are no inputs again. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/content/code.h"
#include "argusd/content/registry_inputs.h"
#include "argusd/pipes/pipes_plan.h"
#include "argusd/pipes/pipes_state.h"
#include "argusd/submit/submitted.h"
#include "base/str.h"
#include "base/text.h"

/* GONE_MAX: jobs of earlier runs whose output is gone; who came before them is not asked.
 * PATHS_MAX: plain paths of one step; nothing stands in for a step that names more of them, and the
 * first PATHS_SHOWN are told. */
enum { HASHED_MAX = 2 << 20, GONE_MAX = 8, PATHS_MAX = 1024, PATHS_SHOWN = 64 };
/* Runs are kept in memory, and so is what the inputs of their items held: so much of a whole run,
 * and of one item. */
enum { CONTENTS_OF_RUN = 64 << 10, CONTENTS_LEAST = 256, CONTENTS_MOST = 4096, HASH_SHORT = 12 };

/* ---- what they held ---- */

char *pipes_content(const char *ref, const char *hash)
{
    return xasprintf("%s%s%.*s", ref, *ref && *hash ? " " : "", HASH_SHORT, hash);
}

/* Where there is no room for more the rest is not named; its hash counts all the same. */
static void contents_add(struct pipes_inputs *in,
                         const char *name,
                         const char *ref,
                         const char *hash)
{
    _cleanup_(freep) char *value = pipes_content(ref, hash);
    size_t needs = strlen(name) + strlen(value) + sizeof("\"\":\"\",");
    if (needs > in->contents_room)
        return;
    in->contents_room -= needs;
    (void)json_object_set_new(in->contents, name, json_string(value)); /* no UTF-8: left out */
}

/* The registered inputs and snapshots that a submit would keep with its job. */
static void contents_add_uses(struct pipes_inputs *in, const char *inputs, const char *code)
{
    _cleanup_(json_unrefp) json_t *named = json_loads(str_or(inputs, "[]"), 0, NULL);
    _cleanup_(json_unrefp) json_t *trees = json_loads(str_or(code, "[]"), 0, NULL);
    const json_t *use;
    size_t i;
    json_array_foreach (named, i, use) {
        _cleanup_(freep) char *name =
            xasprintf("%s %s", json_get_str(use, "key", ""), json_get_str(use, "text", ""));
        contents_add(in, name, json_get_str(use, "ref", ""), json_get_str(use, "hash", ""));
    }
    json_array_foreach (trees, i, use)
        contents_add(in, json_get_str(use, "key", ""), json_get_str(use, "name", ""),
                     json_get_str(use, "hash", ""));
}

/* ---- plain paths ---- */

#define X(word) #word,
static const char *const path_state_names[] = {PIPES_PATH_STATES(X) NULL};
#undef X
static_assert(array_len(path_state_names) == PIPES_PATH_COUNT + 1, "one word per state");

static const struct field path_rows[] = {
    FIELD_AT(pipes_path, "path", FIELD_STR, path, .flags = FIELD_ALWAYS),
    FIELD_AT(pipes_path,
             "state",
             FIELD_ENUM,
             state,
             .names = path_state_names,
             .doc = "compared: names, sizes and times of its files count as input; partly: only "
                    "its own time, since it has too many; unseen: nothing of it counts"),
    FIELD_AT(pipes_path, "files", FIELD_INT, files, .doc = "names that were compared"),
};
const struct field_table pipes_path_table = FIELD_TABLE("PipelinePath", path_rows, pipes_path);

void pipes_paths_release(struct field_list *paths)
{
    struct pipes_path *v = paths->v;
    for (size_t i = 0; i < paths->n; i++)
        free(v[i].path);
    free(v);
    *paths = (struct field_list){0};
}

/* Appends what is seen of it. False: it could not be looked at, or not yet. */
static bool path_append(struct pipes_inputs *in,
                        const struct walk_place *place,
                        struct pipes_path *ret)
{
    const struct pathsum *sum = pipes_sight_sum(in->sight, place);
    if (!sum)
        return false;
    ret->files = (int64_t)sum->files;
    ret->state = !sum->is_there ? PIPES_PATH_missing
                 : sum->is_cut  ? PIPES_PATH_partly
                                : PIPES_PATH_compared;
    (void)buf_addf(&in->all, "\npath %s %s", place->path, sum->hash); /* shows in all.failed */
    contents_add(in, ret->path, "", sum->is_there ? sum->hash : path_state_names[ret->state]);
    return true;
}

/* A text that may be a path. False: it is one, and what is there is not known. */
static bool path_add(const struct pipe_life *r,
                     const struct access_who *who,
                     const char *text,
                     struct pipes_inputs *in)
{
    struct walk_place place = {0};
    _cleanup_(freep) char *own = xstrdup(text);
    struct pipes_path path = {.path = own, .state = PIPES_PATH_unseen};
    bool ok = true, is_job = false;
    if (!text || (*text != '/' && !str_starts(text, "${SHARED_ROOT}/")))
        return true;
    if (in->n_paths == PATHS_MAX)
        return false;
    in->n_paths++;
    if (walk_parse(r->pipes->a->settings->shared_root, text, &place, NULL) == 0) {
        const struct access_thing thing = {.kind = ACCESS_KIND_FILE,
                                           .name = place.path,
                                           .owner = place.zone == WALK_USER ? place.name : NULL,
                                           .is_common = place.zone == WALK_COMMON};
        is_job = place.zone == WALK_JOB;
        if (!is_job && access_check(who, ACCESS_FILES_SEE, "read", &thing, NULL) == 0)
            ok = path_append(in, &place, &path);
        walk_place_release(&place);
    }
    if (is_job || in->paths.n == PATHS_SHOWN)
        return ok;
    struct pipes_path *v = xrealloc(in->paths.v, in->paths.n + 1, sizeof(*v));
    v[in->paths.n++] = path;
    own = NULL; /* it is the list's */
    in->paths.v = v;
    return ok;
}

/* Those of a JobSpec, before names in it are resolved. */
static bool path_add_all(const struct pipe_life *r,
                         const struct access_who *who,
                         const struct spec *spec,
                         struct pipes_inputs *in)
{
    const struct strv *lists[] = {&spec->extra_pythonpath, &spec->train_file, &spec->val_file};
    const char *reward = spec->reward_fn_path, *colon = reward ? strrchr(reward, ':') : NULL;
    _cleanup_(freep) char *file = colon ? xstrndup(reward, (size_t)(colon - reward)) : NULL;
    const char *single[] = {spec->code_path, spec->working_dir, spec->model_id,
                            file ? file : reward};
    bool ok = true;
    for (size_t i = 0; i < array_len(single); i++)
        ok = path_add(r, who, single[i], in) && ok;
    for (size_t i = 0; i < array_len(lists); i++)
        for (size_t k = 0; k < lists[i]->n; k++)
            ok = path_add(r, who, lists[i]->v[k], in) && ok;
    return ok;
}

/* ---- all inputs ---- */

bool pipes_name_inputs(const struct pipe_life *r, const char *with, struct pipes_inputs *out)
{
    const struct api *a = r->pipes->a;
    const struct http_principal p = pipes_principal(r);
    struct access_who who;
    struct spec spec = {0};
    struct problems ps = {0};
    _cleanup_(freep) char *made = NULL, *inputs = NULL, *code = NULL;
    people_who(a->people, &p, &who);
    struct submitted in = {.settings = a->settings,
                           .presets = a->presets,
                           .who = &who,
                           .text = with,
                           .len = strlen(with)};
    bool ok = submitted_read(&in, &spec, &made, &ps) == 0;
    if (ok)
        ok = path_add_all(r, &who, &spec, out);
    if (ok)
        code = code_resolve(a->snapshots, r->user, &spec, &ps);
    ok = ok && !ps.errors && registry_resolve(a->registry, &who, &spec, &inputs, &ps) == 0;
    if (ok) /* a failure to append shows in all.failed */
        (void)buf_addf(&out->all, "\n%s\n%s\n%s", str_or(made, ""), str_or(code, ""),
                       str_or(inputs, ""));
    if (ok)
        contents_add_uses(out, inputs, code);
    spec_release(&spec);
    problems_release(&ps);
    return ok;
}

/* What a publish takes, where it is a path. */
static bool pipes_name_source(const struct pipe_life *r, const char *with, struct pipes_inputs *out)
{
    const struct http_principal p = pipes_principal(r);
    _cleanup_(json_unrefp) json_t *form = json_loads(with, 0, NULL);
    struct access_who who;
    people_who(r->pipes->a->people, &p, &who);
    return path_add(r, &who, json_get_str(form, "source", NULL), out);
}

/* What a preparation reads: the raw data set as it would find it now, and its script. */
static bool pipes_name_preparation(const struct pipe_life *r,
                                   const char *with,
                                   struct pipes_inputs *out)
{
    const struct api *a = r->pipes->a;
    const struct http_principal p = pipes_principal(r);
    _cleanup_(json_unrefp) json_t *form = json_loads(with, 0, NULL);
    const char *name = json_get_str(form, "name", "");
    struct access_who who;
    struct dataref asked;
    struct registry_entry *e = NULL;
    char ref[REGISTRY_REF_MAX];
    people_who(a->people, &p, &who);
    if (!dataref_read(name, &asked) ||
        registry_find(a->registry, REGISTRY_DATASET, &who, &asked, &e, NULL) < 0 ||
        e->state != REGISTRY_ready)
        return false;
    _cleanup_(freep) char *key = xasprintf("name %s", name);
    (void)buf_addf(&out->all, "\n%s\n%s", e->key,
                   str_or(e->hash, "")); /* a failure shows in all.failed */
    contents_add(out, key, registry_ref(e, ref), str_or(e->hash, ""));
    return path_add(r, &who, json_get_str(form, "with", NULL), out);
}

static size_t contents_room_of(const struct pipe_life *r)
{
    size_t share = CONTENTS_OF_RUN / (r->run.n + 1);
    return share < CONTENTS_LEAST ? CONTENTS_LEAST : share > CONTENTS_MOST ? CONTENTS_MOST : share;
}

bool pipes_hash_inputs(struct pipe_life *r,
                       size_t item,
                       const char *with,
                       struct pipes_sight *sight,
                       struct field_list *ret_paths)
{
    struct pipe_item *i = &r->run.v[item];
    const struct pipe_step *s = &r->pipe->steps[i->step];
    struct pipes_inputs in = {.sight = sight,
                              .all = BUF_INIT(HASHED_MAX),
                              .contents = json_object(),
                              .contents_room = contents_room_of(r)};
    unsigned char hash[HASH_BYTES];
    (void)buf_addf(&in.all, "%s\n%s", pipe_uses_to_string((enum pipe_uses)s->uses), with);
    bool ok = true;
    if (s->uses == PIPE_USES_JOB)
        ok = pipes_name_inputs(r, with, &in);
    else if (s->uses == PIPE_USES_DEPLOY)
        ok = pipes_name_deploy(r, with, &in);
    else if (s->uses == PIPE_USES_PUBLISH)
        ok = pipes_name_source(r, with, &in);
    else if (s->uses == PIPE_USES_PREPARE)
        ok = pipes_name_preparation(r, with, &in);
    ok = ok && !in.all.failed;
    _cleanup_(freep) char *contents = ok ? json_dumps(in.contents, JSON_COMPACT) : NULL;
    set_str(&i->contents, contents);
    i->hash[0] = 0;
    if (ok) {
        hash_sha256(buf_str(&in.all), in.all.len, hash);
        (void)str_hex(hash, sizeof(hash), i->hash);
    }
    buf_release(&in.all);
    json_decref(in.contents);
    if (ret_paths)
        *ret_paths = in.paths;
    else
        pipes_paths_release(&in.paths);
    return ok;
}

/* ---- who stands in for it ---- */

void pipes_earlier_release(struct pipes_earlier *e)
{
    free(e->gone);
    free(e->gone_in);
    *e = (struct pipes_earlier){0};
}

/* While the references of a pipeline are looked at: does one read the newest checkpoint of a step?
 */
struct reading_latest {
    const char *step;
    bool found;
};

static void hash_on_ref(const struct pipe_ref *ref, void *arg)
{
    struct reading_latest *l = arg;
    l->found = l->found ||
               (ref->n == 4 && str_eq(ref->part[0], "steps") && str_eq(ref->part[1], l->step) &&
                str_eq(ref->part[2], "checkpoint") && str_starts(ref->part[3], "latest"));
}

static bool hash_reads_latest(const struct pipe *p, const struct pipe_step *step)
{
    struct reading_latest l = {.step = step->name};
    for (size_t i = 0; i < p->n_steps && !l.found; i++)
        pipe_step_each_ref(&p->steps[i], PIPE_REFS_IF | PIPE_REFS_WITH, hash_on_ref, &l);
    return l.found;
}

/* What the job of a step left, that is gone; borrowed from left. Retention may have let the newest
 * checkpoint go, which matters to who reads it alone. */
static const char *hash_gone_of_job(const struct pipe_life *r,
                                    const struct pipe_step *step,
                                    const json_t *left,
                                    struct pipes_sight *sight)
{
    const json_t *checkpoint = json_get_object(left, "checkpoint");
    const char *paths[] = {
        json_get_str(left, "dir", NULL), json_get_str(checkpoint, "best_path", NULL),
        hash_reads_latest(r->pipe, step) ? json_get_str(checkpoint, "latest_path", NULL) : NULL};
    for (size_t i = 0; i < array_len(paths); i++)
        if (paths[i] && pipes_sight_misses(sight, paths[i]))
            return paths[i];
    return NULL;
}

static const char *hash_gone_of_entry(const struct pipe_life *r,
                                      int uses,
                                      const char *job,
                                      struct pipes_sight *sight)
{
    enum registry_kind kind = uses == PIPE_USES_PUBLISH ? REGISTRY_MODEL : REGISTRY_DATASET;
    const struct registry_entry *e;
    for (size_t pos = 0; (e = registry_next(r->pipes->a->registry, kind, &pos));)
        if (str_eq(e->job, job) && e->path && pipes_sight_misses(sight, e->path))
            return e->path;
    return NULL;
}

/* Is it there by argusd's own records, before anybody looks? */
static bool pipes_is_recorded(const struct pipe_life *r, int uses, const struct pipe_item *i)
{
    if (uses == PIPE_USES_DEPLOY)
        return pipes_is_deployed(r, i);
    if (!i->job || archives_check_files(r->pipes->a->archives, i->job, NULL) < 0)
        return false;
    return uses == PIPE_USES_JOB || pipes_entry_is_ready(r, uses, i->job) > 0;
}

/* Heap; NULL: all is there, or it was not looked at yet. */
static char *pipes_find_gone(const struct pipe_life *r,
                             const struct pipe_step *step,
                             const struct pipe_item *i,
                             struct pipes_sight *sight)
{
    if (step->uses == PIPE_USES_DEPLOY)
        return NULL;
    if (step->uses != PIPE_USES_JOB)
        return xstrdup(hash_gone_of_entry(r, step->uses, i->job, sight));
    _cleanup_(json_unrefp) json_t *left = i->left ? json_loads(i->left, 0, NULL) : NULL;
    return xstrdup(hash_gone_of_job(r, step, left, sight));
}

/* False: go on with the run before. */
static bool pipes_try_earlier(const struct pipe_life *r,
                              const struct pipe_step *step,
                              const struct pipe_life *other,
                              const struct pipe_item *i,
                              struct pipes_sight *sight,
                              struct pipes_earlier *ret)
{
    if (!pipes_is_recorded(r, step->uses, i))
        return false;
    _cleanup_(freep) char *gone = pipes_find_gone(r, step, i, sight);
    if (!gone) {
        ret->item = i;
        ret->run = other;
        return true;
    }
    if (!ret->gone) {
        ret->gone = gone;
        gone = NULL;
        ret->gone_in = xstrdup(str_or(i->earlier, other->id));
    }
    return false;
}

void pipes_find_earlier(const struct pipe_life *r,
                        const struct pipe_step *step,
                        const char *hash,
                        struct pipes_sight *sight,
                        struct pipes_earlier *ret)
{
    const char *job = NULL; /* of the one that was tried before: runs share jobs */
    int tried = 0;
    const struct pipes_filed *f = pipes_index_find(r, hash);
    for (; f && tried < GONE_MAX; f = f->older) {
        const struct pipe_item *item = &f->run->run.v[f->item];
        if (f->run != r && str_eq(f->run->id, r->id)) /* the plan of a retry is about that one */
            continue;
        if (item->state != PIPE_SUCCEEDED || !str_eq(item->hash, hash))
            continue;
        if (pipes_try_earlier(r, step, f->run, item, sight, ret))
            return;
        tried += !str_eq(item->job, job);
        job = item->job;
    }
}
