/* SPDX-License-Identifier: Apache-2.0 */
/* serviceask.c - POST /v1/services/{name}:ask: one request to a service and its whole answer, to
 * try it from a page or a shell. {"text": …} is a chat of one message, of a model; {"path": …,
 * "body": …} any request, a GET where it has no body; "version" the one that is asked, else the one
 * that has the traffic.
 *
 * What it sends is as every other request: the same limits, door, key, permission and count. A door
 * that refuses is told, and the second one is tried. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/calls/callrules.h"
#include "argusd/kit/api.h"
#include "argusd/services/service_target.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "http/proxy/headers.h"
#include "http/uri.h"
#include "ray/wire.h"

enum { ASK_BODY_MAX = 1 << 20, ASK_ANSWER_MAX = 1 << 20, ASK_WORDS = 256 };

static const struct field ask_form_rows[] = {
    OPT_TEXT("text"),
    OPT_TEXT("path"),
    OPT_AS("body",
           "{\"description\":\"body of the request, as it is sent; null: the request is a GET\"}"),
    SAYS("version",
         FIELD_INT,
         .flags = 0,
         .doc = "the one that is asked; that which has the traffic if not given"),
};
static const struct field_table service_ask_form = ACTION_FORM(ask_form_rows);

/* One question under way. */
struct service_asking {
    struct http_req *req; /* NULL: whoever asked has left */
    struct api *a;
    struct wire_request *sent;
    struct service_target to;
    int door;
    char *path, *body;                    /* body NULL: a GET */
    char user[HTTP_USER_MAX], shown[200]; /* the path without its query */
    usec_t began;
    struct call_tokens *tokens; /* NULL: nobody counts */
};

static void asking_free(struct service_asking *k)
{
    free(k->path);
    free(k->body);
    free(k->tokens);
    free(k);
}

/* end: how, a word of the log; NULL: the second door is asked next, and its answer is what is
 * counted. */
static void asking_end(struct service_asking *k,
                       int status,
                       const char *bytes,
                       size_t n,
                       const char *end)
{
    struct service_counted c = {.status = status,
                                .took = clock_mono() - k->began,
                                .first = status ? clock_mono() - k->began : 0,
                                .bytes_in = k->body ? strlen(k->body) : 0,
                                .bytes_out = n,
                                .user = k->user,
                                .method = k->body ? "POST" : "GET",
                                .path = end ? k->shown : NULL};
    if (k->tokens && n)
        tokencount_add(&k->tokens->answered, bytes, n);
    call_take_tokens(&c, k->tokens);
    service_end(k->a->serving, &k->to, &k->to.doors[k->door], &c);
    if (end)
        call_write_down(k->a, &k->to, &c, end);
}

static void asking_reply(struct service_asking *k,
                         const struct wire_reply *reply,
                         const json_t *answer)
{
    struct buf out = BUF_INIT(2 * ASK_ANSWER_MAX);
    struct jout j = jout_begin(&out);
    char *json = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    jout_open(&j, NULL, '{');
    jout_str(&j, "service", k->to.service);
    jout_int(&j, "version", k->to.version);
    jout_int(&j, "status", reply->status);
    jout_int(&j, "took_ms", (int64_t)((clock_mono() - k->began) / USEC_MS));
    if (json)
        jout_raw(&j, "answer", json);
    else
        jout_strn(&j, "answer", reply->body, reply->len);
    jout_close(&j, '}');
    free(json);
    http_reply(k->req, 200, "application/json", &out, api_reader_barrier(k->a));
}

static void asking_send(struct service_asking *k);

static void asking_on_answer(const struct wire_reply *reply, void *arg)
{
    struct service_asking *k = arg;
    _cleanup_(json_unrefp) json_t *answer =
        reply->status ? json_loadb(reply->body, reply->len, 0, NULL) : NULL;
    bool is_shut = !reply->status && !reply->was_sent;
    bool goes_on = is_shut && k->door + 1 < k->to.n_doors;
    k->sent = NULL;
    asking_end(k, reply->status, reply->body, reply->status ? reply->len : 0,
               goes_on         ? NULL
               : reply->status ? "whole"
                               : "broken");
    if (is_shut)
        service_door_failed(k->a->serving, &k->to, &k->to.doors[k->door]);
    if (goes_on) {
        k->door++;
        asking_send(k);
        return;
    }
    http_req_on_close(k->req, NULL, NULL);
    if (reply->status)
        asking_reply(k, reply, answer);
    else
        api_fail(k->req, &reply->err, api_reader_barrier(k->a));
    asking_free(k);
}

static void asking_send(struct service_asking *k)
{
    const struct service_door *d = &k->to.doors[k->door];
    struct strv headers = {0};
    _cleanup_(freep) char *at = str_with_port(d->address, d->port);
    _cleanup_(freep) char *url = xasprintf("http://%s%s%s", at, d->prefix, k->path);
    _cleanup_(freep) char *key = xasprintf("%s: %s", k->to.key_header, k->to.key);
    strv_add(&headers, key);
    const struct wire_order o = {.method = k->body ? "POST" : "GET",
                                 .url = url,
                                 .body = k->body,
                                 .timeout = k->to.timeout,
                                 .max_bytes = ASK_ANSWER_MAX,
                                 .said = k->to.service,
                                 .headers = &headers};
    service_begin(k->a->serving, &k->to, d);
    k->sent = wire_send(serving_wire(k->a->serving), &o, asking_on_answer, k);
    strv_release(&headers);
}

/* 499, as the proxy says it: the replica hears of it at once. */
static void asking_on_gone(struct http_req *req, void *arg)
{
    struct service_asking *k = arg;
    (void)req;
    wire_request_free(k->sent);
    asking_end(k, 499, NULL, 0, "left");
    asking_free(k);
}

/* The text as a chat of one message. */
static char *asking_chat(const char *service, const char *text)
{
    json_t *o = json_pack("{s:s,s:i,s:[{s:s,s:s}]}", "model", service, "max_tokens", ASK_WORDS,
                          "messages", "role", "user", "content", text);
    char *body = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return body;
}

static int asking_read(struct service_asking *k, const json_t *form, struct err *err)
{
    const char *text = json_get_str(form, "text", NULL), *path = json_get_str(form, "path", NULL);
    const json_t *body = json_object_get(form, "body");
    if (!text == !path ||
        (path && (*path != '/' || !uri_is_clean(path) || !header_is_below(path))) ||
        (text && !k->to.counts_tokens))
        return message_refuse(err, ERR_BAD_REQUEST, "serve_ask", MESSAGE_NO_ARGS);
    k->path = xstrdup(path ? path : "/v1/chat/completions");
    text_copy(k->shown, k->path);
    k->shown[strcspn(k->shown, "?")] = '\0';
    if (text)
        k->body = asking_chat(k->to.service, text);
    else if (body && !json_is_null(body))
        k->body = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
    if (k->body && k->to.max_body && strlen(k->body) > k->to.max_body)
        return message_refuse(err, ERR_TOO_LARGE, "call_body_large", MESSAGE_NO_ARGS);
    return 0;
}

/* By the rule of the header; a number as JSON is its text. */
static int asking_read_version(const json_t *form, int64_t *ret, struct err *err)
{
    const json_t *given = json_object_get(form, "version");
    _cleanup_(freep) char *text =
        given && !json_is_null(given) ? json_dumps(given, JSON_ENCODE_ANY) : NULL;
    return service_version_from_text(text, ret, err);
}

static void call_ask(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    _cleanup_(json_unrefp) json_t *form = api_read_action(req, &service_ask_form);
    if (!form)
        return;
    struct service_asking *k = xcalloc(1, sizeof(*k));
    k->req = req;
    k->a = a;
    text_copy(k->user, http_req_principal(req)->user);
    k->began = clock_mono();
    int64_t version = 0;
    int r = asking_read_version(form, &version, &err);
    if (r == 0)
        r = service_target(a->serving, http_req_param(req, "name"), version,
                           http_req_principal(req), &k->to, &err);
    if (r == 0)
        r = asking_read(k, form, &err);
    if (r < 0)
        service_refuse(a->serving, req, version, &err);
    if (r < 0 || call_refuse_busy(req, a, &k->to)) {
        asking_free(k);
        return;
    }
    k->tokens = call_tokens_new(&k->to);
    if (k->tokens && k->body)
        promptcount_add(&k->tokens->asked, k->body, strlen(k->body));
    http_req_on_close(req, asking_on_gone, k);
    asking_send(k);
}

/* ---- routes ---- */

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/services/{name}:ask",
     .least = HTTP_ROLE_USER,
     .handle = call_ask,
     .max_body = ASK_BODY_MAX,
     .summary = "try it: one request, and its whole answer",
     .request_schema = "ServiceAskForm",
     .reply_schema = "ServiceAnswer"},
};
static const struct http_schema schemas[] = {
    {.name = "ServiceAskForm", .table = &service_ask_form, .is_form = true},
    {.name = "ServiceAnswer",
     .json =
         OBJECT("\"service\",\"version\",\"status\",\"took_ms\",\"answer\"",
                KEY("service", TEXT) "," KEY("version", INTEGER) "," KEY("status", INTEGER) "," KEY(
                    "took_ms",
                    INTEGER) "," KEY("answer", AS_IT_CAME("JSON, or a text")))},
};
const struct api_part part_serviceask = {rows, array_len(rows), schemas, array_len(schemas)};
