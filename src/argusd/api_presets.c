/* SPDX-License-Identifier: Apache-2.0 */
/* api_presets.c - /v1/presets: list, look, store, remove. Filling is the submit's business
 * (submitted.h). */
#include <stdlib.h>
#include <string.h>

#include "argusd/api_people.h"
#include "argusd/presets.h"
#include "argusd/secretcheck.h"
#include "base/str.h"

enum { ITEM_MAX = 256 << 10 };

/* ---- answers ---- */

static void put_item(struct jout *j, const struct preset_item *i, bool whole)
{
    jout_open(j, NULL, '{');
    jout_str(j, "name", i->name);
    jout_str(j, "project", i->project);
    jout_bool(j, "shipped", !i->project);
    jout_str(j, "workload", i->preset ? preset_workload(i->preset) : NULL);
    jout_str(j, "description",
             i->preset ? preset_description(i->preset) : "cannot be read by this version");
    if (i->preset) {
        preset_put_holes(i->preset, j, "holes");
    } else {
        jout_open(j, "holes", '[');
        jout_close(j, ']');
    }
    jout_str(j, "hash", i->hash);
    jout_str(j, "changed_by", i->project ? i->changed_by : NULL);
    jout_time(j, "created_at", i->created_at);
    jout_time(j, "changed_at", i->changed_at);
    if (whole)
        jout_str(j, "text", i->text);
    jout_close(j, '}');
}

static char *item_text(const struct preset_item *i)
{
    struct buf out = BUF_INIT(ITEM_MAX);
    struct jout j = jout_begin(&out);
    put_item(&j, i, false);
    return buf_take(&out);
}

static void answer(struct http_req *req, struct api *a, const struct preset_item *i, int status)
{
    struct buf out = BUF_INIT(ITEM_MAX);
    struct jout j = jout_begin(&out);
    put_item(&j, i, true);
    http_reply_json(req, status, &out, api_barrier(a));
    buf_release(&out);
}

/* As what happened to its project: so its members see it. */
static void note(struct http_req *req,
                 struct api *a,
                 const char *kind,
                 const char *verb,
                 const struct preset_item *i,
                 char *before,
                 char *after)
{
    _cleanup_(freep) char *object = xasprintf("project/%s", i->project);
    _cleanup_(freep) char *text = xasprintf("preset '%s' %s", i->name, verb);
    struct api_change change = {
        .kind = kind, .object = object, .text = text, .before = before, .after = after};
    api_people_note(req, a, &change);
}

/* ---- list ---- */

static int by_name(const void *x, const void *y)
{
    const struct preset_item *a = *(const struct preset_item *const *)x;
    const struct preset_item *b = *(const struct preset_item *const *)y;
    int r = strcmp(a->name, b->name);
    return r ? r : strcmp(str_or(a->project, ""), str_or(b->project, ""));
}

static bool is_wanted(const struct http_req *req,
                      const struct access_who *who,
                      const struct preset_item *i)
{
    const char *project = http_req_query(req, "project");
    const char *workload = http_req_query(req, "workload");
    if (project && !str_eq(i->project, project))
        return false;
    if (workload && (!i->preset || !str_eq(preset_workload(i->preset), workload)))
        return false;
    return presets_may(i, who, ACCESS_PRESET_SEE, "see", NULL) == 0;
}

void api_presets(struct http_req *req, void *app)
{
    struct api *a = app;
    struct access_who who;
    const struct preset_item *i, **v = xcalloc(presets_count(a->presets) + 1, sizeof(void *));
    struct buf out = BUF_INIT(API_PEOPLE_LIST_MAX);
    struct jout j = jout_begin(&out);
    size_t n = 0;
    people_who(a->people, http_req_principal(req), &who);
    for (size_t pos = 0; (i = presets_next(a->presets, &pos));)
        if (is_wanted(req, &who, i))
            v[n++] = i;
    xsort(v, n, sizeof(void *), by_name);
    jout_open(&j, NULL, '{');
    jout_open(&j, "presets", '[');
    for (size_t k = 0; k < n; k++)
        put_item(&j, v[k], false);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
    free(v);
}

/* ---- one ---- */

/* Of the project that is asked for; without one of "default", else the shipped one. NULL: it was
 * answered. */
static const struct preset_item *find(struct http_req *req,
                                      struct api *a,
                                      enum access_action action,
                                      const char *verb)
{
    struct access_who who;
    struct err err = {0};
    const char *name = http_req_param(req, "name"), *project = http_req_query(req, "project");
    const struct preset_item *i =
        presets_find(a->presets, str_or(project, ACCESS_DEFAULT_PROJECT), name);
    if (!i && !project)
        i = presets_find(a->presets, NULL, name);
    people_who(a->people, http_req_principal(req), &who);
    int r = i ? presets_may(i, &who, action, verb, &err)
              : err_set(&err, ERR_NOT_FOUND, "no preset '%.70s'%s%.40s", name,
                        project ? " of project " : "", str_or(project, ""));
    if (r == 0 && action == ACCESS_PRESET_CHANGE && store_is_failing(a->store))
        r = err_set(&err, ERR_STORE, "the store cannot write now: nothing can be changed");
    if (r < 0)
        api_fail(req, &err, api_reader_barrier(a));
    return r < 0 ? NULL : i;
}

void api_preset_get(struct http_req *req, void *app)
{
    const struct preset_item *i = find(req, app, ACCESS_PRESET_SEE, "see");
    if (i)
        answer(req, app, i, 200);
}

void api_preset_remove(struct http_req *req, void *app)
{
    struct api *a = app;
    const struct preset_item *i = find(req, a, ACCESS_PRESET_CHANGE, "remove");
    if (!i)
        return;
    note(req, a, "preset_removed", "removed", i, item_text(i), NULL);
    answer(req, a, i, 200);
    presets_remove(a->presets, i);
}

/* ---- store ---- */

/* May he store this name there? */
static int check_place(struct http_req *req,
                       struct api *a,
                       const char *project,
                       const struct preset_item *old,
                       struct err *err)
{
    struct access_who who;
    people_who(a->people, http_req_principal(req), &who);
    int r = people_find_project(a->people, project)
                ? access_check_submit(&who, project, err)
                : err_set(err, ERR_NOT_FOUND, "no project '%.60s'", project);
    if (r == 0 && old)
        r = presets_may(old, &who, ACCESS_PRESET_CHANGE, "change", err);
    if (r == 0 && store_is_failing(a->store))
        r = err_set(err, ERR_STORE, "the store cannot write now: nothing can be changed");
    return r;
}

/* Whoever uses it reads it: what looks like a secret is not kept. */
static int check_no_secret(const struct preset *p, struct problems *ps)
{
    struct buf out = BUF_INIT(DOC_MAX_BYTES);
    struct problems none = {0};
    struct spec spec = {0};
    struct doc *d = NULL;
    if (preset_sample(p, &out, &none) == 0 &&
        doc_parse(buf_str(&out), out.len, false, &d, &none) == 0 &&
        spec_read(doc_root(d), NULL, &spec, &none) == 0 && secretcheck_holds(&spec))
        problems_add(ps, PROBLEM_ERROR, "spec.env", 0, 0,
                     "name it under secrets: and store it with 'argus secret set'",
                     "the environment of a preset holds a value under the name of a secret");
    spec_release(&spec);
    doc_free(d);
    problems_release(&none);
    buf_release(&out);
    return ps->errors ? ERR_BAD_SPEC : 0;
}

static int check_text(const char *text, size_t len, struct problems *ps)
{
    struct preset *p = NULL;
    int r = preset_parse(text, len, &p, ps);
    if (r == 0)
        r = check_no_secret(p, ps);
    preset_free(p);
    return r;
}

void api_preset_put(struct http_req *req, void *app)
{
    struct api *a = app;
    size_t len;
    struct err err = {0};
    struct problems ps = {0};
    const char *text = http_req_body(req, &len), *name = http_req_param(req, "name");
    const char *project = str_or(http_req_query(req, "project"), ACCESS_DEFAULT_PROJECT);
    const struct preset_item *i = presets_find(a->presets, project, name);
    bool is_new = !i;
    char *before = i ? item_text(i) : NULL;
    int r = check_place(req, a, project, i, &err);
    if (r == 0)
        r = check_text(text, len, &ps);
    if (r == 0)
        r = presets_put(a->presets, project, name, text, http_req_principal(req)->user,
                        clock_wall(), &i, &ps, &err);
    if (r == 0) {
        note(req, a, is_new ? "preset_added" : "preset_changed", is_new ? "stored" : "stored anew",
             i, before, item_text(i));
        answer(req, a, i, is_new ? 201 : 200);
    } else {
        free(before);
        if (ps.errors)
            api_answer_problems(req, &ps);
        else
            api_fail(req, &err, api_barrier(a));
    }
    problems_release(&ps);
}
