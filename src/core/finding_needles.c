/* SPDX-License-Identifier: Apache-2.0 */
/* finding_needles.c - see finding_needles.h.
 *
 * Of each needle one window of five bytes is taken, the rarest. It holds two pieces of four
 * bytes; whatever its place in the text, one of them begins at an even offset from where the
 * search began. So a look at every second position finds it, and no look depends on the
 * one before: the processor does several at once. */
#include "core/finding_needles.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { PIECE = 4, STRIDE = NEEDLE_MIN - PIECE + 1, HASH_BITS = 18, HEADS = 1 << 14 };

struct needle {
    char text[NEEDLE_MAX + 1]; /* lower case */
    size_t len;
};

/* A piece of a needle, and where in it. */
struct entry {
    uint32_t piece;
    unsigned needle;
    unsigned at;
    int next; /* in its chain; -1: the last */
};

struct needles {
    struct needle *v;
    size_t n, cap;
    struct entry *entries;
    size_t n_entries;
    int heads[HEADS];
    unsigned char bits[1 << (HASH_BITS - 3)];
};

static unsigned char lower(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? u | 0x20 : u;
}

/* Folds more than letters; what is found is compared. */
static inline uint32_t piece_at(const char *p)
{
    uint32_t piece;
    memcpy(&piece, p, sizeof(piece));
    return piece | 0x20202020U;
}

static inline uint32_t hash_of(uint32_t piece)
{
    return (piece * 0x9E3779B1U) >> (32 - HASH_BITS);
}

static inline bool may_be(const struct needles *n, uint32_t piece)
{
    uint32_t h = hash_of(piece);
    return n->bits[h >> 3] >> (h & 7) & 1;
}

struct needles *needles_new(void)
{
    struct needles *n = xcalloc(1, sizeof(*n));
    for (size_t i = 0; i < HEADS; i++)
        n->heads[i] = -1;
    return n;
}

void needles_free(struct needles *n)
{
    if (!n)
        return;
    free(n->v);
    free(n->entries);
    free(n);
}

unsigned needles_count(const struct needles *n)
{
    return (unsigned)n->n;
}

unsigned needles_add(struct needles *n, const char *text, size_t len)
{
    assert(len >= NEEDLE_MIN);
    struct needle add = {.len = len < NEEDLE_MAX ? len : NEEDLE_MAX};
    for (size_t i = 0; i < add.len; i++)
        add.text[i] = (char)lower(text[i]);
    for (size_t i = 0; i < n->n; i++)
        if (n->v[i].len == add.len && !memcmp(n->v[i].text, add.text, add.len))
            return (unsigned)i;
    if (n->n == n->cap) {
        n->cap = n->cap ? 2 * n->cap : 64;
        n->v = xrealloc(n->v, n->cap, sizeof(*n->v));
    }
    n->v[n->n] = add;
    return (unsigned)n->n++;
}

/* How common a byte is in logs, roughly: the letters of English and what stands in every line. */
static unsigned commonness(char c)
{
    static const char order[] = "qzxjkvbyw'\"()[]fgpmhducl_.0:/srnotia e";
    const char *at = c ? strchr(order, c) : NULL;
    return at ? (unsigned)(at - order) + 1 : 1;
}

/* Where the rarest NEEDLE_MIN bytes of a text begin; *ret_sum: how common they are. */
static size_t window_of(const char *text, size_t len, unsigned *ret_sum)
{
    size_t best = 0;
    *ret_sum = ~0U;
    for (size_t at = 0; at + NEEDLE_MIN <= len; at++) {
        unsigned sum = 0;
        for (size_t i = at; i < at + NEEDLE_MIN; i++)
            sum += commonness((char)lower(text[i]));
        if (sum < *ret_sum) {
            *ret_sum = sum;
            best = at;
        }
    }
    return best;
}

/* What healthy trainings print all the time: a text that stands in it tells little. */
static const char USUAL[] =
    "(workerdict pid=, ip=) (taskrunner pid=) (raylet) nccl info channel warning info "
    "scheduler.py engine.py worker.py server.py default output model weight state_dict checkpoint "
    "global_step_ is not because available found response response_length prompt group "
    "tokens tokenizer epoch steps step: progress training progress: rank world_size dataset data "
    "loaded loading saved saving number of the and with a  for from when value module quantization "
    "trust_remote_code torch transformers vllm sglang cuda cumem memory device process actor "
    "reward score length batch size config.py files requests server started cache preempted kv "
    "cache space world timed engine worker actor attention compile graph kernel version "
    "deprecated should must supported warnings.warn future userwarning ";

unsigned needle_rarity(const char *text, size_t len)
{
    char low[NEEDLE_MAX + 1];
    unsigned bits = 0;
    len = len < NEEDLE_MAX ? len : NEEDLE_MAX;
    for (size_t i = 0; i < len; i++) {
        low[i] = (char)lower(text[i]);
        bits += 60 - commonness(low[i]);
    }
    low[len] = '\0';
    return strstr(USUAL, low) ? 1 : bits;
}

void needles_build(struct needles *n)
{
    assert(!n->entries);
    n->entries = xcalloc(n->n * STRIDE + 1, sizeof(*n->entries));
    for (size_t i = 0; i < n->n; i++) {
        unsigned sum;
        size_t at = window_of(n->v[i].text, n->v[i].len, &sum);
        for (size_t k = 0; k < STRIDE; k++) {
            uint32_t piece = piece_at(n->v[i].text + at + k);
            int *head = &n->heads[hash_of(piece) % HEADS];
            n->entries[n->n_entries] = (struct entry){
                .piece = piece, .needle = (unsigned)i, .at = (unsigned)(at + k), .next = *head};
            *head = (int)n->n_entries++;
            n->bits[hash_of(piece) >> 3] |= (unsigned char)(1U << (hash_of(piece) & 7));
        }
    }
}

static bool is_at(const struct needle *v, const char *p)
{
    size_t last = v->len - PIECE;
    if (piece_at(p) != piece_at(v->text) || piece_at(p + last) != piece_at(v->text + last))
        return false;
    for (size_t i = 0; i < v->len; i++)
        if (lower(p[i]) != (unsigned char)v->text[i])
            return false;
    return true;
}

/* A needle around the piece at text + at, that lies within [0, len) and is not in found, which may
 * be NULL; *pos is its chain position and goes on. NULL: no more. */
static const struct entry *next_at(const struct needles *n,
                                   const char *text,
                                   size_t at,
                                   size_t len,
                                   const uint64_t *found,
                                   int *pos)
{
    uint32_t piece = piece_at(text + at);
    while (*pos >= 0) {
        const struct entry *e = &n->entries[*pos];
        const struct needle *v = &n->v[e->needle];
        *pos = e->next;
        if (e->piece != piece || (found && found[e->needle / 64] >> (e->needle % 64) & 1))
            continue;
        if (at >= e->at && at - e->at + v->len <= len && is_at(v, text + at - e->at))
            return e;
    }
    return NULL;
}

static const struct entry *first_at(const struct needles *n,
                                    const char *text,
                                    size_t at,
                                    size_t len)
{
    if (!may_be(n, piece_at(text + at)))
        return NULL;
    int pos = n->heads[hash_of(piece_at(text + at)) % HEADS];
    return next_at(n, text, at, len, NULL, &pos);
}

size_t needles_find(const struct needles *n, const char *text, size_t len)
{
    enum { ROUND = 8 };
    size_t at = 0;
    while (at + ROUND * STRIDE + PIECE <= len) {
        bool any = false;
        for (size_t k = 0; k < ROUND; k++)
            any |= may_be(n, piece_at(text + at + k * STRIDE));
        for (size_t k = 0; any && k < ROUND; k++) {
            const struct entry *e = first_at(n, text, at + k * STRIDE, len);
            if (e)
                return at + k * STRIDE - e->at;
        }
        at += ROUND * STRIDE;
    }
    for (; at + PIECE <= len; at += STRIDE) {
        const struct entry *e = first_at(n, text, at, len);
        if (e)
            return at - e->at;
    }
    return len;
}

void needles_all(const struct needles *n, const char *text, size_t len, uint64_t *found)
{
    for (size_t at = 0; at + PIECE <= len; at += STRIDE) {
        if (!may_be(n, piece_at(text + at)))
            continue;
        int pos = n->heads[hash_of(piece_at(text + at)) % HEADS];
        const struct entry *e;
        while ((e = next_at(n, text, at, len, found, &pos)))
            found[e->needle / 64] |= (uint64_t)1 << (e->needle % 64);
    }
}
