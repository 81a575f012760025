/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency.c - see idempotency.h. Whose keys are forgotten is keybook.c's. */
#include "argusd/submit/idempotency.h"

#include <string.h>

#include "argusd/submit/keybook.h"
#include "base/doc/doc.h"
#include "base/message.h"

enum { KEY_MAX = 200 };

/* NULL: there is none. */
static const char *idempotency_key_of(const struct http_req *req)
{
    const char *key = http_req_header(req, "Idempotency-Key");
    return key && *key ? key : NULL;
}

/* The hash of everything that was asked. */
static void hash_asked(const struct http_req *req,
                       const char *asked,
                       unsigned char ret[static HASH_BYTES])
{
    size_t n;
    const char *body = http_req_body(req, &n);
    struct buf all = BUF_INIT(2 * (size_t)DOC_MAX_BYTES);
    if (asked)
        (void)buf_adds(&all, asked); /* fits, as the next does: no larger than a spec may be */
    (void)buf_add(&all, body, n);
    hash_sha256(buf_str(&all), all.len, ret);
    buf_release(&all);
}

static void idempotency_on_forgot(const char *user, usec_t before, void *arg)
{
    const struct api *a = arg;
    store_prune_idempotency(a->store, user, before);
}

int idempotency_make_room(struct api *a, const struct http_req *req, usec_t now, struct err *err)
{
    const char *key = idempotency_key_of(req);
    if (!key)
        return 0;
    if (strlen(key) > KEY_MAX)
        return message_refuse(err, ERR_BAD_REQUEST, "key_too_long",
                              MESSAGE_ARGS(MESSAGE_NUM("most", KEY_MAX)));
    int most =
        keybook_make_room(a->keys, http_req_principal(req)->user, now, idempotency_on_forgot, a);
    return most ? message_refuse(err, ERR_BUSY, "too_many_keys",
                                 MESSAGE_ARGS(MESSAGE_NUM("most", most)))
                : 0;
}

int idempotency_find(const struct api *a,
                     const struct http_req *req,
                     const char *asked,
                     const char **ret_job,
                     struct err *err)
{
    const char *key = idempotency_key_of(req), *user = http_req_principal(req)->user;
    const struct keybook_key *old = key ? keybook_find(a->keys, user, key) : NULL;
    unsigned char body[HASH_BYTES];
    *ret_job = NULL;
    if (!old)
        return 0;
    hash_asked(req, asked, body);
    if (memcmp(body, old->body, sizeof(body)) != 0)
        return message_refuse(err, ERR_CONFLICT, "key_used",
                              MESSAGE_ARGS(MESSAGE_STR("job", old->job_id)));
    *ret_job = old->job_id;
    return 0;
}

void idempotency_note(struct api *a,
                      const struct http_req *req,
                      const char *asked,
                      const char *job_id,
                      usec_t now)
{
    const char *key = idempotency_key_of(req), *user = http_req_principal(req)->user;
    struct store_idempotency row = {.user = user, .key = key, .job_id = job_id, .at = now};
    unsigned char body[HASH_BYTES];
    if (!key)
        return;
    hash_asked(req, asked, body);
    row.body_hash = body;
    api_restore_idempotency(a, &row);
    store_put_idempotency(a->store, &row);
}

/* ---- at start and end, see api.h ---- */

void api_restore_idempotency(struct api *a, const struct store_idempotency *row)
{
    keybook_add(a->keys, row->user, row->key, row->body_hash, row->job_id, row->at);
}

void api_forget(struct api *a)
{
    keybook_free(a->keys);
    a->keys = NULL;
}
