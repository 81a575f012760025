/* SPDX-License-Identifier: Apache-2.0 */
/* finding_needles.c - see finding_needles.h.
 *
 * Of each needle one window of five bytes is taken, the rarest. It holds two pieces of four
 * bytes; whatever its place in the text, one of them begins at an even offset from where the
 * search began. So a look at every second position finds it. The looks are made for a stretch of
 * text at once and what passes is kept without a branch, so no look depends on the one before:
 * the processor does several at once. What passed is looked at again for its whole window, which
 * leaves hardly anything but needles. */
#include "core/finding/rules/finding_needles.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    PIECE = 4,
    STRIDE = NEEDLE_MIN - PIECE + 1,
    HASH_BITS = 18,
    HEADS = 1 << 14,
    STRETCH = 1024, /* bytes that are sifted at once */
    AHEAD = 8,      /* looks of one round */
};

struct needle {
    char text[NEEDLE_MAX + 1]; /* lower case */
    size_t len;
};

/* The window of a needle, and where in it. */
struct entry {
    uint64_t window;
    unsigned at;
    int next; /* in its chain; -1: the last */
};

struct needles {
    struct needle *v;
    size_t n, cap;
    struct entry *entries; /* one per needle */
    int heads[HEADS];
    uint32_t pieces[1 << (HASH_BITS - 5)], windows[1 << (HASH_BITS - 5)];
};

static unsigned char finding_needles_lower(char c)
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

static inline uint64_t window_at(const char *p)
{
    return piece_at(p) | (uint64_t)((unsigned char)p[PIECE] | 0x20) << 32;
}

static inline uint32_t finding_needles_hash_of(uint32_t piece)
{
    return (piece * 0x9E3779B1U) >> (32 - HASH_BITS);
}

static inline uint32_t window_hash(uint64_t window)
{
    return (uint32_t)((window * 0x9E3779B97F4A7C15U) >> (64 - HASH_BITS));
}

static inline uint32_t finding_needles_has(const uint32_t *bits, uint32_t h)
{
    return bits[h >> 5] >> (h & 31) & 1;
}

static void set(uint32_t *bits, uint32_t h)
{
    bits[h >> 5] |= 1U << (h & 31);
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
        add.text[i] = (char)finding_needles_lower(text[i]);
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
    "deprecated should must supported warnings.warn future userwarning (pid= training rollout "
    "timing_s/ timing_per_token_ms/ update_actor update_weights old_log_prob compute_log_prob "
    "compute_ref generate_sequences actor/ critic/ perf/ throughput total_num_tokens "
    "global_seqlen/ "
    "minmax_diff balanced_max mfu/ pg_loss ppo_kl clipfrac clip_ratio entropy grad_norm kl_loss "
    "advantages/ returns/ values/ rewards/ score/ prompt_length/ num_turns/ abort ratio mean max "
    "min std lr: iteration learning_rate config configuration compute compiling processing "
    "preempted sequence mode recompute profiling takes initializing ";

static bool is_usual(const char *text, size_t len)
{
    char low[NEEDLE_MAX + 1];
    for (size_t i = 0; i < len; i++)
        low[i] = (char)finding_needles_lower(text[i]);
    low[len] = '\0';
    return strstr(USUAL, low);
}

/* Where the rarest NEEDLE_MIN bytes of a text begin; *ret_sum: how common they are. */
static size_t window_of(const char *text, size_t len, unsigned *ret_sum)
{
    enum { MOST = 1000 }; /* more than a window of the commonest bytes */
    size_t best = 0;
    *ret_sum = ~0U;
    for (size_t at = 0; at + NEEDLE_MIN <= len; at++) {
        unsigned sum = 0;
        for (size_t i = at; i < at + NEEDLE_MIN; i++)
            sum += commonness((char)finding_needles_lower(text[i]));
        for (size_t k = 0; k < STRIDE; k++)
            sum += is_usual(text + at + k, PIECE) ? MOST : 0;
        if (sum < *ret_sum) {
            *ret_sum = sum;
            best = at;
        }
    }
    return best;
}

unsigned needle_rarity(const char *text, size_t len)
{
    unsigned bits = 0;
    len = len < NEEDLE_MAX ? len : NEEDLE_MAX;
    for (size_t i = 0; i < len; i++)
        bits += 60 - commonness((char)finding_needles_lower(text[i]));
    return is_usual(text, len) ? 1 : bits;
}

void needles_build(struct needles *n)
{
    assert(!n->entries);
    n->entries = xcalloc(n->n + 1, sizeof(*n->entries));
    for (size_t i = 0; i < n->n; i++) {
        unsigned sum;
        const char *text = n->v[i].text;
        size_t at = window_of(text, n->v[i].len, &sum);
        uint64_t window = window_at(text + at);
        int *head = &n->heads[window_hash(window) % HEADS];
        n->entries[i] = (struct entry){window, (unsigned)at, *head};
        *head = (int)i;
        set(n->windows, window_hash(window));
        for (size_t k = 0; k < STRIDE; k++)
            set(n->pieces, finding_needles_hash_of(piece_at(text + at + k)));
    }
}

static bool is_at(const struct needle *v, const char *p)
{
    size_t last = v->len - PIECE;
    if (piece_at(p) != piece_at(v->text) || piece_at(p + last) != piece_at(v->text + last))
        return false;
    for (size_t i = 0; i < v->len; i++)
        if (finding_needles_lower(p[i]) != (unsigned char)v->text[i])
            return false;
    return true;
}

/* The places of [from, to), every second one, where a piece of a needle may begin, counted from
 * from, into out, which has room for all; PIECE bytes may be read at each. How many. */
static size_t sift_pieces(const struct needles *n,
                          const char *text,
                          size_t from,
                          size_t to,
                          uint16_t *out)
{
    size_t found = 0, at = from;
    for (; at + (AHEAD - 1) * STRIDE < to; at += AHEAD * STRIDE)
        for (size_t k = 0; k < AHEAD; k++) {
            out[found] = (uint16_t)(at - from + k * STRIDE);
            found += finding_needles_has(n->pieces,
                                         finding_needles_hash_of(piece_at(text + at + k * STRIDE)));
        }
    for (; at < to; at += STRIDE) {
        out[found] = (uint16_t)(at - from);
        found += finding_needles_has(n->pieces, finding_needles_hash_of(piece_at(text + at)));
    }
    return found;
}

/* Looks at the windows that hold the given pieces and writes to out those that a needle may begin
 * in, as offsets counted from `from - 1`. out has room for two per piece. Returns how many. */
static size_t sift_windows(const struct needles *n,
                           const char *text,
                           size_t from,
                           size_t len,
                           const uint16_t *pieces,
                           size_t n_pieces,
                           uint16_t *out)
{
    size_t found = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        size_t at = from + pieces[i];
        if (at) {
            out[found] = pieces[i];
            found += finding_needles_has(n->windows, window_hash(window_at(text + at - 1)));
        }
        if (at + NEEDLE_MIN <= len) {
            out[found] = (uint16_t)(pieces[i] + 1);
            found += finding_needles_has(n->windows, window_hash(window_at(text + at)));
        }
    }
    return found;
}

/* Windows in which a needle's may begin, counted from one before a place in the text. */
struct sifted {
    size_t n, to; /* to: where to go on */
    uint16_t v[2 * STRETCH / STRIDE];
};

static void sift(const struct needles *n,
                 const char *text,
                 size_t from,
                 size_t len,
                 struct sifted *ret)
{
    uint16_t pieces[STRETCH / STRIDE] = {0};
    ret->to = len - from > STRETCH ? from + STRETCH : len;
    size_t last = len < PIECE ? 0 : len - PIECE + 1, to = ret->to < last ? ret->to : last;
    size_t n_pieces = from < to ? sift_pieces(n, text, from, to, pieces) : 0;
    ret->n = sift_windows(n, text, from, len, pieces, n_pieces, ret->v);
}

/* A needle around the window at text + at, that lies within [0, len); *pos is its chain position
 * and goes on. -1: no more. */
static int next_at(const struct needles *n, const char *text, size_t at, size_t len, int *pos)
{
    while (*pos >= 0) {
        int needle = *pos;
        const struct entry *e = &n->entries[needle];
        const struct needle *v = &n->v[needle];
        *pos = e->next;
        if (e->window == window_at(text + at) && at >= e->at && at - e->at + v->len <= len &&
            is_at(v, text + at - e->at))
            return needle;
    }
    return -1;
}

static int chain_of(const struct needles *n, const char *window)
{
    return n->heads[window_hash(window_at(window)) % HEADS];
}

static void add_hit(struct needle_hits *hits, size_t at, int needle)
{
    if (hits->n == hits->cap) {
        hits->cap = hits->cap ? 2 * hits->cap : 64;
        hits->v = xrealloc(hits->v, hits->cap, sizeof(*hits->v));
    }
    hits->v[hits->n++] = (struct needle_hit){at, (unsigned)needle};
}

size_t needles_look(const struct needles *n,
                    const char *text,
                    size_t from,
                    size_t len,
                    struct needle_hits *ret)
{
    struct sifted windows = {0};
    ret->n = 0;
    sift(n, text, from, len, &windows);
    for (size_t i = 0; i < windows.n; i++) {
        size_t at = from + windows.v[i] - 1;
        int needle, pos = chain_of(n, text + at);
        while ((needle = next_at(n, text, at, len, &pos)) >= 0)
            add_hit(ret, at, needle);
    }
    return windows.to;
}

size_t needles_find(const struct needles *n, const char *text, size_t len)
{
    struct needle_hits hits = {0};
    size_t at = 0, found = len;
    while (at < len && !hits.n)
        at = needles_look(n, text, at, len, &hits);
    if (hits.n)
        found = hits.v[0].at - n->entries[hits.v[0].needle].at;
    free(hits.v);
    return found;
}

void needles_all(const struct needles *n,
                 const char *text,
                 size_t from,
                 size_t len,
                 uint64_t *found)
{
    struct sifted windows = {0};
    for (; from < len; from = windows.to) {
        sift(n, text, from, len, &windows);
        for (size_t i = 0; i < windows.n; i++) {
            size_t at = from + windows.v[i] - 1;
            int needle, pos = chain_of(n, text + at);
            while ((needle = next_at(n, text, at, len, &pos)) >= 0)
                found[needle / 64] |= (uint64_t)1 << (needle % 64);
        }
    }
}
