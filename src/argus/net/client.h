/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - HTTP to one argusd, several transfers at a time, over libcurl.
 *
 * Nothing blocks but client_turn() and what is built on it; both end early with
 * -EINTR when the wake descriptor becomes readable (Ctrl-C while following). What a
 * server sends is outside bytes: bodies have a ceiling, redirects are not followed. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "argus/net/settings.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/message.h"

enum { CLIENT_BODY_MAX = 64 << 20 };

/* Up to max bytes of a body into `to`: how many, 0 at the end; negative ends the transfer. */
typedef int64_t (*client_read_f)(char *to, size_t max, void *arg);

struct request {
    const char *method; /* NULL = GET */
    const char *path;   /* "/v1/jobs?limit=5": encoded already */
    const char *content_type;
    const char *accept; /* NULL = JSON */
    const char *body;   /* borrowed until the transfer is done */
    size_t body_len;
    client_read_f read; /* in place of body: read_bytes of it, never all in memory */
    void *read_arg;
    uint64_t read_bytes;
    const char *range, *if_range; /* NULL = none */
    const char *idempotency_key;
    const char *etag;          /* If-None-Match */
    const char *last_event_id; /* NULL = none */
    int tries;                 /* how often a lost connection or a 503 is tried again */
};

struct response {
    int status; /* 0 = no answer */
    struct buf body;
    char etag[128];
    int64_t log_size, log_offset;   /* Argus-Log-Size and -Offset, -1 = none */
    enum message_language language; /* of its refusal */
};

struct client;
struct transfer;

struct client *client_new(const struct settings *settings); /* settings are borrowed */
void client_free(struct client *c);                         /* NULL is fine */
void client_set_wake(struct client *c, int fd);             /* borrowed; -1 = none */
/* Refusals are said in this language, and with `bodies` so are the messages in answers:
 * base/message.h has the sentences. What this program has no sentence for stays as the server said
 * it. */
void client_set_language(struct client *c, enum message_language language, bool bodies);
/* Told about every new try. */
void client_set_talk(struct client *c, void (*talk)(const char *sentence, void *arg), void *arg);

void response_release(struct response *r);

/* ---- whole answers ---- */

/* One request, its answer whole; asked again for up to 10 s while the server has just started
 * (ERR_NOT_YET). A refusal (4xx, 5xx) is an answer, not an error; see
 * response_error(). ERR_UNREACHABLE, ERR_TOO_LARGE, -EINTR. */
must_check int client_call(struct client *c,
                           const struct request *request,
                           struct response *ret,
                           struct err *err);
/* The same, and the answer as JSON; a refusal is the error. *ret is a new reference. */
must_check int client_json(struct client *c,
                           const struct request *request,
                           json_t **ret,
                           struct err *err);
must_check int client_get(struct client *c, const char *path, json_t **ret, struct err *err);

/* The messages of an answer that was read elsewhere, as client_set_language() asks. */
void client_say(const struct client *c, json_t *answer);

/* 0 for a status below 400, else the problem that the server told. */
must_check int response_error(const struct response *r, struct err *err);

/* Wait, waking early with -EINTR. */
must_check int client_pause(struct client *c, int milliseconds);

/* ---- transfers that stay open ---- */

/* Bytes of an answer below 300, as they come. Negative ends the transfer with that code. */
typedef int (*client_bytes_f)(const char *p, size_t n, void *arg);

/* The request's texts are copied, its body is borrowed. on_bytes NULL gathers the body. */
struct transfer *transfer_start(struct client *c,
                                const struct request *request,
                                client_bytes_f on_bytes,
                                void *arg);
void transfer_free(struct transfer *t); /* ends it; NULL is fine */
void transfer_freep(struct transfer **t);
bool transfer_is_done(const struct transfer *t);
/* How a transfer that is done ended: 0, or why there is no whole answer. */
must_check int transfer_result(const struct transfer *t, struct err *err);
/* The status of the answer, once on_bytes is called; 0 before. */
int transfer_status(const struct transfer *t);
struct response *transfer_response(struct transfer *t); /* borrowed */

/* Let the transfers go on until something happened or the time is over. 0 or -EINTR. */
must_check int client_turn(struct client *c, int timeout_ms);
/* The same until t is done, whatever its end; see transfer_result(). 0 or -EINTR. */
must_check int transfer_wait(struct client *c, const struct transfer *t, struct err *err);

/* ---- addresses ---- */

/* Append "?key=value" or "&key=value"; nothing when value is NULL. */
void url_query(struct buf *out, const char *key, const char *value);
