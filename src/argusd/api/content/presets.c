/* SPDX-License-Identifier: Apache-2.0 */
/* presets.c - /v1/presets: list, look, store, remove. Filling is the submit's business
 * (submitted.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/content/removalplan.h"
#include "argusd/kit/part.h"
#include "argusd/kit/resource.h"
#include "argusd/launch/secretcheck.h"
#include "base/message.h"
#include "base/str.h"

enum { HOLES_MAX = 256 << 10 };

/* ---- the page ---- */

struct preset_page {
    struct preset_item item; /* borrowed, and so are the texts */
    bool shipped;
    const char *workload, *description, *changed_by;
    char *holes; /* JSON */
};
#define PAGE(key, ftype, ...)                                                                      \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct preset_page, key), __VA_ARGS__      \
    }
#define EVERYWHERE (FIELD_SHOWN | FIELD_LISTED)
#define HOLES                                                                                      \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"           \
    "\"required\":[\"name\",\"type\",\"required\",\"default\",\"example\",\"description\"],"       \
    "\"properties\":{\"name\":" TEXT ",\"type\":" TEXT ",\"required\":" BOOLEAN                    \
    ",\"default\":" AS_IT_CAME("of its type") ",\"example\":" AS_IT_CAME(                          \
        "of its type") ",\"description\":" TEXT "}}}"
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct preset_page, item),
     .of = &preset_item_table,
     .flags = FIELD_BORROWED},
    PAGE(shipped,
         FIELD_BOOL,
         .flags = EVERYWHERE,
         .doc = "it is built into argusd, and belongs to no project"),
    PAGE(workload, FIELD_STR, .flags = EVERYWHERE | FIELD_BORROWED),
    PAGE(description, FIELD_STR, .flags = EVERYWHERE | FIELD_BORROWED | FIELD_ALWAYS),
    PAGE(holes, FIELD_JSON, .flags = EVERYWHERE | FIELD_ALWAYS, .schema = HOLES),
    PAGE(changed_by, FIELD_STR, .flags = EVERYWHERE | FIELD_BORROWED),
};
static const struct field_table page_table = {.name = "Preset",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct preset_page)};

static char *preset_holes(const struct preset *p)
{
    struct buf out = BUF_INIT(HOLES_MAX);
    struct jout j = jout_begin(&out);
    if (p)
        preset_put_holes(p, &j, NULL);
    else
        (void)buf_adds(&out, "[]"); /* it fits */
    return buf_take(&out);
}

static void preset_page_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct preset_item *i = x;
    struct preset_page *page = out;
    (void)q;
    *page = (struct preset_page){.item = *i,
                                 .shipped = !i->project,
                                 .workload = i->preset ? preset_workload(i->preset) : NULL,
                                 .description = i->preset ? preset_description(i->preset)
                                                          : "cannot be read by this version",
                                 .changed_by = i->project ? i->changed_by : NULL,
                                 .holes = preset_holes(i->preset)};
}

/* Called what happened to its project. */
static char *preset_object(const void *x)
{
    return xasprintf("project/%s", ((const struct preset_item *)x)->project);
}

static void preset_say(struct resource_ask *q, const struct preset_item *i, const char *code)
{
    resource_say(q, code, MESSAGE_ARGS(MESSAGE_STR("name", i->name)));
}

/* ---- which there are ---- */

static const void *preset_next(struct resource_ask *q, size_t *pos)
{
    return presets_next(q->a->presets, pos);
}

static int preset_compare(const void *x, const void *y)
{
    const struct preset_item *a = *(const struct preset_item *const *)x;
    const struct preset_item *b = *(const struct preset_item *const *)y;
    int r = strcmp(a->name, b->name);
    return r ? r : strcmp(str_or(a->project, ""), str_or(b->project, ""));
}

static bool preset_wants(struct resource_ask *q, const void *x)
{
    const struct preset_item *i = x;
    const char *project = http_req_query(q->req, "project");
    const char *workload = http_req_query(q->req, "workload");
    return (!project || str_eq(i->project, project)) &&
           (!workload || (i->preset && str_eq(preset_workload(i->preset), workload)));
}

static int preset_may(struct resource_ask *q,
                      enum access_action action,
                      const char *verb,
                      const void *x)
{
    return presets_may(x, &q->who, action, verb, &q->err);
}

/* The preset of the project that is asked for; without a project that of "default", else the
 * shipped one, which is never stored. */
static const void *preset_find(struct resource_ask *q, const void *asked)
{
    const char *project = http_req_query(q->req, "project");
    const char *into = str_or(project, ACCESS_DEFAULT_PROJECT);
    if (asked && access_check_submit(&q->who, into, NULL) < 0)
        return NULL; /* preset_check() refuses, whether the preset is there or not */
    const struct preset_item *i = presets_find(q->a->presets, into, q->name);
    if (!i && !project && !asked)
        i = presets_find(q->a->presets, NULL, q->name);
    if (!i && !asked && project)
        (void)message_refuse(&q->err, ERR_NOT_FOUND, "no_preset_of",
                             MESSAGE_ARGS(MESSAGE_STR("name", q->name),
                                          MESSAGE_STR("project", project))); /* only fills err */
    return i;
}

static void preset_thing(struct resource_ask *q,
                         const void *x,
                         const void *asked,
                         struct access_thing *ret)
{
    (void)asked;
    if (x)
        *ret = presets_thing(x);
    else
        *ret = (struct access_thing){
            .kind = ACCESS_KIND_PRESET, .name = q->name, .owner = q->who.user};
}

/* ---- store ---- */

struct preset_form {
    const char *text; /* borrowed: the body */
    size_t len;
};
static const struct field form_rows[] = {{.name = "text",
                                          .type = FIELD_STR,
                                          .offset = offsetof(struct preset_form, text),
                                          .flags = FIELD_BORROWED}};
static const struct field_table form_table = {.rows = form_rows,
                                              .n = array_len(form_rows),
                                              .size = sizeof(struct preset_form)};

static int preset_read(struct resource_ask *q, bool is_change, void *asked)
{
    struct preset_form *f = asked;
    (void)is_change;
    f->text = http_req_body(q->req, &f->len);
    return 0;
}

/* Whoever uses it reads it: what looks like a secret is not kept. */
static int preset_check_no_secret(const struct preset *p, struct problems *ps)
{
    struct buf out = BUF_INIT(DOC_MAX_BYTES);
    struct problems none = {0};
    struct spec spec = {0};
    struct doc *d = NULL;
    if (preset_sample(p, &out, &none) == 0 &&
        doc_parse(buf_str(&out), out.len, false, &d, &none) == 0 &&
        spec_read(doc_root(d), NULL, &spec, &none) == 0 && secretcheck_holds(&spec))
        problems_add(ps, PROBLEM_ERROR, "spec.env", 0, 0, "preset_env_secret", MESSAGE_NO_ARGS);
    spec_release(&spec);
    doc_free(d);
    problems_release(&none);
    buf_release(&out);
    return ps->errors ? ERR_BAD_SPEC : 0;
}

static const char *preset_project(struct resource_ask *q)
{
    return str_or(http_req_query(q->req, "project"), ACCESS_DEFAULT_PROJECT);
}

static int preset_check(struct resource_ask *q, const void *old, void *asked)
{
    const struct preset_form *f = asked;
    const char *project = preset_project(q);
    struct preset *p = NULL;
    (void)old;
    int r = people_find_project(q->a->people, project)
                ? access_check_submit(&q->who, project, &q->err)
                : message_refuse(
                      &q->err, ERR_NOT_FOUND, "not_found",
                      MESSAGE_ARGS(MESSAGE_STR("noun", "project"), MESSAGE_STR("name", project)));
    if (r == 0)
        r = preset_parse(f->text, f->len, &p, &q->problems);
    if (r == 0)
        r = preset_check_no_secret(p, &q->problems);
    preset_free(p);
    return r;
}

static const void *preset_write(struct resource_ask *q, const void *old, void *asked)
{
    const struct preset_form *f = asked;
    const struct preset_item *i = NULL;
    int r = presets_put(q->a->presets, preset_project(q), q->name, f->text, q->who.user,
                        clock_wall(), &i, &q->problems, &q->err);
    if (r < 0)
        return NULL;
    preset_say(q, i, old ? "preset_changed" : "preset_added");
    return i;
}

static int preset_check_remove(struct resource_ask *q, const void *x)
{
    preset_say(q, x, "preset_removed");
    return 0;
}

static void preset_plan_remove(struct resource_ask *q, const void *x)
{
    api_plan_removal(q, NULL, x);
}

static bool preset_take_away(struct resource_ask *q, const void *x)
{
    presets_remove(q->a->presets, x);
    return true;
}

/* ---- the noun ---- */

static const struct resource preset_noun = {
    .noun = "preset",
    .kind = ACCESS_KIND_PRESET,
    .collection = "presets",
    .param = "name",
    .page = &page_table,
    .item = FIELD_LISTED,
    .trail = FIELD_LISTED,
    .form = &form_table,
    .may_see = ACCESS_PRESET_SEE,
    .may_change = ACCESS_PRESET_CHANGE,
    .add = {"preset_added", "change"},
    .change = {"preset_changed", "change"},
    .remove = {"preset_removed", "remove"},
    .next = preset_next,
    .wants = preset_wants,
    .compare = preset_compare,
    .find = preset_find,
    .thing = preset_thing,
    .may = preset_may,
    .object = preset_object,
    .fill = preset_page_fill,
    .read = preset_read,
    .check = preset_check,
    .write = preset_write,
    .check_remove = preset_check_remove,
    .plan_remove = preset_plan_remove,
    .take_away = preset_take_away,
};

#define PRESET_YAML                                                                                \
    "application/yaml, application/json, application/x-yaml, text/yaml, text/plain, "              \
    "application/x-www-form-urlencoded"
static const struct http_param list_params[] = {
    {"project", HTTP_PARAM_STRING, "only this project's own"},
    {"workload", HTTP_PARAM_STRING, "only of this workload"},
    {0}};
static const struct http_param find_params[] = {
    {"project", HTTP_PARAM_STRING,
     "this project's own; if not given that of project default, else the shipped one"},
    {0}};
static const struct http_param remove_params[] = {
    {"project", HTTP_PARAM_STRING, "this project's own; that of project default if not given"},
    {"dry_run", HTTP_PARAM_BOOLEAN, "answer what uses it, and remove nothing"},
    {0}};
static const struct http_route rows[] = {
    RESOURCE_LIST(&preset_noun,
                  "/v1/presets",
                  VIEWER,
                  "presets: the shipped ones and those of your projects, with their holes",
                  .params = list_params,
                  .reply_schema = "PresetList"),
    RESOURCE_GET(&preset_noun,
                 "/v1/presets/{name}",
                 VIEWER,
                 "one preset, with its text",
                 .params = find_params,
                 .reply_schema = "Preset",
                 .example = "baseline"),
    RESOURCE_PUT(&preset_noun,
                 "/v1/presets/{name}",
                 USER,
                 "store a preset of a project: description, holes, and a spec with ${hole:NAME}",
                 .max_body = PRESET_MAX_BYTES,
                 .params = find_params,
                 .request_type = PRESET_YAML,
                 .request_schema = "PresetForm",
                 .reply_schema = "Preset",
                 .reply_status = 201,
                 .other_schema = "Preset"),
    RESOURCE_REMOVE(&preset_noun,
                    "/v1/presets/{name}",
                    USER,
                    "remove a project's preset",
                    .params = remove_params,
                    .reply_schema = "PresetOrPlan"),
};
static const struct http_schema schemas[] = {
    {.name = "PresetForm",
     .json =
         "{\"type\":\"object\",\"required\":[\"spec\"],\"additionalProperties\":false,"
         "\"properties\":{"
         "\"description\":" TEXT_OR_NULL
         ",\"holes\":{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"type\":\"object\","
         "\"properties\":{\"type\":{\"enum\":[\"text\",\"integer\",\"number\",\"boolean\",\"path\","
         "\"model\",\"data\"]},\"required\":" BOOLEAN
         ",\"default\":" AS_IT_CAME("of its type") ",\"example\":" AS_IT_CAME(
             "of its type") ",\"description\":" TEXT_OR_NULL
                            "}}},\"spec\":" OBJECT_AS_IT_CAME(
                                "keys of the JobSpec, with holes") "}}"},
    {.name = "Preset", .table = &page_table, .which = FIELD_SHOWN},
    {.name = "PresetItem", .table = &page_table, .which = FIELD_LISTED},
    LIST_OF("PresetList", "presets", "PresetItem"),
};
const struct api_part part_presets = {rows, array_len(rows), schemas, array_len(schemas)};
