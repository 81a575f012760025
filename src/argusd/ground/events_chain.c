/* SPDX-License-Identifier: Apache-2.0 */
/* events_chain.c - see events_chain.h. Pure: the caller has the rows. */
#include "argusd/ground/events_chain.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/digest/hash.h"

static_assert((int)STORE_HASH_BYTES == (int)HASH_BYTES, "the chain is of SHA-256");

/* Short values are put together first: one long text is hashed faster than its pieces. */
struct chain_text {
    struct hash_running hash;
    unsigned char bytes[8 * HASH_BYTES];
    size_t n;
};

static void chain_add(struct chain_text *t, const void *p, size_t n)
{
    if (n > sizeof(t->bytes) - t->n) {
        hash_add(&t->hash, t->bytes, t->n);
        t->n = 0;
    }
    if (n > sizeof(t->bytes)) {
        hash_add(&t->hash, p, n);
        return;
    }
    memcpy(t->bytes + t->n, p, n);
    t->n += n;
}

static void chain_add_number(struct chain_text *t, uint64_t v)
{
    uint64_t bytes = htole64(v);
    chain_add(t, &bytes, sizeof(bytes));
}

static void chain_add_text(struct chain_text *t, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    chain_add_number(t, s ? n : UINT64_MAX);
    if (s)
        chain_add(t, s, n);
}

void events_chain(const unsigned char prev[static STORE_HASH_BYTES],
                  const struct store_event *row,
                  unsigned char ret[static STORE_HASH_BYTES])
{
    const char *texts[] = {row->kind,        row->actor, row->from_state, row->to_state,
                           row->reason_code, row->text,  row->data,       row->object};
    struct chain_text t;
    t.n = 0;
    hash_begin(&t.hash);
    chain_add(&t, prev, STORE_HASH_BYTES);
    chain_add_number(&t, (uint64_t)row->seq);
    chain_add_number(&t, row->at);
    chain_add_number(&t, (uint64_t)row->job_seq);
    for (size_t i = 0; i < array_len(texts); i++)
        chain_add_text(&t, texts[i]);
    hash_add(&t.hash, t.bytes, t.n);
    hash_end(&t.hash, ret);
}

static void events_chain_complain(struct events_check *c,
                                  const struct store_event *row,
                                  const char *why)
{
    c->broken_seq = row->seq;
    c->why = why;
}

void events_check_add(struct events_check *c, const struct store_event *row)
{
    unsigned char hash[STORE_HASH_BYTES];
    if (c->broken_seq)
        return;
    if (!row->hash && c->chained) {
        events_chain_complain(c, row, "it has no hash");
        return;
    }
    if (row->hash) {
        events_chain(c->hash, row, hash);
        if (memcmp(hash, row->hash, sizeof(hash)) != 0) {
            events_chain_complain(c, row,
                                  "its hash is not that of its content behind the one before");
            return;
        }
        memcpy(c->hash, hash, sizeof(hash));
        c->chained++;
        if (c->has_expected && memcmp(hash, c->expected, sizeof(hash)) == 0)
            c->expected_seq = row->seq;
    }
    c->count++;
    c->last_seq = row->seq;
}
