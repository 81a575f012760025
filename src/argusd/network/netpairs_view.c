/* SPDX-License-Identifier: Apache-2.0 */
/* netpairs_view.c - see netpairs_view.h. Figures are whole numbers: a page stays as it is until
 * something was measured. */
#include "argusd/network/netpairs_view.h"

#include <math.h>

#include "base/str.h"

enum { PEERS_MAX = 1 << 20 };

/* Texts are borrowed for one answer. */
struct netpair_page {
    const char *a, *b, *job, *baseline_job;
    double mbps, usec, baseline, percent; /* the last two: -1 = not known */
    usec_t at, baseline_at;
    bool slow;
};
#define PAIR(member, ftype, ...) FIELD_AT(netpair_page, #member, ftype, member, __VA_ARGS__)
#define PAIR_FIGURES                                                                               \
    PAIR(mbps, FIELD_REAL, .flags = 0, .doc = "Mbit/s of the bus, all-reduce of 4 MiB"),           \
        PAIR(usec, FIELD_REAL, .flags = 0, .doc = "all-reduce of a KiB"),                          \
        PAIR(at, FIELD_TIME, .flags = 0), PAIR(job, FIELD_STR, .flags = FIELD_ALWAYS),             \
        FIELD_AT(netpair_page, "baseline_mbps", FIELD_REAL, baseline, .flags = FIELD_NO_LIMIT),    \
        PAIR(baseline_at, FIELD_TIME, .flags = 0), PAIR(baseline_job, FIELD_STR, .flags = 0),      \
        PAIR(percent, FIELD_REAL, .flags = FIELD_NO_LIMIT, .doc = "per cent of the baseline"),     \
        PAIR(slow, FIELD_BOOL, .flags = 0, .doc = "the pair is below 80 % of the baseline")
static const struct field netpair_page_rows[] = {PAIR(a, FIELD_STR, .flags = FIELD_ALWAYS),
                                                 PAIR(b, FIELD_STR, .flags = FIELD_ALWAYS),
                                                 PAIR_FIGURES};
const struct field_table netpair_page_table =
    FIELD_TABLE("NetworkPair", netpair_page_rows, netpair_page);
/* Seen from one of the two: the other one is `node`. */
static const struct field peer_rows[] = {
    FIELD_AT(netpair_page, "node", FIELD_STR, b, .flags = FIELD_ALWAYS), PAIR_FIGURES};
const struct field_table netpair_peer_table = FIELD_TABLE("NetworkPeer", peer_rows, netpair_page);

static struct netpair_page netpair_page_of(const struct netpair *p)
{
    double percent = p->baseline > 0 ? 100 * p->mbps / p->baseline : -1;
    return (struct netpair_page){.a = p->a,
                                 .b = p->b,
                                 .job = p->job,
                                 .baseline_job = p->baseline_job,
                                 .mbps = round(p->mbps),
                                 .usec = round(p->usec),
                                 .baseline = p->baseline > 0 ? round(p->baseline) : -1,
                                 .percent = percent < 0 ? -1 : floor(percent),
                                 .at = p->at,
                                 .baseline_at = p->baseline_at,
                                 .slow = percent >= 0 && percent < NETCHECK_LEAST};
}

void netpair_put(const struct netpair *p, struct jout *j, const char *key)
{
    const struct netpair_page page = netpair_page_of(p);
    field_to_json(&netpair_page_table, &page, FIELD_ALL, FIELD_PAGE, j, key);
}

char *netpairs_peers(const struct netpairs *np, const char *node)
{
    struct buf out = BUF_INIT(PEERS_MAX);
    struct jout j = jout_begin(&out);
    const struct netpair *p;
    jout_open(&j, NULL, '[');
    for (size_t pos = 0; (p = netpairs_next(np, &pos));) {
        struct netpair_page page = netpair_page_of(p);
        if (str_eq(p->b, node))
            page.b = p->a;
        else if (!str_eq(p->a, node))
            continue;
        field_to_json(&netpair_peer_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    }
    jout_close(&j, ']');
    return buf_take(&out);
}
