/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints_users.c - who needs each checkpoint of a job, for people; see checkpoints.h.
 *
 * What counts is what keeps a checkpoint from its removal (checkpoints_use.c), but for submits
 * under way: they are over in a moment. Each text is read once for all checkpoints. A text is a
 * spec that a user wrote, so the bytes that one question may search have a ceiling; who comes
 * behind it is not named, and still keeps what it needs. */
#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints_book.h"
#include "argusd/content/registry.h"
#include "argusd/people/people_rules.h"
#include "base/str.h"

enum {
    USERS_MAX = 8, /* that are named of one checkpoint */
    SEARCHED_MAX = 64 << 20,
};

struct users_search {
    const struct book *b;
    struct checkpoints_shown *shown;
    bool *meant; /* of each of the list: by whom is being looked at */
    size_t left; /* bytes that may be searched yet */
};

/* Does it mean one of them? */
static bool users_search_text(struct users_search *s, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    if (!n || !s->left)
        return false;
    s->left = n < s->left ? s->left - n : 0;
    return s->left && ckpt_mark_meant(text, s->b->id, &s->shown->list, s->meant);
}

/* Those that are meant are held, and where who asks may see it, by this one; then none is meant. */
static void users_take(struct users_search *s, const char *kind, const char *name, bool sees)
{
    struct ckpt_list *l = &s->shown->list;
    const char *copy = NULL;
    for (size_t i = 0; i < l->n; i++) {
        struct ckpt *c = &l->v[i];
        struct ckpt_user *users = s->shown->users + i * USERS_MAX;
        if (!s->meant[i])
            continue;
        s->meant[i] = false;
        c->held = true;
        if (!sees || c->users.n == USERS_MAX)
            continue;
        if (!copy) {
            strv_add(&s->shown->user_names, name);
            copy = s->shown->user_names.v[s->shown->user_names.n - 1];
        }
        users[c->users.n] = (struct ckpt_user){.kind = kind, .name = copy};
        c->users = (struct field_list){.v = users, .n = c->users.n + 1};
    }
}

static void users_of_registry(struct users_search *s, const struct http_principal *p)
{
    const struct checkpoints *cs = s->b->cs;
    const struct registry_entry *e;
    struct access_who who;
    int kind = 0;
    people_who(cs->p.people, p, &who);
    for (size_t pos = 0; (e = checkpoints_next_in_place(cs, &kind, &pos));) {
        char ref[REGISTRY_REF_MAX];
        if (users_search_text(s, e->path))
            users_take(s, registry_kind_word(e->kind), registry_ref(e, ref),
                       registry_check(e, &who, ACCESS_DATA_SEE, "see", NULL) == 0);
    }
}

static void users_of_jobs(struct users_search *s, const struct http_principal *p)
{
    const struct checkpoints *cs = s->b->cs;
    const struct live *l;
    for (size_t pos = 0; s->left && (l = jobs_next(cs->p.jobs, &pos));) {
        bool means = false;
        if (!strcmp(l->job->id, s->b->id))
            continue;
        const char *const texts[] = {l->job->spec, l->extra.inputs, l->extra.argv};
        for (size_t i = 0; i < array_len(texts); i++)
            means |= users_search_text(s, texts[i]);
        if (!means)
            continue;
        if (book_is_seen_by(s->b, l->job->user))
            users_take(s, "job", l->job->id,
                       people_check_job(cs->p.people, p, ACCESS_JOB_SEE, "see", l->job, NULL) == 0);
        else /* who may not see the training keeps nothing of it */
            memset(s->meant, 0, s->shown->list.n * sizeof(*s->meant));
    }
}

void book_find_users(const struct book *b,
                     const struct http_principal *p,
                     struct checkpoints_shown *s)
{
    if (!s->list.n)
        return;
    struct users_search search = {
        .b = b, .shown = s, .meant = xcalloc(s->list.n, sizeof(bool)), .left = SEARCHED_MAX};
    s->users = xcalloc(s->list.n * USERS_MAX, sizeof(*s->users));
    users_of_registry(&search, p);
    users_of_jobs(&search, p);
    free(search.meant);
}
