/* SPDX-License-Identifier: Apache-2.0 */
/* ray.c - the client and the life of its calls; query.c and submit.c hold the requests. See
 * call.h for what may be touched after a callback. */
#include "ray/ray.h"

#include <assert.h>
#include <ctype.h>
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "ray/call.h"

enum { MIB = 1 << 20 };
#define SUBMIT_PATIENCE (60 * USEC_SEC)

/* -- calls ---------------------------------------------------------------------- */

struct ray_call *call_new(struct ray_client *rc,
                          void (*finish)(struct ray_call *, const struct wire_reply *),
                          void *arg)
{
    assert(!rc->is_dead);
    struct ray_call *call = xcalloc(1, sizeof(*call));
    *call = (struct ray_call){.rc = rc, .finish = finish, .arg = arg, .prev = rc->last};
    if (rc->last)
        rc->last->next = call;
    else
        rc->first = call;
    rc->last = call;
    return call;
}

static void unlink_call(struct ray_call *call)
{
    struct ray_client *rc = call->rc;
    if (call->prev)
        call->prev->next = call->next;
    else
        rc->first = call->next;
    if (call->next)
        call->next->prev = call->prev;
    else
        rc->last = call->prev;
}

static void ray_destroy(struct ray_call *call)
{
    wire_request_free(call->request);
    submit_free(call->submit);
    free(call->id);
    free(call);
}

void call_drop(struct ray_call *call)
{
    unlink_call(call);
    ray_destroy(call);
}

void call_finish(struct ray_call *call, const struct wire_reply *reply)
{
    struct ray_client *rc = call->rc;
    unlink_call(call);
    /* No server answers: another cluster, with another version, may answer next. */
    if (reply->err.code == ERR_UNREACHABLE)
        rc->has_version = false;
    call->finish(call, reply);
    ray_destroy(call);
}

static void on_reply(const struct wire_reply *reply, void *arg)
{
    struct ray_call *call = arg;
    call->request = NULL;
    call_finish(call, reply);
}

void call_send(struct ray_call *call, const char *path, const struct wire_order *order)
{
    struct wire_order o = *order;
    _cleanup_(freep) char *url = xasprintf("%s%s", call->rc->base_url, path);
    o.url = url;
    call->request = wire_send(call->rc->wire, &o, on_reply, call);
}

void ray_call_free(struct ray_call *call)
{
    if (!call)
        return;
    if (call->submit)
        submit_drop(call);
    else
        call_drop(call);
}

char *call_escape(const char *text)
{
    char *escaped = curl_easy_escape(NULL, text, 0);
    assert(escaped);
    char *copy = xstrdup(escaped);
    curl_free(escaped);
    return copy;
}

/* -- replies that are not what was hoped for --------------------------------------- */

bool reply_has(const struct wire_reply *reply, const char *text)
{
    return memmem(reply->body, reply->len, text, strlen(text)) != NULL;
}

/* The last line that says something: of a traceback that is the exception. */
static void last_words(const struct wire_reply *reply, char *out, size_t size)
{
    size_t end = reply->len;
    size_t begin = end, letters = 0;
    while (end > 0) {
        for (begin = end, letters = 0; begin > 0 && reply->body[begin - 1] != '\n'; begin--)
            letters += isalnum((unsigned char)reply->body[begin - 1]) != 0;
        if (letters > 3 || begin == 0)
            break;
        end = begin - 1;
    }
    size_t n = end - begin < size - 1 ? end - begin : size - 1;
    for (size_t i = 0; i < n; i++) {
        char c = reply->body[begin + i];
        out[i] = isprint((unsigned char)c) ? c : ' ';
    }
    out[n] = '\0';
}

int reply_error(const struct wire_reply *reply, const char *what, struct err *err)
{
    if (!reply->status)
        return message_refuse(
            err, reply->err.code, "ray_asked",
            MESSAGE_ARGS(MESSAGE_STR("verb", what), MESSAGE_ERR("why", &reply->err)));
    if (reply->status == 401 || reply->status == 403)
        return message_refuse(
            err, ERR_UNAUTHORISED, "ray_token",
            MESSAGE_ARGS(MESSAGE_STR("verb", what), MESSAGE_NUM("status", reply->status)));
    char words[256];
    last_words(reply, words, sizeof(words));
    return message_refuse(err, ERR_UNAVAILABLE, "ray_answered",
                          MESSAGE_ARGS(MESSAGE_STR("verb", what),
                                       MESSAGE_NUM("status", reply->status),
                                       MESSAGE_STR("says", words)));
}

/* -- start and end ------------------------------------------------------------------ */

int ray_check_address(const char *url, struct err *err)
{
    CURLU *parts = curl_url();
    assert(parts);
    bool ok = (str_starts(url, "http://") || str_starts(url, "https://")) &&
              curl_url_set(parts, CURLUPART_URL, url, CURLU_DISALLOW_USER) == CURLUE_OK;
    char *query = NULL;
    ok = ok && curl_url_get(parts, CURLUPART_QUERY, &query, 0) == CURLUE_NO_QUERY;
    curl_free(query);
    curl_url_cleanup(parts);
    if (!ok)
        return message_refuse(err, ERR_USAGE, "ray_address",
                              MESSAGE_ARGS(MESSAGE_STR("address", url)));
    return 0;
}

static usec_t or_span(usec_t span, usec_t dflt)
{
    return span ? span : dflt;
}

static void read_options(const struct ray_options *opt, struct ray_client *rc)
{
    usec_t submit = or_span(opt->submit_timeout, SUBMIT_PATIENCE);
    rc->submit_timeout = submit < SUBMIT_PATIENCE && !opt->impatient ? SUBMIT_PATIENCE : submit;
    rc->read_timeout = or_span(opt->read_timeout, 30 * USEC_SEC);
    rc->reply_max_bytes = opt->reply_max_bytes ? opt->reply_max_bytes : 4 * MIB;
    rc->list_reply_max_bytes = opt->list_reply_max_bytes ? opt->list_reply_max_bytes : 16 * MIB;
    if (opt->submits_per_second > 0)
        rc->gap_ms = (uint64_t)(1000 / opt->submits_per_second);
}

int ray_client_new(const struct ray_options *opt, struct ray_client **ret, struct err *err)
{
    int r = ray_check_address(opt->base_url, err);
    if (r < 0)
        return r;
    struct wire_options wire = {
        .loop = opt->loop,
        .user_agent = str_or(opt->user_agent, "argus"),
        .token = opt->token,
        .ca_file = opt->ca_file,
        .connect_timeout = or_span(opt->connect_timeout, 5 * USEC_SEC),
        .parallel_max = opt->parallel_max ? opt->parallel_max : 8,
    };
    struct ray_client *rc = xcalloc(1, sizeof(*rc));
    r = wire_new(&wire, &rc->wire, err);
    if (r < 0) {
        free(rc);
        return r;
    }
    size_t n = strlen(opt->base_url);
    while (n && opt->base_url[n - 1] == '/')
        n--;
    rc->base_url = xstrndup(opt->base_url, n);
    rc->loop = opt->loop;
    read_options(opt, rc);
    submit_init(rc);
    *ret = rc;
    return 0;
}

static void on_gap_closed(uv_handle_t *handle)
{
    struct ray_client *rc = handle->data;
    ray_version_release(&rc->version);
    free(rc->base_url);
    free(rc);
}

void ray_client_free(struct ray_client *rc)
{
    if (!rc || rc->is_dead)
        return;
    rc->is_dead = true;
    wire_free(rc->wire); /* and with it all requests */
    for (struct ray_call *call = rc->first, *next; call; call = next) {
        next = call->next;
        call->request = NULL;
        ray_destroy(call);
    }
    rc->first = rc->last = NULL;
    uv_close((uv_handle_t *)&rc->gap, on_gap_closed);
}
