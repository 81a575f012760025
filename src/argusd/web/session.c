/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - sessions over HTTP: begun with a token or a login link, looked at, listed, ended.
 *
 * A login always makes a new session and ends the one whose cookie came along, so that nobody is
 * logged in under a cookie that another one chose. What is told of a session never has its cookie;
 * its csrf word is told only to who comes with the cookie itself. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/kit/resource.h"
#include "argusd/people/sessions.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

/* The reader's own session, and what a page asks first of all. */
struct session_page {
    struct session session; /* borrowed */
    const char *role, *csrf;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(session_page, key, ftype, member, __VA_ARGS__)
static const struct field own_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct session_page, session),
     .of = &session_table,
     .flags = FIELD_BORROWED},
    PAGE("role", FIELD_STR, role, .flags = FIELD_SHOWN | FIELD_ALWAYS),
    PAGE("csrf",
         FIELD_STR,
         csrf,
         .flags = FIELD_SHOWN | FIELD_ALWAYS,
         .doc = "word for the header Argus-CSRF of every change"),
};
static const struct field_table own_table = {.name = "OwnSession",
                                             .rows = own_rows,
                                             .n = array_len(own_rows),
                                             .size = sizeof(struct session_page)};

static const struct field login_rows[] = {OPT_TEXT("token"), OPT_TEXT("link")};
static const struct field_table login_form = ACTION_FORM(login_rows);

static void session_answer(struct http_req *req,
                           struct api *a,
                           int status,
                           const struct session_page *page)
{
    struct buf out = BUF_INIT(16 << 10);
    struct jout j = jout_begin(&out);
    field_to_json(&own_table, page, FIELD_SHOWN, FIELD_PAGE, &j, NULL);
    http_reply_json(req, status, &out, api_barrier(a));
    buf_release(&out);
}

static void session_set_cookie(struct http_req *req, const struct api *a, const char *text)
{
    char header[SESSION_HEADER_MAX];
    sessions_cookie(a->sessions, text, header);
    http_reply_header(req, "Set-Cookie", header);
}

/* ---- log in ---- */

/* link NULL: by the token. */
static int session_admit(struct api *a,
                         const char *token,
                         const char *link,
                         struct http_principal *ret,
                         struct err *err)
{
    int r = link ? sessions_take_link(a->sessions, link, clock_wall(), ret)
                 : tokens_check(a->tokens, token, clock_wall(), ret);
    if (r == 0)
        r = people_admit(a->people, ret);
    if (r < 0)
        return message_refuse_text(err, ERR_UNAUTHORISED, str_or(ret->why_not, "token_unknown"),
                                   ret->why_args);
    return store_check(a->store, err);
}

static void session_begin(struct http_req *req, struct api *a, const struct http_principal *p)
{
    char text[SESSION_TEXT_MAX], csrf[SESSION_CSRF_MAX];
    const struct session *old =
        sessions_find_cookie(a->sessions, str_or(http_req_header(req, "Cookie"), ""));
    if (old)
        sessions_end(a->sessions, old);
    const struct session *k = sessions_add(
        a->sessions, p, str_or(http_req_header(req, "User-Agent"), ""), clock_wall(), text);
    sessions_csrf(text, csrf);
    session_set_cookie(req, a, text);
    const struct session_page page = {
        .session = *k, .role = http_role_to_string(p->role), .csrf = csrf};
    session_answer(req, a, 201, &page);
}

static void session_post(struct http_req *req, void *app)
{
    struct api *a = app;
    struct http_principal p = {0};
    struct err err = {0};
    const char *site = http_req_header(req, "Sec-Fetch-Site");
    json_t *body = api_read_action(req, &login_form);
    if (!body)
        return;
    const char *token = json_string_value(json_object_get(body, "token"));
    const char *link = json_string_value(json_object_get(body, "link"));
    int r = 0;
    if (site && strcmp(site, "same-origin") != 0)
        r = message_refuse(&err, ERR_FORBIDDEN, "login_elsewhere", MESSAGE_NO_ARGS);
    else if (!token == !link)
        r = message_refuse(&err, ERR_BAD_REQUEST, "login_who", MESSAGE_NO_ARGS);
    if (r == 0)
        r = session_admit(a, token, link, &p, &err);
    if (r < 0)
        api_fail(req, &err, 0);
    else
        session_begin(req, a, &p);
    json_decref(body);
}

/* ---- a link that logs a browser in ---- */

/* The text stands behind '#': browsers keep that to themselves, and so it is in no server's log. */
struct link_page {
    char text[SESSION_LINK_MAX], path[SESSION_LINK_MAX + 16];
    usec_t expires_at;
};
static const struct field link_rows[] = {
    FIELD_AT(link_page, "link", FIELD_TEXT, text, .size = SESSION_LINK_MAX, .flags = FIELD_ALWAYS),
    FIELD_AT(link_page,
             "path",
             FIELD_TEXT,
             path,
             .size = SESSION_LINK_MAX + 16,
             .flags = FIELD_ALWAYS,
             .doc = "to be opened below the address of argusd"),
    FIELD_AT(link_page, "expires_at", FIELD_TIME, expires_at, .flags = FIELD_ALWAYS),
};
static const struct field_table link_table = FIELD_TABLE("LoginLink", link_rows, link_page);

static void session_link(struct http_req *req, void *app)
{
    struct api *a = app;
    usec_t now = clock_wall();
    struct link_page page = {.expires_at = now + SESSION_LINK_LIFE};
    sessions_make_link(a->sessions, http_req_principal(req), now, page.text);
    text_printf(page.path, "/#login=%s", page.text);
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    field_to_json(&link_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_header(req, "Cache-Control", "no-store");
    http_reply_json(req, 201, &out, api_barrier(a));
    buf_release(&out);
}

/* ---- one's own ---- */

/* NULL: the request came with a token, and was answered. */
static const struct session *session_own(struct http_req *req, const struct api *a)
{
    struct err err = {0};
    const char *id = http_req_principal(req)->session_id;
    const struct session *k = *id ? sessions_find(a->sessions, id) : NULL;
    if (k)
        return k;
    (void)message_refuse(&err, ERR_NOT_FOUND, "no_session", MESSAGE_NO_ARGS);
    api_fail(req, &err, 0);
    return NULL;
}

static void session_get(struct http_req *req, void *app)
{
    struct api *a = app;
    char csrf[SESSION_CSRF_MAX] = "";
    const struct session *k = session_own(req, a);
    if (!k)
        return;
    (void)sessions_csrf_of(a->sessions, http_req_header(req, "Cookie"), csrf); /* it opened this */
    const struct session_page page = {
        .session = *k, .role = http_role_to_string(http_req_principal(req)->role), .csrf = csrf};
    session_answer(req, a, 200, &page);
}

static void session_delete(struct http_req *req, void *app)
{
    struct api *a = app;
    const struct session *k = session_own(req, a);
    if (!k)
        return;
    session_set_cookie(req, a, "");
    struct buf out = BUF_INIT(16 << 10);
    struct jout j = jout_begin(&out);
    field_to_json(&session_table, k, FIELD_SHOWN, FIELD_PAGE, &j, NULL);
    sessions_end(a->sessions, k);
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}

/* ---- all of them ---- */

static const void *session_next(struct resource_ask *q, size_t *pos)
{
    return sessions_next(q->a->sessions, pos);
}

static int session_compare(const void *x, const void *y)
{
    const struct session *a = *(const struct session *const *)x,
                         *b = *(const struct session *const *)y;
    int c = strcmp(a->user, b->user);
    if (c)
        return c;
    return a->created_at != b->created_at ? (a->created_at < b->created_at ? -1 : 1)
                                          : strcmp(a->id, b->id);
}

static bool session_wants(struct resource_ask *q, const void *x)
{
    const struct session *k = x;
    const char *user = http_req_query(q->req, "user");
    if (!user && !http_req_query_bool(q->req, "all", false))
        user = q->who.user;
    return (!user || str_eq(user, k->user)) && session_works(q->a->sessions, k, clock_wall());
}

static int session_check_list(struct resource_ask *q)
{
    const char *user = http_req_query(q->req, "user");
    struct access_thing thing = {.kind = ACCESS_KIND_USER, .name = user, .owner = user};
    return user ? access_check(&q->who, ACCESS_TOKEN_SEE, "see the sessions of", &thing, &q->err)
                : 0;
}

static const void *session_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return sessions_find(q->a->sessions, q->name);
}

static void session_thing(struct resource_ask *q,
                          const void *x,
                          const void *asked,
                          struct access_thing *ret)
{
    const struct session *k = x;
    (void)q, (void)asked;
    ret->name = k->id;
    ret->owner = k->user;
}

static char *session_object(const void *x)
{
    const struct session *k = x;
    return xasprintf("session/%s/%s", k->user, k->id);
}

static void session_fill(struct resource_ask *q, const void *x, void *page)
{
    (void)q;
    memcpy(page, x, sizeof(struct session));
}

static int session_check_remove(struct resource_ask *q, const void *x)
{
    (void)x;
    resource_say(q, "session_closed", MESSAGE_NO_ARGS);
    return 0;
}

static bool session_take_away(struct resource_ask *q, const void *x)
{
    sessions_end(q->a->sessions, x);
    return true;
}

static const struct field list_rows[] = {
    {.name = "", .type = FIELD_INLINE, .offset = 0, .of = &session_table, .flags = FIELD_BORROWED},
};
static const struct field_table list_table = {.name = "Session",
                                              .rows = list_rows,
                                              .n = array_len(list_rows),
                                              .size = sizeof(struct session)};

static const struct resource session_noun = {
    .noun = "session",
    .kind = ACCESS_KIND_TOKEN,
    .collection = "sessions",
    .param = "session",
    .page = &list_table,
    .may_see = ACCESS_TOKEN_SEE,
    .may_change = ACCESS_SESSION_END,
    .remove = {"session_ended", "end"},
    .check_list = session_check_list,
    .next = session_next,
    .wants = session_wants,
    .compare = session_compare,
    .find = session_find,
    .thing = session_thing,
    .object = session_object,
    .fill = session_fill,
    .check_remove = session_check_remove,
    .take_away = session_take_away,
};

static const struct http_param list_params[] = {
    {"user", HTTP_PARAM_STRING, "this user's"},
    {"all", HTTP_PARAM_BOOLEAN, "everybody's (admins); your own if not given"},
    {0}};
static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/session",
     .max_body = RESOURCE_BODY_MAX,
     .handle = session_post,
     .summary = "log a browser in with a token or a login link: the reply sets a cookie",
     .request_schema = "Login",
     .reply_schema = "OwnSession",
     .reply_status = 201},
    {.method = "GET",
     .pattern = "/v1/session",
     .least = HTTP_ROLE_VIEWER,
     .handle = session_get,
     .summary = "the session of the cookie that was sent, and its csrf word",
     .reply_schema = "OwnSession"},
    {.method = "DELETE",
     .pattern = "/v1/session",
     .least = HTTP_ROLE_VIEWER,
     .handle = session_delete,
     .summary = "log out: the session ends and the cookie goes",
     .reply_schema = "Session"},
    {.method = "POST",
     .pattern = "/v1/session:link",
     .least = HTTP_ROLE_VIEWER,
     .max_body = RESOURCE_BODY_MAX,
     .handle = session_link,
     .summary =
         "a link that logs one browser in, once, within ten minutes, as the user of this token",
     .reply_schema = "LoginLink",
     .reply_status = 201},
    RESOURCE_LIST(&session_noun,
                  "/v1/sessions",
                  VIEWER,
                  "logins of browsers that have not ended",
                  .params = list_params,
                  .reply_schema = "SessionList"),
    RESOURCE_REMOVE(&session_noun,
                    "/v1/sessions/{session}",
                    VIEWER,
                    "end a session",
                    .reply_schema = "Session",
                    .example = "e1"),
};
static const struct http_schema schemas[] = {
    {.name = "Login", .table = &login_form, .is_form = true},
    {.name = "LoginLink", .table = &link_table},
    {.name = "OwnSession", .table = &own_table, .which = FIELD_SHOWN},
    {.name = "Session", .table = &list_table, .which = FIELD_SHOWN},
    LIST_OF("SessionList", "sessions", "Session"),
};
const struct api_part part_session = {rows, array_len(rows), schemas, array_len(schemas)};
