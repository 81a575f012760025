/* SPDX-License-Identifier: Apache-2.0 */
/* conceal.c - see conceal.h. A name is known by the words before it, in the sentences of the
 * scheduler: job 'x', behind 'x', delay 'x', project 'x' needs, user 'x' needs. */
#include "argusd/conceal.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* A name of which a sentence was cut off may be anybody's. */
static const char *instead_of_job(const struct api_eyes *eyes,
                                  const char *about,
                                  const char *name,
                                  bool whole)
{
    static const char *const others = "another's job";
    const struct jobs *jobs = eyes->a->jobs;
    if (!whole)
        return others;
    if (str_eq(name, about))
        return NULL;
    if (!jobs_find_any(jobs, name))
        return "a job that is over";
    struct api_eyes who = *eyes;
    return api_sees_job(name, &who) ? NULL : others;
}

static const char *instead_of_project(const struct api_eyes *eyes, const char *name)
{
    struct access_thing thing = {.kind = "project", .name = name, .project = name};
    struct access_who who;
    people_who(eyes->a->people, eyes->p, &who);
    bool sees = str_eq(name, ACCESS_DEFAULT_PROJECT) ||
                access_check(&who, ACCESS_PROJECT_SEE, "see", &thing, NULL) == 0;
    return sees ? NULL : "another project";
}

/* One name in its quotes: from `open` to `close`, or to the end of a text that was cut off. */
struct quoted {
    const char *about, *text, *open, *close;
    bool whole;
};

/* The word stands right before the name. */
static bool comes_after(const struct quoted *q, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(q->open - q->text) >= n && !memcmp(q->open - n, word, n);
}

/* What to say instead of the last *ret_words bytes before the name and it; NULL: leave it. */
static const char *instead_of(const struct api_eyes *eyes,
                              const struct quoted *q,
                              size_t *ret_words)
{
    static const char *const kinds[] = {"job ", "project ", "user ", "behind ", "delay "};
    enum { JOB, PROJECT, USER, KINDS = array_len(kinds) };
    size_t kind = 0;
    while (kind < KINDS && !comes_after(q, kinds[kind]))
        kind++;
    *ret_words = kind <= USER ? strlen(kinds[kind]) : 0;
    if (kind == KINDS || ((kind == PROJECT || kind == USER) && !str_starts(q->close, "' needs ")))
        return NULL;
    _cleanup_(freep) char *name = xstrndup(q->open + 1, (size_t)(q->close - q->open - 1));
    if (kind == PROJECT)
        return instead_of_project(eyes, name);
    if (kind == USER)
        return str_eq(name, eyes->p->user) ? NULL : "another user";
    return instead_of_job(eyes, q->about, name, q->whole);
}

static bool sees_all(const struct api_eyes *eyes)
{
    struct access_who who;
    people_who(eyes->a->people, eyes->p, &who);
    return who.sees_all;
}

const char *conceal_text(const struct api_eyes *eyes,
                         const char *about,
                         const char *text,
                         struct buf *ret)
{
    if (!text || !strchr(text, '\'') || sees_all(eyes))
        return text;
    struct quoted q = {.about = about, .text = text};
    const char *from = text;
    *ret = BUF_INIT(4 * strlen(text) + 64); /* each replacement is shorter than that */
    while ((q.open = strchr(q.open ? q.open + 1 : text, '\''))) {
        size_t words;
        const char *close = strchr(q.open + 1, '\'');
        q.whole = close != NULL;
        q.close = close ? close : q.open + strlen(q.open);
        const char *instead = instead_of(eyes, &q, &words);
        if (!instead)
            continue;
        (void)buf_add(ret, from, (size_t)(q.open - from) - words);
        (void)buf_adds(ret, instead);
        from = q.close + q.whole;
        if (!q.whole)
            break;
        q.open = q.close;
    }
    (void)buf_adds(ret, from);
    return buf_str(ret);
}

void conceal_put(struct jout *j,
                 const char *key,
                 const struct api_eyes *eyes,
                 const char *about,
                 const char *text)
{
    struct buf out = {0};
    jout_str(j, key, str_or(eyes ? conceal_text(eyes, about, text, &out) : text, ""));
    buf_release(&out);
}
