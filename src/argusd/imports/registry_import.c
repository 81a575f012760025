/* SPDX-License-Identifier: Apache-2.0 */
/* registry_import.c - see registry_import.h.
 *
 * The order goes to the tool (lib/argus_import.py) as one argument of its command line, where
 * everybody who sees the job can read it: so no source may bear a password. What is secret comes
 * by the environment, as the job's secrets. A path is checked here as text and by the tool, on
 * the worker, with its links followed. */
#include "argusd/imports/registry_import.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/jobspec.h"
#include "argusd/imports/lineage.h"
#include "argusd/imports/ownjob.h"
#include "argusd/jobs/jobs_rules.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/install.h"

enum { ORDER_MAX = 64 << 10, SPEC_MAX = 128 << 10, INCLUDES_MAX = 100, TEXT_MAX = 2000 };

/* ---- the form ---- */

struct reading {
    struct registry_form f; /* first: see REGISTRY_FORM_ROWS */
    const struct node *lineage;
};

static_assert(offsetof(struct reading, f) == 0, "as its rows say");
#define FORM(member) offsetof(struct reading, member)
static const struct field keys[] = {
    {.name = "name",
     .type = FIELD_STR,
     .offset = FORM(f.name),
     .flags = FIELD_REQUIRED,
     .doc = "what it is called"},
    {.name = "source",
     .type = FIELD_STR,
     .offset = FORM(f.source),
     .flags = FIELD_REQUIRED,
     .doc = "hf://owner/name[@revision], a URL, s3://bucket/prefix, or a path"},
    {.name = "endpoint",
     .type = FIELD_STR,
     .offset = FORM(f.endpoint),
     .doc = "URL of the Hugging Face mirror or of S3"},
    {.name = "sha256", .type = FIELD_STR, .offset = FORM(f.sha256), .doc = "hash of the one file"},
    {.name = "filename",
     .type = FIELD_STR,
     .offset = FORM(f.filename),
     .doc = "name of the file that a URL gives, where the URL does not say it"},
    {.name = "in_place",
     .type = FIELD_BOOL,
     .offset = FORM(f.in_place),
     .doc = "a path stays where it is; else it is copied"},
    {.name = "include",
     .type = FIELD_STRV,
     .offset = FORM(f.include),
     .doc = "patterns of the files that are wanted; all if absent"},
    {.name = "lineage",
     .type = FIELD_NODE,
     .offset = FORM(lineage),
     .schema = "{\"type\":\"object\",\"additionalProperties\":{\"description\":\"as the "
               "importer says it\"}}",
     .doc = "object: what it was made of (job, snapshot, data)"},
    REGISTRY_FORM_ROWS,
};
const struct field_table registry_form_table = {.name = "ImportForm",
                                                .rows = keys,
                                                .n = array_len(keys),
                                                .size = sizeof(struct reading)};

void registry_form_release(struct registry_form *f)
{
    char *texts[] = {f->name,     f->source, f->project, f->endpoint, f->sha256,
                     f->filename, f->pool,   f->python,  f->from_job};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    strv_release(&f->include);
    strv_release(&f->secrets);
    json_decref(f->lineage);
    *f = (struct registry_form){0};
}

static void registry_import_complain(struct problems *ps,
                                     const char *field,
                                     const char *code,
                                     const struct message_arg *args)
{
    problems_add(ps, PROBLEM_ERROR, field, 0, 0, code, args);
}

static bool is_hex(const char *s, size_t n)
{
    return strlen(s) == n && strspn(s, "0123456789abcdefABCDEF") == n;
}

static void check_source(const struct registry_form *f, struct problems *ps)
{
    static const char *const schemes[] = {"hf", "http", "https", "s3", "ftp", "ftps", "sftp"};
    const char *mark = strstr(f->source, "://");
    bool known = *f->source == '/' || str_starts(f->source, "${");
    for (size_t i = 0; mark && i < array_len(schemes); i++)
        known |= strlen(schemes[i]) == (size_t)(mark - f->source) &&
                 !strncmp(f->source, schemes[i], strlen(schemes[i]));
    if (!known)
        registry_import_complain(ps, "source", "import_source", MESSAGE_NO_ARGS);
    size_t host = mark ? strcspn(mark + 3, "/") : 0;
    const char *at = mark ? memchr(mark + 3, '@', host) : NULL;
    if (at && memchr(mark + 3, ':', (size_t)(at - mark - 3)))
        registry_import_complain(ps, "source", "import_password", MESSAGE_NO_ARGS);
    if (f->in_place && mark)
        registry_import_complain(ps, "in_place", "import_in_place", MESSAGE_NO_ARGS);
}

static void check_form(const struct registry_form *f, struct problems *ps)
{
    struct err err = {0};
    const char *texts[] = {f->source, f->endpoint, f->filename, f->pool, f->python};
    if (dataref_check_name("data set or model", f->name, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, "name", 0, 0, &err);
    check_source(f, ps);
    for (size_t i = 0; i < array_len(texts); i++)
        if (texts[i] && strlen(texts[i]) > TEXT_MAX)
            registry_import_complain(ps, NULL, "import_text_long", MESSAGE_NO_ARGS);
    if (f->sha256 && !is_hex(f->sha256, 64))
        registry_import_complain(ps, "sha256", "import_sha256", MESSAGE_NO_ARGS);
    if (f->include.n > INCLUDES_MAX || f->secrets.n > INCLUDES_MAX)
        registry_import_complain(ps, "include", "form_too_many",
                                 MESSAGE_ARGS(MESSAGE_NUM("most", 100)));
    if (f->filename && (strchr(f->filename, '/') || *f->filename == '.'))
        registry_import_complain(ps, "filename", "import_filename", MESSAGE_NO_ARGS);
}

static json_t *read_object(const struct node *n, struct problems *ps)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(8192);
    struct jout j = jout_begin(&text);
    json_t *o = NULL;
    if (!n || node_is_null(n))
        return NULL;
    node_to_json(n, &j, NULL);
    if (n->kind != NODE_MAP || text.failed ||
        json_parse(buf_str(&text), text.len, 8192, &o, NULL) < 0)
        registry_import_complain(ps, "lineage", "import_lineage", MESSAGE_NO_ARGS);
    return o;
}

int registry_form_read(const char *body, size_t n, struct registry_form *f, struct problems *ps)
{
    struct doc *d = NULL;
    struct reading r = {0};
    if (doc_parse(n ? body : "{}", n ? n : 2, true, &d, ps) < 0)
        return ERR_BAD_SPEC;
    conf_read(keys, array_len(keys), doc_root(d), &r, ps);
    if (!ps->errors)
        r.f.lineage = read_object(r.lineage, ps);
    doc_free(d);
    *f = r.f;
    if (!ps->errors)
        check_form(f, ps);
    return ps->errors ? ERR_BAD_SPEC : 0;
}

/* ---- a path as source ---- */

static bool is_plain(const char *path)
{
    return !strstr(path, "//") && !strstr(path, "/../") && !strstr(path, "/./") &&
           !str_ends(path, "/") && !str_ends(path, "/..") && !str_ends(path, "/.");
}

static bool registry_import_is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return !strncmp(path, dir, n) && path[n] == '/' && path[n + 1];
}

static const char *root_named(const char *name, void *arg)
{
    const struct strv *roots = arg; /* shared root, user root */
    if (!strcasecmp(name, "SHARED_ROOT"))
        return roots->v[0];
    return !strcasecmp(name, "USER_ROOT") ? roots->v[1] : NULL;
}

/* The directories that a path of his may lie under: common/, his own, and jobs that he sees.
 * seen_job: one of which that is known; NULL: none. */
static int find_roots(const struct importer *im,
                      const struct http_principal *p,
                      const char *path,
                      const char *seen_job,
                      struct strv *ret,
                      struct err *err)
{
    const char *root = im->settings->shared_root;
    _cleanup_(freep) char *jobs = xasprintf("%s/jobs", root);
    strv_addf(ret, "%s/common", root);
    strv_addf(ret, "%s/users/%s", root, p->user);
    if (registry_import_is_below(path, ret->v[0]) || registry_import_is_below(path, ret->v[1]))
        return 0;
    if (registry_import_is_below(path, jobs)) {
        const char *id = path + strlen(jobs) + 1;
        _cleanup_(freep) char *name = xstrndup(id, strcspn(id, "/"));
        if (id[strlen(name)] &&
            (str_eq(name, seen_job) || jobs_may_be_seen(im->jobs, im->people, p, name))) {
            strv_addf(ret, "%s/%s", jobs, name);
            return 0;
        }
    }
    return message_refuse(err, ERR_BAD_SPEC, "import_outside",
                          MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("one", ret->v[0]),
                                       MESSAGE_STR("two", ret->v[1])));
}

static int registry_import_expand(const struct importer *im,
                                  const struct http_principal *p,
                                  const char *source,
                                  char **ret,
                                  struct err *err)
{
    struct buf out = BUF_INIT(8192);
    struct strv names = {0};
    strv_add(&names, im->settings->shared_root);
    strv_addf(&names, "%s/users/%s", im->settings->shared_root, p->user);
    int r = str_expand(&out, source, root_named, &names, err);
    strv_release(&names);
    if (r == 0 && !is_plain(buf_str(&out)))
        r = message_refuse(err, ERR_BAD_SPEC, "import_path_form",
                           MESSAGE_ARGS(MESSAGE_STR("path", source)));
    if (r == 0)
        *ret = buf_take(&out);
    buf_release(&out);
    return r;
}

int registry_read_path(const struct importer *im,
                       const struct http_principal *p,
                       const char *source,
                       const char *seen_job,
                       char **ret,
                       struct strv *roots,
                       struct err *err)
{
    _cleanup_(freep) char *path = NULL;
    if (strstr(source, "://")) {
        *ret = xstrdup(source);
        return 0;
    }
    int r = registry_import_expand(im, p, source, &path, err);
    if (r == 0)
        r = find_roots(im, p, path, seen_job, roots, err);
    if (r < 0) {
        err->code = ERR_BAD_SPEC;
        return ERR_BAD_SPEC;
    }
    *ret = path;
    path = NULL;
    return 0;
}

char *registry_source_job(const struct importer *im,
                          const struct http_principal *p,
                          const char *source,
                          char **ret_path)
{
    _cleanup_(freep) char *path = NULL;
    struct err err = {0}; /* whoever reads the path says it */
    if (strstr(source, "://") || registry_import_expand(im, p, source, &path, &err) < 0)
        return NULL;
    char *job = lineage_job_of(im->settings, path);
    if (job) {
        *ret_path = path;
        path = NULL;
    }
    return job;
}

void registry_form_take_lineage(struct registry_form *f, char *taken_job, json_t *taken)
{
    f->from_job = taken_job;
    if (f->lineage)
        (void)json_object_set_new(taken, "said", f->lineage); /* fails for lack of memory */
    f->lineage = taken;
}

/* ---- the order and the job ---- */

static void registry_import_put_list(struct jout *j, const char *key, const struct strv *list)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < list->n; i++)
        jout_str(j, NULL, list->v[i]);
    jout_close(j, ']');
}

static void registry_import_put_text(struct jout *j, const char *key, const char *value)
{
    if (value)
        jout_str(j, key, value);
}

static void registry_import_write_order(const struct importer *im,
                                        const struct registry_entry *e,
                                        const struct registry_form *f,
                                        const struct strv *roots,
                                        struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "source", e->source);
    registry_put_order(&j, im, e, roots);
    if (e->in_place)
        jout_str(&j, "how", "in_place");
    if (e->is_made) /* by a job of ours */
        jout_bool(&j, "open", true);
    registry_import_put_text(&j, "endpoint", f->endpoint);
    registry_import_put_text(&j, "sha256", f->sha256);
    registry_import_put_text(&j, "filename", f->filename);
    if (f->include.n)
        registry_import_put_list(&j, "include", &f->include);
    jout_close(&j, '}');
}

static void write_spec(const struct settings *s,
                       const struct registry_entry *e,
                       const struct registry_form *f,
                       const char *verb,
                       const char *order,
                       struct buf *out)
{
    struct jout j = jout_begin(out);
    char ref[REGISTRY_REF_MAX];
    _cleanup_(freep) char *lib = fsroot_lib_dir(s->shared_root);
    _cleanup_(freep) char *tool = xasprintf("%s/argus_%s.py", lib, verb);
    _cleanup_(freep) char *name =
        xasprintf("%s %s %s", verb, registry_kind_name(e->kind), registry_ref(e, ref));
    jout_open(&j, NULL, '{');
    jout_str(&j, "workload", "ray");
    jout_str(&j, "submission_id", e->job);
    jout_str(&j, "name", name);
    registry_import_put_text(&j, "project", f->project);
    registry_import_put_text(&j, "pool", f->pool);
    jout_open(&j, "entrypoint", '[');
    jout_str(&j, NULL, "python3");
    jout_str(&j, NULL, tool);
    jout_str(&j, NULL, order);
    jout_close(&j, ']');
    if (f->secrets.n)
        registry_import_put_list(&j, "secrets", &f->secrets);
    if (f->python) {
        jout_open(&j, "runtime_env", '{');
        jout_str(&j, "py_executable", f->python);
        jout_close(&j, '}');
    }
    jout_open(&j, "restart", '{');
    jout_int(&j, "max", 3);
    jout_close(&j, '}');
    jout_str(&j, "stop_grace", "10s");
    jout_close(&j, '}');
}

struct registry_entry *registry_make(const struct importer *im,
                                     const struct http_principal *p,
                                     enum registry_kind kind,
                                     const struct registry_form *f)
{
    char id[SPEC_ID_BUF];
    struct registry_entry *e = xcalloc(1, sizeof(*e));
    ownjob_choose_id(im, WORKLOAD_DATA, id);
    e->kind = kind;
    e->state = REGISTRY_importing;
    e->name = xstrdup(f->name);
    e->owner = xstrdup(p->user);
    e->project = xstrdup(str_eq(f->project, ACCESS_DEFAULT_PROJECT) ? "" : str_or(f->project, ""));
    e->is_common = f->is_common;
    e->in_place = f->in_place;
    e->job = xstrdup(id);
    e->lineage = json_incref(f->lineage);
    e->is_recorded = f->from_job != NULL;
    e->created_at = clock_wall();
    return e;
}

static int registry_submit_job(const struct importer *im,
                               const struct http_principal *p,
                               const struct registry_entry *e,
                               const struct registry_form *f,
                               const char *verb,
                               const char *order,
                               const char **ret_field,
                               struct err *err)
{
    struct live *l;
    struct buf spec = BUF_INIT(SPEC_MAX);
    write_spec(im->settings, e, f, verb, order, &spec);
    struct checkpoints_use use = {.user = p->user, .text = buf_str(&spec)}; /* may name one */
    checkpoints_use(im->checkpoints, &use);
    int r = checkpoints_check_use(&use, err);
    if (r == 0)
        r = ownjob_submit(im, p, e->job, buf_str(&spec), &l, ret_field, err);
    checkpoints_unuse(&use); /* from now on the job says so */
    buf_release(&spec);
    return r;
}

int registry_submit(const struct importer *im,
                    const struct http_principal *p,
                    struct registry_entry *e,
                    const struct registry_form *f,
                    const char *verb,
                    const char *order,
                    const char **ret_field,
                    struct err *err)
{
    int r = registry_submit_job(im, p, e, f, verb, order, ret_field, err);
    if (r < 0)
        registry_drop(im->registry, e);
    return r;
}

void registry_put_order(struct jout *j,
                        const struct importer *im,
                        const struct registry_entry *e,
                        const struct strv *roots)
{
    const struct settings *s = im->settings;
    static const struct message_listener to = {.language = MESSAGE_ENGLISH}; /* a program */
    _cleanup_(freep) char *kept =
        e->in_place ? NULL : storage_keep(im->storage, e->owner, e->project);
    _cleanup_(freep) char *over = message_kept_say(kept, &to);
    if (over) {
        jout_int(j, "max_bytes", (int64_t)storage_left(im->storage, e->owner, e->project));
        jout_str(j, "over", over);
    }
    _cleanup_(freep) char *staging = registry_staging(s, e), *report = registry_report(s, e->job);
    jout_str(j, "what", registry_kind_word(e->kind));
    jout_str(j, "goal", e->path);
    jout_str(j, "staging", staging);
    jout_str(j, "report", report);
    registry_import_put_list(j, "roots", roots);
}

int registry_import(const struct importer *im,
                    const struct http_principal *p,
                    enum registry_kind kind,
                    const struct registry_form *f,
                    struct registry_entry **ret,
                    const char **ret_field,
                    struct err *err)
{
    struct strv roots = {0};
    struct registry_entry *e = registry_make(im, p, kind, f);
    struct buf order = BUF_INIT(ORDER_MAX);
    *ret_field = "source";
    int r = registry_read_path(im, p, f->source, f->from_job, &e->source, &roots, err);
    if (r == 0)
        r = e->in_place ? 0 : storage_check(im->storage, e->owner, e->project, 0, err);
    if (r == 0) {
        if (e->in_place)
            e->path = xstrdup(e->source);
        r = registry_add(im->registry, e, &e, err);
    } else {
        registry_entry_free(e);
    }
    if (r == 0) {
        registry_import_write_order(im, e, f, &roots, &order);
        r = registry_submit(im, p, e, f, "import", buf_str(&order), ret_field, err);
        *ret = e; /* gone when r < 0, and then nobody looks */
    }
    strv_release(&roots);
    buf_release(&order);
    return r;
}

/* Where its maker ran there is a place for this one, too. NULL: the maker is not in memory any
 * more. */
static const char *registry_import_pool(const struct importer *im, const char *maker)
{
    const struct live *l = jobs_find_any(im->jobs, maker);
    const struct spec *s = l ? jobspec_of(im->settings, l->job) : NULL;
    return s && s->pool.n ? s->pool.v[0] : NULL;
}

int registry_import_made(const struct importer *im,
                         const struct http_principal *p,
                         struct registry_entry *e,
                         struct err *err)
{
    char id[SPEC_ID_BUF];
    const char *field;
    char *maker = e->job;
    struct strv roots = {0};
    struct buf order = BUF_INIT(ORDER_MAX);
    const struct registry_form f = {
        .project = *e->project ? e->project : NULL,
        .pool = (char *)(uintptr_t)registry_import_pool(im, maker), /* only written out */
    };
    strv_addf(&roots, "%s/jobs/%s", im->settings->shared_root, maker);
    ownjob_choose_id(im, WORKLOAD_DATA, id);
    e->job = xstrdup(id);
    registry_import_write_order(im, e, &f, &roots, &order);
    int r = registry_submit_job(im, p, e, &f, "import", buf_str(&order), &field, err);
    if (r < 0) {
        free(e->job);
        e->job = maker;
    } else {
        free(maker);
        e->is_made = false;
    }
    strv_release(&roots);
    buf_release(&order);
    return r;
}
