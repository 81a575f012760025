/* SPDX-License-Identifier: Apache-2.0 */
/* misc.c - whoami, version, health, openapi. */
#include <stdio.h>
#include <string.h>

#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/kit/view.h"
#include "base/field.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/version.h"

/* ---- who and what ---- */

struct whoami_page {
    const char *user, *role, *token_id, *token_name;
    bool sees_all;
    struct strv projects;
    usec_t expires_at;
};
#define WHO(key, ftype, member, ...) FIELD_AT(whoami_page, key, ftype, member, __VA_ARGS__)
static const struct field whoami_rows[] = {
    WHO("user", FIELD_STR, user, .flags = FIELD_ALWAYS),
    WHO("role",
        FIELD_STR,
        role,
        .flags = FIELD_ALWAYS,
        .schema = WORDS("\"viewer\",\"user\",\"admin\"")),
    WHO("sees_all", FIELD_BOOL, sees_all),
    WHO("projects", FIELD_STRV, projects),
    WHO("token.id", FIELD_STR, token_id, .flags = FIELD_ALWAYS),
    WHO("token.name", FIELD_STR, token_name),
    WHO("token.expires_at", FIELD_TIME, expires_at),
};
static const struct field_table whoami_table = FIELD_TABLE(NULL, whoami_rows, whoami_page);

static void api_whoami(struct http_req *req, void *app)
{
    struct api *a = app;
    const struct http_principal *p = http_req_principal(req);
    const struct token *k = tokens_find(a->tokens, p->token_id);
    struct access_who who;
    people_who(a->people, p, &who);
    struct buf out = BUF_INIT(64 << 10);
    struct jout j = jout_begin(&out);
    struct whoami_page page = {.user = p->user,
                               .role = http_role_to_string(p->role),
                               .sees_all = who.sees_all,
                               .token_id = p->token_id,
                               .token_name = k ? k->name : NULL,
                               .expires_at = k ? k->expires_at : 0};
    const char *list = who.projects, *item;
    for (size_t n; (item = str_item(&list, &n));)
        strv_addf(&page.projects, "%.*s", (int)n, item);
    field_to_json(&whoami_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    strv_release(&page.projects);
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

/* Pages whose texts are borrowed for one answer. */
#define ROW(of, key, ftype, member, ...)                                                           \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct of, member), __VA_ARGS__             \
    }

struct version_ray {
    const char *version, *session;
    bool up;
};
static const struct field version_ray_rows[] = {
    ROW(version_ray, "version", FIELD_STR, version),
    ROW(version_ray, "session", FIELD_STR, session),
    ROW(version_ray, "up", FIELD_BOOL, up),
};
static const struct field_table version_ray_table = {
    NULL, version_ray_rows, array_len(version_ray_rows), sizeof(struct version_ray), 0};

/* Without a token: the version alone. */
struct version_page {
    const char *version, *commit, *cluster, *shared_root;
    const struct version_ray *ray;
};
static const struct field version_rows[] = {
    ROW(version_page, "version", FIELD_STR, version, .flags = FIELD_ALWAYS),
    ROW(version_page, "commit", FIELD_STR, commit),
    ROW(version_page, "ray", FIELD_PART, ray, .of = &version_ray_table),
    ROW(version_page, "cluster", FIELD_STR, cluster),
    ROW(version_page, "shared_root", FIELD_STR, shared_root),
};
static const struct field_table version_table = {"Version", version_rows, array_len(version_rows),
                                                 sizeof(struct version_page), 0};

struct ready_page {
    bool ready;
    const char *store, *ray, *shared_root, *reason;
};
static const struct field ready_rows[] = {
    ROW(ready_page, "ready", FIELD_BOOL, ready),
    ROW(ready_page, "store", FIELD_STR, store, .flags = FIELD_OMIT),
    ROW(ready_page, "ray", FIELD_STR, ray, .flags = FIELD_OMIT),
    ROW(ready_page, "shared_root", FIELD_STR, shared_root, .flags = FIELD_OMIT),
    ROW(ready_page, "reason", FIELD_STR, reason),
};
static const struct field_table ready_table = {"Ready", ready_rows, array_len(ready_rows),
                                               sizeof(struct ready_page), 0};
#undef ROW

static void misc_answer_page(struct http_req *req,
                             int status,
                             const struct field_table *t,
                             const void *page)
{
    struct buf out = BUF_INIT(64 << 10);
    struct jout j = jout_begin(&out);
    field_to_json(t, page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, status, &out, 0);
    buf_release(&out);
}

static void api_version(struct http_req *req, void *app)
{
    struct api *a = app;
    const char *version = cluster_ray_version(a->cluster);
    const struct version_ray ray = {.version = *version ? version : NULL,
                                    .session = *version ? cluster_session(a->cluster) : NULL,
                                    .up = cluster_is_up(a->cluster)};
    const struct version_page brief = {.version = ARGUS_VERSION};
    const struct version_page page = {.version = ARGUS_VERSION,
                                      .commit = ARGUS_COMMIT,
                                      .ray = &ray,
                                      .cluster = a->settings->cluster,
                                      .shared_root = a->settings->shared_root};
    bool is_known = http_req_principal(req)->role > HTTP_ROLE_NONE;
    misc_answer_page(req, 200, &version_table, is_known ? &page : &brief);
}

static void api_healthz(struct http_req *req, void *app)
{
    struct buf out = BUF_INIT(64);
    (void)app;
    (void)buf_adds(&out, "ok\n"); /* fits */
    http_reply(req, 200, "text/plain", &out, 0);
    buf_release(&out);
}

/* Ready: the store writes. Ray or the root being away is told, and is no reason to be taken
 * out of service: jobs are queued meanwhile. Why is for those with a token. */
static void api_readyz(struct http_req *req, void *app)
{
    struct api *a = app;
    const char *code, *text;
    const struct message_listener to = {.language = http_req_principal(req)->language};
    struct buf held = {0};
    bool failing = store_is_failing(a->store);
    cluster_why_not(a->cluster, &code, &text);
    const struct ready_page brief = {.ready = !failing};
    const struct ready_page page = {.ready = !failing,
                                    .store = failing ? "failing" : "ok",
                                    .ray = cluster_is_up(a->cluster) ? "ok" : "away",
                                    .shared_root =
                                        cluster_root_is_ok(a->cluster) ? "ok" : "unavailable",
                                    .reason = *code ? message_say(code, text, &to, &held) : NULL};
    bool is_known = http_req_principal(req)->role > HTTP_ROLE_NONE;
    misc_answer_page(req, failing ? 503 : 200, &ready_table, is_known ? &page : &brief);
    buf_release(&held);
}

static void api_openapi(struct http_req *req, void *app)
{
    const struct api *a = app;
    http_reply_borrowed(req, 200, "application/json", a->openapi.data, a->openapi.len);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/whoami",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_whoami,
     .summary = "user, role and name of this token",
     .reply_schema = "Whoami"},
    {.method = "GET",
     .pattern = "/v1/version",
     .least = HTTP_ROLE_NONE,
     .handle = api_version,
     .summary = "version of argusd; with a token, of Ray too, and where the shared root is",
     .reply_schema = "Version"},
    {.method = "GET",
     .pattern = "/v1/openapi.json",
     .least = HTTP_ROLE_NONE,
     .handle = api_openapi,
     .summary = "this description"},
    {.method = "GET",
     .pattern = "/healthz",
     .least = HTTP_ROLE_NONE,
     .handle = api_healthz,
     .summary = "the process answers",
     .reply_type = "text/plain"},
    {.method = "GET",
     .pattern = "/readyz",
     .least = HTTP_ROLE_NONE,
     .handle = api_readyz,
     .summary = "jobs can be taken",
     .reply_schema = "Ready"},
};
static const struct http_schema schemas[] = {
    {.name = "Whoami", .table = &whoami_table},
    {.name = "Version", .table = &version_table},
    {.name = "Ready", .table = &ready_table},
};
const struct api_part part_misc = {rows, array_len(rows), schemas, array_len(schemas)};
