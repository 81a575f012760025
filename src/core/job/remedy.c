/* SPDX-License-Identifier: Apache-2.0 */
/* remedy.c - the book of a node is read and written as a whole; see remedy.h. */
#include "core/job/remedy.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

/* As large as the acts of an hour. */
struct remedy_hour {
#define X(e, name, limit, rest) char of_##e[limit];
    REMEDY_TABLE(X)
#undef X
};
enum { REMEDY_ACTS_MAX = sizeof(struct remedy_hour), REMEDY_WORD_MAX = 32 };
static_assert(REMEDY_ACTS_MAX * REMEDY_WORD_MAX <= REMEDY_BOOK_MAX, "the book has room for all");
static const int64_t REMEDY_SECONDS_MAX = INT64_C(1) << 40;

struct remedy_row {
    const char *name;
    int limit;
    usec_t rest;
};
static const struct remedy_row remedy_rows[] = {
#define X(e, name, limit, rest) {name, limit, rest},
    REMEDY_TABLE(X)
#undef X
};

struct remedy_done {
    enum remedy what;
    usec_t at;
};

const char *remedy_to_string(enum remedy r)
{
    return remedy_rows[r].name;
}

bool remedy_from_string(const char *word, enum remedy *ret)
{
    for (size_t i = 0; i < REMEDY_END; i++)
        if (!strcmp(word, remedy_rows[i].name)) {
            *ret = (enum remedy)i;
            return true;
        }
    return false;
}

int remedy_limit(enum remedy r)
{
    return remedy_rows[r].limit;
}

usec_t remedy_rest(enum remedy r)
{
    return remedy_rows[r].rest;
}

/* "stray_process@1796000000" */
static bool remedy_read_one(const char *p, size_t n, struct remedy_done *ret)
{
    char word[REMEDY_WORD_MAX + 24];
    int64_t seconds;
    if (n >= sizeof(word))
        return false;
    memcpy(word, p, n);
    word[n] = 0;
    char *at = strchr(word, '@');
    if (!at || str_to_int(at + 1, 0, REMEDY_SECONDS_MAX, &seconds, NULL) < 0)
        return false;
    *at = 0;
    if (!remedy_from_string(word, &ret->what))
        return false;
    ret->at = (usec_t)seconds * USEC_SEC;
    return true;
}

/* Those of the last hour, the newest last; how many. Of more than there can be the first ones. */
static size_t remedy_read(const char *book,
                          usec_t now,
                          struct remedy_done v[static REMEDY_ACTS_MAX])
{
    size_t n = 0;
    while (*book && n < REMEDY_ACTS_MAX) {
        size_t len = strcspn(book, " ");
        if (remedy_read_one(book, len, &v[n]) && v[n].at <= now && now - v[n].at < USEC_HOUR)
            n++;
        book += len + (book[len] == ' ');
    }
    return n;
}

/* *ret_last: when the newest of them was; 0: there is none. */
static int remedy_count(const char *book, enum remedy r, usec_t now, usec_t *ret_last)
{
    struct remedy_done v[REMEDY_ACTS_MAX];
    size_t n = remedy_read(book, now, v);
    int times = 0;
    *ret_last = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i].what != r)
            continue;
        times++;
        if (v[i].at > *ret_last)
            *ret_last = v[i].at;
    }
    return times;
}

int remedy_times(const char *book, enum remedy r, usec_t now)
{
    usec_t last;
    return remedy_count(book, r, now, &last);
}

enum remedy_leave remedy_ask(const char *book, enum remedy r, usec_t now)
{
    usec_t last;
    int times = remedy_count(book, r, now, &last);
    if (times >= remedy_rows[r].limit)
        return REMEDY_SPENT;
    return times && now - last < remedy_rows[r].rest ? REMEDY_RESTS : REMEDY_MAY;
}

void remedy_note(char book[static REMEDY_BOOK_MAX], enum remedy r, usec_t now)
{
    struct remedy_done v[REMEDY_ACTS_MAX + 1];
    size_t n = remedy_read(book, now, v), len = 0;
    v[n++] = (struct remedy_done){r, now};
    book[0] = 0;
    for (size_t i = n > REMEDY_ACTS_MAX ? 1 : 0; i < n; i++) {
        text_printf_to(book + len, REMEDY_BOOK_MAX - len, "%s%s@%" PRIu64, len ? " " : "",
                       remedy_rows[v[i].what].name, v[i].at / USEC_SEC);
        len += strlen(book + len);
    }
}
