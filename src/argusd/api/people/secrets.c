/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.c - secrets: stored, listed by name, removed; a value is never given back.
 *
 * No answer, event or log line may hold anything of a body: it is read here and by nobody else. */
#include <stdlib.h>
#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/resource.h"
#include "base/message.h"
#include "base/str.h"
#include "core/spec/spec.h"

enum { SECRET_BODY_MAX = 8 * SECRET_VALUE_MAX, HIDDEN_FROM = 8 };

/* ---- what may be told ---- */

struct secret_page {
    struct secret secret;       /* borrowed */
    const char *user, *project; /* whose: one of them; borrowed */
    bool masked;                /* in logs: a short one would hide half of a log */
};
#define PAGE(key, ftype, ...)                                                                      \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct secret_page, key), __VA_ARGS__      \
    }
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct secret_page, secret),
     .of = &secret_table,
     .flags = FIELD_BORROWED},
    PAGE(user, FIELD_STR, .flags = FIELD_SHOWN | FIELD_BORROWED, .doc = "whose, or"),
    PAGE(project,
         FIELD_STR,
         .flags = FIELD_SHOWN | FIELD_BORROWED,
         .doc = "project that owns the secret, if no user does"),
    PAGE(masked,
         FIELD_BOOL,
         .flags = FIELD_SHOWN,
         .doc = "stars stand in its place in logs; a short value is not masked"),
};
static const struct field_table page_table = {.name = "Secret",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct secret_page)};

static void secret_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct secret *k = x;
    struct secret_page *page = out;
    (void)q;
    *page = (struct secret_page){.secret = *k,
                                 .user = k->of_project ? NULL : k->owner,
                                 .project = k->of_project ? k->owner : NULL,
                                 .masked = k->bytes >= HIDDEN_FROM};
}

static char *secret_object(const void *x)
{
    return xasprintf("secret/%s", ((const struct secret *)x)->key);
}

/* ---- list ---- */

static const void *secret_next(struct resource_ask *q, size_t *pos)
{
    return secrets_next(q->a->secrets, pos);
}

static int secret_compare(const void *x, const void *y)
{
    const struct secret *a = *(const struct secret *const *)x;
    const struct secret *b = *(const struct secret *const *)y;
    return strcmp(a->key, b->key);
}

/* One's own and those of one's projects, unless others are asked for. */
static bool secret_wants(struct resource_ask *q, const void *x)
{
    const struct secret *k = x;
    const char *user = http_req_query(q->req, "user"), *project = http_req_query(q->req, "project");
    if (user || project)
        return str_eq(k->of_project ? project : user, k->owner);
    return http_req_query_bool(q->req, "all", false) ||
           (k->of_project ? str_list_has(q->who.projects, k->owner)
                          : str_eq(k->owner, q->who.user));
}

/* ---- whose ---- */

struct secret_form {
    char *value, *user, *project;
};
#define FORM(key, ...)                                                                             \
    {                                                                                              \
        .name = #key, .type = FIELD_STR, .offset = offsetof(struct secret_form, key), __VA_ARGS__  \
    }
static const struct field form_rows[] = {
    FORM(value, .flags = FIELD_ASKED | FIELD_REQUIRED, .doc = "never given back"),
    FORM(user, .flags = FIELD_ASKED, .doc = "whose; your own if not given"),
    FORM(project, .flags = FIELD_ASKED, .doc = "project that owns the secret, in place of a user"),
};
static const struct field_table form_table = {.name = "SecretForm",
                                              .rows = form_rows,
                                              .n = array_len(form_rows),
                                              .size = sizeof(struct secret_form)};

/* What a body or a query asks about. */
struct secret_place {
    bool of_project;
    const char *owner;
};

static struct secret_place secret_place_of(struct resource_ask *q, const struct secret_form *f)
{
    const char *user = f ? f->user : http_req_query(q->req, "user");
    const char *project = f ? f->project : http_req_query(q->req, "project");
    return (struct secret_place){.of_project = project != NULL,
                                 .owner = project ? project : str_or(user, q->who.user)};
}

static int secret_check_one_owner(struct resource_ask *q, const char *user, const char *project)
{
    if (!user || !project)
        return 0;
    q->field = "project";
    return message_refuse(&q->err, ERR_BAD_SPEC, "secret_one_owner", MESSAGE_NO_ARGS);
}

static int secret_check_owner(struct resource_ask *q, const struct secret_place *at)
{
    if (at->of_project && !people_find_project(q->a->people, at->owner))
        return message_refuse(
            &q->err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "project"), MESSAGE_STR("name", at->owner)));
    if (!at->of_project && !people_find(q->a->people, at->owner))
        return message_refuse(
            &q->err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "user"), MESSAGE_STR("name", at->owner)));
    return 0;
}

static void secret_thing(struct resource_ask *q,
                         const void *x,
                         const void *asked,
                         struct access_thing *ret)
{
    const struct secret *k = x;
    struct secret_place at =
        k ? (struct secret_place){k->of_project, k->owner} : secret_place_of(q, asked);
    ret->name = k ? k->name : q->name;
    ret->owner = at.of_project ? NULL : at.owner;
    ret->project = at.of_project ? at.owner : NULL;
}

/* Without a body it is to be removed: who may not change the owner's secrets is not told which
 * there are. */
static const void *secret_find(struct resource_ask *q, const void *asked)
{
    struct secret_place at = secret_place_of(q, asked);
    if (!asked && (secret_check_one_owner(q, http_req_query(q->req, "user"),
                                          http_req_query(q->req, "project")) < 0 ||
                   resource_may(q, RESOURCE_TO_CHANGE, "remove", NULL, NULL) < 0 ||
                   secret_check_owner(q, &at) < 0))
        return NULL;
    const struct secret *k = secrets_find(q->a->secrets, at.of_project, at.owner, q->name);
    if (!k && !asked)
        (void)message_refuse(&q->err, ERR_NOT_FOUND, "no_secret_of",
                             MESSAGE_ARGS(MESSAGE_STR("name", q->name),
                                          MESSAGE_STR("kind", at.of_project ? "project" : "user"),
                                          MESSAGE_STR("owner", at.owner))); /* only fills err */
    return k;
}

/* ---- store ---- */

static int secret_read_text(const json_t *o, const char *key, char **ret, struct err *err)
{
    const json_t *v = json_object_get(o, key);
    if (v && !json_is_null(v) && !json_is_string(v))
        return message_refuse(err, ERR_BAD_SPEC, "no_text_member",
                              MESSAGE_ARGS(MESSAGE_STR("member", key)));
    *ret = xstrdup(json_string_value(v));
    return 0;
}

static int secret_check_value(const char *value, struct err *err)
{
    size_t n = value ? strlen(value) : 0;
    if (!n)
        return message_refuse(err, ERR_BAD_SPEC, "secret_no_value", MESSAGE_NO_ARGS);
    if (n > SECRET_VALUE_MAX)
        return message_refuse(
            err, ERR_TOO_LARGE, "secret_value_large",
            MESSAGE_ARGS(MESSAGE_NUM("bytes", n), MESSAGE_NUM("most", SECRET_VALUE_MAX)));
    return 0;
}

/* Its own words for what is wrong: those of a parser may quote the body. */
static int secret_read(struct resource_ask *q, bool is_change, void *asked)
{
    struct secret_form *f = asked;
    struct err *err = &q->err;
    _cleanup_(json_unrefp) json_t *o = NULL;
    size_t n, known = 0;
    const char *body = http_req_body(q->req, &n);
    (void)is_change;
    int r = spec_check_secret_name(q->name, err);
    if (r < 0)
        return r;
    if (json_parse(body, n, SECRET_BODY_MAX, &o, NULL) < 0 || !json_is_object(o))
        return message_refuse(err, ERR_BAD_REQUEST, "secret_no_object", MESSAGE_NO_ARGS);
    for (size_t i = 0; i < array_len(form_rows); i++)
        known += json_object_get(o, form_rows[i].name) != NULL;
    if (known != json_object_size(o))
        return message_refuse(err, ERR_BAD_SPEC, "secret_members", MESSAGE_NO_ARGS);
    r = secret_read_text(o, "value", &f->value, err);
    if (r == 0)
        r = secret_read_text(o, "user", &f->user, err);
    if (r == 0)
        r = secret_read_text(o, "project", &f->project, err);
    if (r == 0)
        r = secret_check_value(f->value, err);
    return r < 0 ? r : secret_check_one_owner(q, f->user, f->project);
}

static int secret_check(struct resource_ask *q, const void *old, void *asked)
{
    struct secret_place at = secret_place_of(q, asked);
    (void)old;
    return secret_check_owner(q, &at);
}

static const void *secret_write(struct resource_ask *q, const void *old, void *asked)
{
    const struct secret_form *f = asked;
    struct secret_place at = secret_place_of(q, f);
    const struct secret *k = NULL;
    (void)old;
    int r = secrets_set(q->a->secrets, at.of_project, at.owner, q->name, f->value, q->who.user,
                        clock_wall(), &k, &q->err);
    return r < 0 ? NULL : k;
}

static bool secret_take_away(struct resource_ask *q, const void *x)
{
    secrets_remove(q->a->secrets, x);
    return true;
}

/* ---- the noun ---- */

static const struct resource secret_noun = {
    .noun = "secret",
    .kind = ACCESS_KIND_SECRET,
    .collection = "secrets",
    .param = "name",
    .page = &page_table,
    .form = &form_table,
    .may_see = ACCESS_SECRET_SEE,
    .may_change = ACCESS_SECRET_CHANGE,
    .add = {"secret_added", "set"},
    .change = {"secret_changed", "set"},
    .remove = {"secret_removed", "remove"},
    .next = secret_next,
    .wants = secret_wants,
    .compare = secret_compare,
    .find = secret_find,
    .thing = secret_thing,
    .object = secret_object,
    .fill = secret_fill,
    .read = secret_read,
    .check = secret_check,
    .write = secret_write,
    .take_away = secret_take_away,
};

static const struct http_param list_params[] = {
    {"user", HTTP_PARAM_STRING, "this user's"},
    {"project", HTTP_PARAM_STRING, "this project's"},
    {"all", HTTP_PARAM_BOOLEAN, "all that you may see; your own and your projects' if not given"},
    {0}};
static const struct http_param remove_params[] = {
    {"user", HTTP_PARAM_STRING, "secrets of this user (admins)"},
    {"project", HTTP_PARAM_STRING, "secrets of this project"},
    {0}};
static const struct http_route rows[] = {
    RESOURCE_LIST(&secret_noun,
                  "/v1/secrets",
                  VIEWER,
                  "names of stored secrets, without their values",
                  .params = list_params,
                  .reply_schema = "SecretList"),
    RESOURCE_PUT(
        &secret_noun,
        "/v1/secrets/{name}",
        USER,
        "store a secret of yours, of a user or of a project; its value is never given back",
        .max_body = SECRET_BODY_MAX,
        .request_schema = "SecretForm",
        .reply_schema = "Secret",
        .reply_status = 201,
        .other_schema = "Secret",
        .example = "HF_TOKEN"),
    RESOURCE_REMOVE(&secret_noun,
                    "/v1/secrets/{name}",
                    USER,
                    "remove a secret",
                    .params = remove_params,
                    .reply_schema = "Secret"),
};
static const struct http_schema schemas[] = {
    {.name = "SecretForm", .table = &form_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "Secret", .table = &page_table, .which = FIELD_SHOWN},
    LIST_OF("SecretList", "secrets", "Secret"),
};
const struct api_part part_secrets = {rows, array_len(rows), schemas, array_len(schemas)};
