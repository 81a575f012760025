/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - GET /v1/events:verify: the whole chain of events, walked page by page.
 *
 * Pages are read off the loop by the store's readers; a page is small, because hashing it is
 * the loop's work of one turn (about half a millisecond). What is added meanwhile is walked
 * too. What was on disk when the walk began must be met: else rows were cut off at the end
 * while argusd ran; and the newest one must be that which argusd remembers: else a whole chain
 * was made anew under it, or its hashes were taken away. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/events_chain.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { PAGE = 250, ANSWER_MAX = 16 << 10 };

struct walk {
    struct http_req *req;
    struct api *a;
    struct store_read *read;
    struct events_check check;
    int64_t head;  /* on disk when it began */
    int64_t known; /* the newest in memory then, and its hash; 0: none has been yet */
    unsigned char known_hash[STORE_HASH_BYTES];
};

static void verify_on_gone(struct http_req *req, void *arg)
{
    struct walk *w = arg;
    (void)req;
    store_read_cancel(w->read);
    free(w);
}

static bool hash_is_none(const unsigned char *hash)
{
    static const unsigned char none[STORE_HASH_BYTES];
    return memcmp(hash, none, sizeof(none)) == 0;
}

static const char *hex_of(const unsigned char *hash, char ret[static HASH_HEX])
{
    return str_hex(hash, STORE_HASH_BYTES, ret);
}

/* The first thing that is wrong, as code and sentence; "" code: nothing is. */
static const char *verify_judge(const struct walk *w, char *ret_text, size_t size)
{
    const struct events_check *c = &w->check;
    *ret_text = 0;
    if (c->broken_seq) {
        text_printf_to(ret_text, size, "event %lld was changed, or what stood before it: %s",
                       (long long)c->broken_seq, c->why);
        return "broken";
    }
    if (c->last_seq < w->head) {
        text_printf_to(ret_text, size, "events after %lld were cut off: there was event %lld",
                       (long long)c->last_seq, (long long)w->head);
        return "cut_off";
    }
    if (c->has_expected && !c->expected_seq) {
        text_copy_to(ret_text, size,
                     "no event has the expected hash: those up to it were cut off or made anew");
        return "not_found";
    }
    return "";
}

/* A seq of -1 stands for none. */
struct verified_page {
    bool ok;
    int64_t count, unchained, head_seq, expected_seq, broken_seq;
    const char *head_hash, *code, *text;
};
#define VERIFIED(key, ftype, member, ...) FIELD_AT(verified_page, key, ftype, member, __VA_ARGS__)
static const struct field verified_rows[] = {
    VERIFIED("ok", FIELD_BOOL, ok),
    VERIFIED("count", FIELD_INT, count),
    VERIFIED("unchained", FIELD_INT, unchained),
    VERIFIED("head.seq", FIELD_INT, head_seq),
    VERIFIED("head.hash", FIELD_STR, head_hash),
    VERIFIED("expected_seq", FIELD_INT, expected_seq, .flags = FIELD_NO_LIMIT),
    VERIFIED("broken_seq", FIELD_INT, broken_seq, .flags = FIELD_NO_LIMIT),
    VERIFIED("reason.code", FIELD_STR, code, .flags = FIELD_ALWAYS),
    VERIFIED("reason.text", FIELD_STR, text, .flags = FIELD_ALWAYS),
};
static const struct field_table verified_table = FIELD_TABLE(NULL, verified_rows, verified_page);

static void verify_answer(struct walk *w)
{
    const struct events_check *c = &w->check;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    char text[256], hex[HASH_HEX];
    const char *code = verify_judge(w, text, sizeof(text));
    const struct verified_page page = {
        .ok = !*code,
        .count = c->count,
        .unchained = c->count - c->chained,
        .head_seq = c->last_seq,
        .head_hash = c->chained ? hex_of(c->hash, hex) : NULL,
        .expected_seq = c->has_expected && c->expected_seq ? c->expected_seq : -1,
        .broken_seq = c->broken_seq ? c->broken_seq : -1,
        .code = code,
        .text = text};
    field_to_json(&verified_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(w->req, 200, &out, 0);
    buf_release(&out);
}

static void check_row(struct walk *w, const struct store_event *row)
{
    events_check_add(&w->check, row);
    if (w->check.broken_seq || row->seq != w->known || hash_is_none(w->known_hash))
        return;
    if (!row->hash || memcmp(row->hash, w->known_hash, sizeof(w->known_hash)) != 0) {
        w->check.broken_seq = row->seq;
        w->check.why = "argusd, which wrote it, remembers another hash";
    }
}

static void verify_read_page(struct walk *w);

static void verify_on_page(const struct store_result *r, void *arg)
{
    struct walk *w = arg;
    for (size_t i = 0; i < r->nevents; i++)
        check_row(w, &r->events[i]);
    if (!r->err.code && !w->check.broken_seq && r->nevents == PAGE) {
        verify_read_page(w);
        return;
    }
    http_req_on_close(w->req, NULL, NULL);
    if (r->err.code)
        api_fail(w->req, &r->err, 0);
    else
        verify_answer(w);
    free(w);
}

static void verify_read_page(struct walk *w)
{
    struct store_event_query q = {.since = w->check.last_seq, .limit = PAGE};
    struct store_then then = {.done = verify_on_page, .arg = w};
    w->read = store_list_events(w->a->store, &q, &then);
}

/* 64 hex digits; -EINVAL. */
static int read_hash(const char *text, unsigned char *ret, struct err *err)
{
    size_t n = 0;
    if (strlen(text) == 2 * STORE_HASH_BYTES &&
        sodium_hex2bin(ret, STORE_HASH_BYTES, text, strlen(text), NULL, &n, NULL) == 0 &&
        n == STORE_HASH_BYTES)
        return 0;
    return message_refuse(err, ERR_BAD_REQUEST, "bad_expect_query",
                          MESSAGE_ARGS(MESSAGE_STR("text", text)));
}

static void api_events_verify(struct http_req *req, void *app)
{
    struct api *a = app;
    struct access_thing thing = {.kind = ACCESS_KIND_LOG, .name = "events"};
    const char *expect = http_req_query(req, "expect");
    struct access_who who;
    struct err err = {0};
    people_who(a->people, http_req_principal(req), &who);
    struct walk *w = xcalloc(1, sizeof(*w));
    *w = (struct walk){.req = req, .a = a, .head = events_last(a->events)};
    w->known = events_head(a->events, w->known_hash);
    int r = access_check(&who, ACCESS_AUDIT, "verify", &thing, &err);
    if (r == 0 && expect) {
        w->check.has_expected = true;
        r = read_hash(expect, w->check.expected, &err);
    }
    if (r < 0) {
        api_fail(req, &err, 0);
        free(w);
        return;
    }
    http_req_on_close(req, verify_on_gone, w);
    verify_read_page(w);
}

static const struct http_param verify_params[] = {
    {"expect", HTTP_PARAM_STRING, "a hash that was noted before: one of the events must have it"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/events:verify",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_events_verify,
     .summary = "check the chain of all events",
     .params = verify_params,
     .reply_schema = "Verified"},
};
static const struct http_schema schemas[] = {
    {.name = "Verified", .table = &verified_table},
};
const struct api_part part_verify = {rows, array_len(rows), schemas, array_len(schemas)};
