/* SPDX-License-Identifier: Apache-2.0 */
/* events_chain.c - see events_chain.h. Pure: the caller has the rows. */
#include "argusd/ground/events_chain.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "base/hash.h"

static_assert((int)STORE_HASH_BYTES == (int)HASH_BYTES, "the chain is of SHA-256");

static void add_number(crypto_hash_sha256_state *st, uint64_t v)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    (void)crypto_hash_sha256_update(st, bytes, sizeof(bytes)); /* always 0, as below */
}

static void events_chain_add_text(crypto_hash_sha256_state *st, const char *s)
{
    add_number(st, s ? strlen(s) : UINT64_MAX);
    if (s)
        (void)crypto_hash_sha256_update(st, (const unsigned char *)s, strlen(s));
}

void events_chain(const unsigned char prev[static STORE_HASH_BYTES],
                  const struct store_event *row,
                  unsigned char ret[static STORE_HASH_BYTES])
{
    const char *texts[] = {row->kind,        row->actor, row->from_state, row->to_state,
                           row->reason_code, row->text,  row->data,       row->object};
    crypto_hash_sha256_state st;
    (void)crypto_hash_sha256_init(&st);
    (void)crypto_hash_sha256_update(&st, prev, STORE_HASH_BYTES);
    add_number(&st, (uint64_t)row->seq);
    add_number(&st, row->at);
    add_number(&st, (uint64_t)row->job_seq);
    for (size_t i = 0; i < array_len(texts); i++)
        events_chain_add_text(&st, texts[i]);
    (void)crypto_hash_sha256_final(&st, ret);
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
