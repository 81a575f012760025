/* SPDX-License-Identifier: Apache-2.0 */
/* node_slow.c - the book of a node is read, changed and written as a whole; see node_slow.h. */
#include "core/job/node_slow.h"

#include <inttypes.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "base/text.h"

static const int64_t SLOW_SECONDS_MAX = INT64_C(1) << 40;
static const int64_t SLOW_OF_NOBODY = 0; /* a user that is not known */

struct slow_job {
    int64_t job, user; /* their hashes */
    usec_t at;
};

static int64_t slow_hash(const char *name)
{
    static const unsigned char seed[16] = "slow on a node 1"; /* whoever collides counts once */
    return (int64_t)(hash_keyed(seed, name, strlen(name)) >> 1);
}

/* Cuts the next number off the text. False: it is none. */
static bool slow_read_number(char **text, int64_t most, int64_t *ret)
{
    char *from = *text, *end = strchr(from, '@');
    if (end)
        *end = 0;
    *text = end ? end + 1 : NULL;
    return str_to_int(from, 0, most, ret, NULL) == 0;
}

/* "12@34@56"; an older one is "12@34". */
static bool slow_read_one(const char *p, size_t n, struct slow_job *ret)
{
    char word[3 * 24], *rest = word;
    int64_t seconds;
    struct slow_job got = {.user = SLOW_OF_NOBODY};
    if (n >= sizeof(word))
        return false;
    memcpy(word, p, n);
    word[n] = 0;
    if (!slow_read_number(&rest, INT64_MAX, &got.job) || !rest ||
        !slow_read_number(&rest, SLOW_SECONDS_MAX, &seconds) ||
        (rest && !slow_read_number(&rest, INT64_MAX, &got.user)))
        return false;
    got.at = (usec_t)seconds * USEC_SEC;
    *ret = got;
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

static size_t slow_count_of(const struct slow_job *v, size_t n, int64_t user)
{
    size_t his = 0;
    for (size_t i = 0; i < n; i++)
        his += v[i].user == user;
    return his;
}

/* The oldest of the user who has most. */
static size_t slow_choose(const struct slow_job *v, size_t n)
{
    size_t best = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        size_t his = slow_count_of(v, n, v[i].user);
        if (his > most) {
            most = his;
            best = i;
        }
    }
    return best;
}

static size_t slow_drop(struct slow_job *v, size_t n, size_t at)
{
    memmove(v + at, v + at + 1, (n - at - 1) * sizeof(*v));
    return n - 1;
}

bool node_slow_note(char book[static NODE_SLOW_MAX], const char *job, const char *user, usec_t now)
{
    struct slow_job v[NODE_SLOW_JOBS + 1];
    size_t n = slow_read(book, now, v), len = 0;
    int64_t hash = slow_hash(job);
    for (size_t i = n; i-- > 0;) {
        if (v[i].job == hash && v[i].at + USEC_HOUR > now)
            return false;
        if (v[i].job == hash)
            n = slow_drop(v, n, i);
    }
    v[n++] = (struct slow_job){hash, slow_hash(user), now};
    if (n > NODE_SLOW_JOBS)
        n = slow_drop(v, n, slow_choose(v, n));
    book[0] = 0;
    for (size_t i = 0; i < n; i++) {
        text_printf_to(book + len, NODE_SLOW_MAX - len, "%s%" PRId64 "@%" PRIu64 "@%" PRId64,
                       i ? " " : "", v[i].job, v[i].at / USEC_SEC, v[i].user);
        len += strlen(book + len);
    }
    return true;
}

int node_slow_count(const char *book, usec_t now, int *ret_users)
{
    struct slow_job v[NODE_SLOW_JOBS];
    size_t n = slow_read(book, now, v);
    *ret_users = 0;
    for (size_t i = 0; i < n; i++)
        *ret_users += !slow_count_of(v, i, v[i].user); /* none before it is his */
    return (int)n;
}

bool node_slow_is(const char *book, usec_t now)
{
    int users;
    (void)node_slow_count(book, now, &users); /* however many the jobs are */
    return users >= NODE_SLOW_LEAST;
}
