/* SPDX-License-Identifier: Apache-2.0 */
/* node_slow.c - the book of a node is read, changed and written as a whole; see node_slow.h. */
#include "core/job/node_slow.h"

#include <inttypes.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "base/text.h"

static const int64_t SLOW_SECONDS_MAX = INT64_C(1) << 40;

struct slow_job {
    int64_t job; /* its hash */
    usec_t at;
};

static int64_t slow_hash(const char *job)
{
    static const unsigned char seed[16] = "slow on a node 1"; /* whoever collides counts once */
    return (int64_t)(hash_keyed(seed, job, strlen(job)) >> 1);
}

/* "12@34" */
static bool slow_read_one(const char *p, size_t n, struct slow_job *ret)
{
    char word[2 * 24];
    int64_t seconds;
    if (n >= sizeof(word))
        return false;
    memcpy(word, p, n);
    word[n] = 0;
    char *at = strchr(word, '@');
    if (!at)
        return false;
    *at = 0;
    if (str_to_int(word, 0, INT64_MAX, &ret->job, NULL) < 0 ||
        str_to_int(at + 1, 0, SLOW_SECONDS_MAX, &seconds, NULL) < 0)
        return false;
    ret->at = (usec_t)seconds * USEC_SEC;
    return true;
}

/* Those of the last days, the newest last; how many. */
static size_t slow_read(const char *book, usec_t now, struct slow_job v[static NODE_SLOW_JOBS])
{
    size_t n = 0;
    while (*book && n < NODE_SLOW_JOBS) {
        size_t len = strcspn(book, " ");
        if (slow_read_one(book, len, &v[n]) && v[n].at + NODE_SLOW_DAYS > now)
            n++;
        book += len + (book[len] == ' ');
    }
    return n;
}

bool node_slow_note(char book[static NODE_SLOW_MAX], const char *job, usec_t now)
{
    struct slow_job v[NODE_SLOW_JOBS];
    size_t n = slow_read(book, now, v), kept = 0, len = 0;
    int64_t hash = slow_hash(job);
    for (size_t i = 0; i < n; i++) {
        if (v[i].job == hash && v[i].at + USEC_HOUR > now)
            return false;
        if (v[i].job != hash)
            v[kept++] = v[i];
    }
    if (kept == NODE_SLOW_JOBS)
        memmove(v, v + 1, --kept * sizeof(*v));
    v[kept++] = (struct slow_job){hash, now};
    book[0] = 0;
    for (size_t i = 0; i < kept; i++) {
        text_printf_to(book + len, NODE_SLOW_MAX - len, "%s%" PRId64 "@%" PRIu64, i ? " " : "",
                       v[i].job, v[i].at / USEC_SEC);
        len += strlen(book + len);
    }
    return true;
}

int node_slow_count(const char *book, usec_t now)
{
    struct slow_job v[NODE_SLOW_JOBS];
    return (int)slow_read(book, now, v);
}
