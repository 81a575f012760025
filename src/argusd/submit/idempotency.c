/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency.c - see idempotency.h. The map is by "user\nkey". */
#include "argusd/submit/idempotency.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/doc/doc.h"
#include "base/map.h"
#include "base/message.h"

enum { IDEMPOTENCY_MAX = 100000, KEY_MAX = 200 };
/* A key is for a retry: the younger ones stay when there are too many. */
static const usec_t KEY_AGES[] = {USEC_DAY, 60 * USEC_MIN, 10 * USEC_MIN, USEC_MIN};

struct idempotent {
    unsigned char body[HASH_BYTES];
    char *job_id;
    usec_t at; /* wall */
};

static char *idempotency_key_of(const struct http_req *req)
{
    const char *key = http_req_header(req, "Idempotency-Key");
    return key && *key ? xasprintf("%s\n%s", http_req_principal(req)->user, key) : NULL;
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

static void idempotent_free(struct idempotent *i)
{
    if (i)
        free(i->job_id);
    free(i);
}

static void idempotency_remember(struct api *a,
                                 const char *key,
                                 const unsigned char *body,
                                 const char *job_id,
                                 usec_t at)
{
    struct idempotent *i = xcalloc(1, sizeof(*i));
    memcpy(i->body, body, HASH_BYTES);
    i->job_id = xstrdup(job_id);
    i->at = at;
    idempotent_free(map_set(a->idempotency, key, i));
}

static void forget_older(struct api *a, usec_t before)
{
    unsigned char seed[16];
    struct idempotent *i;
    const char *key;
    random_bytes(seed, sizeof(seed));
    struct map *kept = map_new(seed);
    for (size_t pos = 0; (i = map_next(a->idempotency, &pos, &key));)
        if (i->at >= before)
            map_set(kept, key, i);
        else
            idempotent_free(i);
    map_free(a->idempotency);
    a->idempotency = kept;
    store_prune_idempotency(a->store, before);
}

int idempotency_make_room(struct api *a, const struct http_req *req, usec_t now, struct err *err)
{
    const char *key = http_req_header(req, "Idempotency-Key");
    if (!key || !*key)
        return 0;
    if (strlen(key) > KEY_MAX)
        return message_refuse(err, ERR_BAD_REQUEST, "key_too_long",
                              MESSAGE_ARGS(MESSAGE_NUM("most", KEY_MAX)));
    for (size_t i = 0; i < array_len(KEY_AGES); i++) {
        if (map_count(a->idempotency) < IDEMPOTENCY_MAX)
            return 0;
        forget_older(a, now > KEY_AGES[i] ? now - KEY_AGES[i] : 0);
    }
    return map_count(a->idempotency) < IDEMPOTENCY_MAX
               ? 0
               : message_refuse(err, ERR_BUSY, "too_many_keys",
                                MESSAGE_ARGS(MESSAGE_NUM("most", IDEMPOTENCY_MAX)));
}

int idempotency_find(const struct api *a,
                     const struct http_req *req,
                     const char *asked,
                     const char **ret_job,
                     struct err *err)
{
    _cleanup_(freep) char *key = idempotency_key_of(req);
    const struct idempotent *old = key ? map_find(a->idempotency, key) : NULL;
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
    _cleanup_(freep) char *key = idempotency_key_of(req);
    unsigned char body[HASH_BYTES];
    if (!key)
        return;
    hash_asked(req, asked, body);
    idempotency_remember(a, key, body, job_id, now);
    struct store_idempotency row = {.user = http_req_principal(req)->user,
                                    .key = strchr(key, '\n') + 1,
                                    .body_hash = body,
                                    .job_id = job_id,
                                    .at = now};
    store_put_idempotency(a->store, &row);
}

/* ---- at start and end, see api.h ---- */

void api_restore_idempotency(struct api *a, const struct store_idempotency *row)
{
    _cleanup_(freep) char *key = xasprintf("%s\n%s", row->user, row->key);
    idempotency_remember(a, key, row->body_hash, row->job_id, row->at);
}

void api_forget(struct api *a)
{
    struct idempotent *i;
    if (!a->idempotency)
        return;
    for (size_t pos = 0; (i = map_next(a->idempotency, &pos, NULL));)
        idempotent_free(i);
    map_free(a->idempotency);
}
