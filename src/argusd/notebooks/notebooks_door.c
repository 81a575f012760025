/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_door.c - see notebooks_door.h and README.md.
 *
 * A browser has the notebooks of one user open at a time: its pages share one origin, and a page of
 * one user's notebook must not reach another's by the cookie that happens to be there. Since a
 * ticket opens for whoever follows it, a browser that has no cookie of the ticket's user yet is
 * shown whose notebooks these are, and gets the cookie when a person there agrees. */
#include "argusd/notebooks/notebooks_door.h"

#include <string.h>
#include <strings.h>

#include "argusd/api/routes.h"
#include "argusd/notebooks/notebooks_state.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "http/proxy/proxy.h"

enum { BODY_MOST = 1 << 30, PATH_MOST = 256, HEADER_MOST = 1024, FORM_MOST = 1024 };
static const usec_t COOKIE_LIFE = 12 * USEC_HOUR;

/* ---- names and origins ---- */

/* Behind "://": HOST or HOST:PORT. */
static const char *door_host(const struct api *a)
{
    return strstr(a->settings->notebooks_url, "://") + 3; /* it was checked */
}

static bool door_is_tls(const struct api *a)
{
    return str_starts(a->settings->notebooks_url, "https:");
}

static const char *door_cookie_name(const struct api *a)
{
    return door_is_tls(a) ? "__Host-argus_notebook" : "argus_notebook";
}

/* The length of the name without the port. */
static size_t door_name_length(const char *host)
{
    return *host == '[' ? strcspn(host, "]") : strcspn(host, ":");
}

static bool door_is_same_name(const char *x, const char *y)
{
    size_t n = door_name_length(x);
    return n == door_name_length(y) && !strncasecmp(x, y, n);
}

/* Another site's page does not speak through a browser, and no name but ours leads here: not the
 * one of argusd's own pages. */
static bool door_is_ours(const struct http_req *req, const struct api *a)
{
    const char *origin = http_req_header(req, "Origin"), *host = http_req_header(req, "Host");
    return host && !strcasecmp(host, door_host(a)) &&
           (!origin || !strcasecmp(origin, a->settings->notebooks_url));
}

/* True: the refusal was sent. */
static bool door_refuse_foreign(struct http_req *req, const struct api *a)
{
    struct err err;
    if (door_is_ours(req, a))
        return false;
    message_refuse(&err, ERR_FORBIDDEN, "notebook_other_site", MESSAGE_NO_ARGS);
    api_fail(req, &err, 0);
    return true;
}

/* ---- who ---- */

/* Has what asked for the pass not ended, and is its user still let in? */
static int door_admit(const struct api *a, const struct pass *p, struct http_principal *ret)
{
    usec_t now = clock_wall();
    int r = tokens_check_id(a->tokens, p->token_id, now, ret);
    if (r < 0)
        return r;
    text_copy(ret->session_id, p->session_id);
    if (!str_eq(ret->user, p->user) || !tokens_session_works(a->tokens, ret, now))
        return http_principal_refuse(ret, "notebook_signed_out", MESSAGE_NO_ARGS);
    return people_admit(a->people, ret);
}

static bool door_read_cookie(const struct api *a, const char *header, struct pass *ret)
{
    char text[PASS_COOKIE_MAX];
    return http_cookie_find(header, door_cookie_name(a), text, sizeof(text)) &&
           pass_cookie_read(a->secrets, text, clock_wall(), ret);
}

int notebooks_door_authenticate(const struct http_credentials *c,
                                struct http_principal *ret,
                                void *app)
{
    const struct api *a = app;
    struct pass p;
    if (!door_read_cookie(a, c->cookie, &p))
        return http_principal_refuse(ret, "notebook_signed_out", MESSAGE_NO_ARGS);
    return door_admit(a, &p, ret);
}

/* ---- a ticket ---- */

/* There is no notebook of the path's name, for whom asks. */
static int door_refuse_missing(const struct http_req *req, struct err *err)
{
    return message_refuse(err, ERR_NOT_FOUND, "not_found",
                          MESSAGE_ARGS(MESSAGE_STR("noun", "notebook"),
                                       MESSAGE_STR("name", http_req_param(req, "name"))));
}

static int door_check_open(struct http_req *req,
                           struct api *a,
                           const struct noted *x,
                           struct err *err)
{
    const char *host = http_req_header(req, "Host");
    struct notebook_door to;
    if (!str_eq(x->n.owner, http_req_principal(req)->user))
        return message_refuse(err, ERR_FORBIDDEN, "notebook_not_yours", MESSAGE_NO_ARGS);
    if (!a->settings->notebooks_url)
        return message_refuse(err, ERR_UNAVAILABLE, "notebooks_off", MESSAGE_NO_ARGS);
    if (host && door_is_same_name(host, door_host(a)))
        return message_refuse(err, ERR_CONFLICT, "notebooks_same_host",
                              MESSAGE_ARGS(MESSAGE_STR("host", host)));
    return notebooks_find_door(x, &to, err);
}

void notebooks_open_door(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct buf out = BUF_INIT(4 << 10);
    const struct http_principal *who = http_req_principal(req);
    const char *owner = str_or(http_req_query(req, "user"), who->user);
    const struct noted *x = notebooks_find(a->notebooks, owner, http_req_param(req, "name"));
    const struct access_thing none = {.kind = ACCESS_KIND_NOTEBOOK,
                                      .name = http_req_param(req, "name")};
    const struct access_thing thing = x ? notebook_thing(&x->n) : none;
    if (api_people_may(req, a, ACCESS_NOTEBOOK_CHANGE, "open", &thing, false) < 0)
        return;
    if (!x) { /* an administrator may ask for any name */
        (void)door_refuse_missing(req, &err);
        api_fail(req, &err, api_reader_barrier(a));
        return;
    }
    if (door_check_open(req, a, x, &err) < 0) {
        api_fail(req, &err, api_reader_barrier(a));
        return;
    }
    struct pass p;
    char ticket[TICKET_TEXT_MAX];
    text_copy(p.user, who->user);
    text_copy(p.token_id, who->token_id);
    text_copy(p.session_id, who->session_id);
    pass_ticket_add(&a->notebooks->passes, &p, x->n.name, clock_mono(), ticket);
    _cleanup_(freep) char *url = xasprintf("%s/open?ticket=%s", a->settings->notebooks_url, ticket);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "url", url);
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
}

/* ---- /open and /leave ---- */

static const char *door_ticket(const struct http_req *req)
{
    return str_or(http_req_query(req, "ticket"), "");
}

static void door_set_cookie(struct http_req *req, const struct api *a, const char *text)
{
    char line[HEADER_MOST];
    text_printf(line, "%s=%s; Path=/; HttpOnly; SameSite=Lax; Max-Age=%llu%s", door_cookie_name(a),
                text, (unsigned long long)(*text ? COOKIE_LIFE / USEC_SEC : 0),
                door_is_tls(a) ? "; Secure" : "");
    http_reply_header(req, "Set-Cookie", line);
}

/* Whose ticket it is; he, and nobody else, has notebooks open in this browser. *ret_known: its
 * cookie is his already. */
static int door_read_ticket(const struct http_req *req,
                            const struct api *a,
                            struct ticket *ret,
                            bool *ret_known,
                            struct err *err)
{
    struct http_principal who = {0}, before = {0};
    struct pass old;
    const char *cookie = http_req_header(req, "Cookie");
    if (!pass_ticket_find(&a->notebooks->passes, door_ticket(req), clock_mono(), ret) ||
        door_admit(a, &ret->pass, &who) < 0)
        return message_refuse(err, ERR_UNAUTHORISED, "notebook_ticket", MESSAGE_NO_ARGS);
    bool open = cookie && door_read_cookie(a, cookie, &old) && door_admit(a, &old, &before) == 0;
    *ret_known = open && str_eq(old.user, ret->pass.user);
    if (open && !*ret_known)
        return message_refuse(err, ERR_CONFLICT, "notebook_other_user", MESSAGE_NO_ARGS);
    return 0;
}

static void door_let_in(struct http_req *req, const struct api *a)
{
    struct err err = {0};
    struct ticket t;
    char cookie[PASS_COOKIE_MAX], to[PATH_MOST];
    if (!pass_ticket_take(&a->notebooks->passes, door_ticket(req), clock_mono(), &t)) {
        message_refuse(&err, ERR_UNAUTHORISED, "notebook_ticket", MESSAGE_NO_ARGS);
        api_fail(req, &err, 0);
        return;
    }
    pass_cookie_write(a->secrets, &t.pass, clock_wall() + COOKIE_LIFE, cookie);
    door_set_cookie(req, a, cookie);
    text_printf(to, "/n/%s/%s/lab", t.pass.user, t.notebook);
    http_reply_header(req, "Location", to);
    http_reply(req, 303, "text/plain", NULL, 0);
}

/* A page without a script: whose notebooks these are, and a button that opens them. Users' names
 * and tickets have no character that HTML minds. */
static void door_ask_whether(struct http_req *req, const struct ticket *t)
{
    const struct message_listener to = {.language = http_req_principal(req)->language};
    struct buf out = BUF_INIT(8 << 10), text = {0}, button = {0};
    char args[HTTP_USER_MAX + 32];
    message_write(args, sizeof(args), MESSAGE_ARGS(MESSAGE_STR("user", t->pass.user)));
    (void)buf_addf(&out,
                   "<!doctype html><html lang=\"%s\"><meta charset=\"utf-8\"><title>Argus</title>"
                   "<meta name=\"viewport\" content=\"width=device-width\"><style>:root{"
                   "color-scheme:light dark}body{font:16px/1.5 system-ui;max-width:40em;"
                   "margin:15vh auto;padding:0 1em}button{font:inherit;padding:.4em 1.2em}</style>"
                   "<h1>%s</h1><p>%s<form method=\"post\" action=\"/open?ticket=%s\"><button>%s"
                   "</button></form></html>\n",
                   to.language == MESSAGE_CHINESE ? "zh-CN" : "en", t->pass.user,
                   message_say("notebook_whose", args, &to, &text), door_ticket(req),
                   message_say("notebook_go_on", "{}", &to, &button));
    buf_release(&text);
    buf_release(&button);
    http_reply_header(req, "Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
                      "base-uri 'none'; frame-ancestors 'none'");
    /* Not the ticket; but with no referrer at all a browser would not name the form's origin. */
    http_reply_header(req, "Referrer-Policy", "strict-origin");
    http_reply(req, 200, "text/html; charset=utf-8", &out, 0);
    buf_release(&out);
}

/* The address with the ticket: at once where the browser has its user's notebooks open, else a
 * person there is asked first. */
static void door_open(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct ticket t;
    bool is_known = false;
    if (door_refuse_foreign(req, a))
        return;
    if (door_read_ticket(req, a, &t, &is_known, &err) < 0)
        api_fail(req, &err, 0);
    else if (is_known)
        door_let_in(req, a);
    else
        door_ask_whether(req, &t);
}

/* The button of that page, and of no other: a browser names where a form comes from. */
static void door_agree(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct ticket t;
    bool is_known = false;
    if (door_refuse_foreign(req, a))
        return;
    if (!http_req_header(req, "Origin"))
        message_refuse(&err, ERR_FORBIDDEN, "notebook_other_site", MESSAGE_NO_ARGS);
    else
        (void)door_read_ticket(req, a, &t, &is_known, &err);
    if (err.code)
        api_fail(req, &err, 0);
    else
        door_let_in(req, a);
}

static void door_leave(struct http_req *req, void *app)
{
    struct api *a = app;
    if (door_refuse_foreign(req, a))
        return;
    door_set_cookie(req, a, "");
    http_reply(req, 204, NULL, NULL, 0);
}

/* ---- the notebook itself ---- */

static void door_pass(struct http_req *req, struct api *a, const struct notebook_door *to)
{
    char prefix[PATH_MOST], token[NOTEBOOKTOKEN_MAX + 8];
    text_printf(prefix, "/n/%s/%s", http_req_param(req, "user"), http_req_param(req, "name"));
    text_printf(token, "token %s", to->token);
    const struct http_field add[] = {{"Authorization", token},
                                     {"X-Argus-User", http_req_principal(req)->user}};
    const struct proxy_target target = {to->host, to->port, prefix};
    proxy_pass(a->proxy, req,
               &(struct proxy_pass){.targets = &target,
                                    .n_targets = 1,
                                    .prefix = prefix,
                                    .path = http_req_tail(req),
                                    .add = add,
                                    .n_add = array_len(add),
                                    .flags = PROXY_WEBSOCKET});
}

static void door_relay(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct notebook_door to;
    const char *user = http_req_param(req, "user"), *name = http_req_param(req, "name");
    if (door_refuse_foreign(req, a))
        return;
    const struct noted *x = str_eq(user, http_req_principal(req)->user)
                                ? notebooks_find(a->notebooks, user, name)
                                : NULL;
    int r = x ? notebooks_find_door(x, &to, &err) : door_refuse_missing(req, &err);
    if (r < 0)
        api_fail(req, &err, 0);
    else
        door_pass(req, a, &to);
}

/* ---- routes ---- */

static const struct http_param ticket_params[] = {
    {"ticket", HTTP_PARAM_STRING, "ticket that POST /v1/notebooks/{name}:open gave"},
    {NULL, 0, NULL}};
#define RELAY(m)                                                                                   \
    {                                                                                              \
        .method = (m), .pattern = "/n/{user}/{name}/*", .least = HTTP_ROLE_USER,                   \
        .max_body = BODY_MOST, .handle = door_relay,                                               \
        .flags = HTTP_ROUTE_RELAY | HTTP_ROUTE_STREAM | HTTP_ROUTE_HIDDEN, .summary = "a notebook" \
    }
static const struct http_route door_rows[] = {
    {.method = "GET",
     .pattern = "/open",
     .handle = door_open,
     .params = ticket_params,
     .flags = HTTP_ROUTE_HIDDEN,
     .summary = "a ticket becomes a cookie, or a page asks whether it shall"},
    {.method = "POST",
     .pattern = "/open",
     .handle = door_agree,
     .params = ticket_params,
     .max_body = FORM_MOST,
     .flags = HTTP_ROUTE_HIDDEN,
     .summary = "a ticket becomes a cookie"},
    {.method = "GET",
     .pattern = "/leave",
     .handle = door_leave,
     .flags = HTTP_ROUTE_HIDDEN,
     .summary = "the cookie goes"},
    RELAY("GET"),
    RELAY("POST"),
    RELAY("PUT"),
    RELAY("PATCH"),
    RELAY("DELETE"),
};

const struct http_route *notebooks_door_routes(size_t *ret_n)
{
    *ret_n = array_len(door_rows);
    return door_rows;
}
