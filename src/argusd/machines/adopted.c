/* SPDX-License-Identifier: Apache-2.0 */
/* adopted.c - see adopted.h. Rows are entries of kind "adopted", named by Ray's submission id. */
#include "argusd/machines/adopted.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static const char GONE[] = "GONE";

struct adopted {
    struct store *store;
    struct map *by_id;
};

#define ROW(key, ftype)                                                                            \
    {                                                                                              \
        .name = #key, .type = (ftype), .offset = offsetof(struct adopted_item, key),               \
        .flags = FIELD_STORED                                                                      \
    }
static const struct field adopted_rows[] = {
    ROW(ray_id, FIELD_STR),      ROW(session, FIELD_STR),     ROW(project, FIELD_STR),
    ROW(owner, FIELD_STR),       ROW(adopted_by, FIELD_STR),  ROW(state, FIELD_STR),
    ROW(adopted_at, FIELD_TIME), ROW(started_at, FIELD_TIME), ROW(ended_at, FIELD_TIME),
};
#undef ROW
static const struct field_table adopted_table = {.name = "Adopted",
                                                 .rows = adopted_rows,
                                                 .n = array_len(adopted_rows),
                                                 .size = sizeof(struct adopted_item)};

static void adopted_item_free(struct adopted_item *i)
{
    if (!i)
        return;
    field_release(&adopted_table, i);
    free(i);
}

struct adopted *adopted_new(struct store *store)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct adopted *ad = xcalloc(1, sizeof(*ad));
    ad->store = store;
    ad->by_id = map_new(seed);
    return ad;
}

void adopted_free(struct adopted *ad)
{
    struct adopted_item *i;
    if (!ad)
        return;
    for (size_t pos = 0; (i = map_next(ad->by_id, &pos, NULL));)
        adopted_item_free(i);
    map_free(ad->by_id);
    free(ad);
}

void adopted_restore_entry(struct adopted *ad, const struct store_entry *entry)
{
    struct adopted_item *i = xcalloc(1, sizeof(*i));
    if (field_from_text(&adopted_table, entry->body, FIELD_STORED, i) && i->ray_id && i->session &&
        i->project && i->owner && i->state)
        adopted_item_free(map_set(ad->by_id, i->ray_id, i));
    else
        adopted_item_free(i);
}

static void adopted_save(const struct adopted *ad, const struct adopted_item *i, usec_t now)
{
    _cleanup_(freep) char *body = field_to_text(&adopted_table, i, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {.kind = ADOPTED_ENTRY, .name = i->ray_id, .body = body, .at = now};
    store_put_entry(ad->store, &row);
}

const struct adopted_item *adopted_find(const struct adopted *ad,
                                        const char *ray_id,
                                        const char *session)
{
    const struct adopted_item *i = map_find(ad->by_id, ray_id);
    return i && !strcmp(i->session, session) ? i : NULL;
}

const struct adopted_item *adopted_next(const struct adopted *ad, size_t *pos)
{
    return map_next(ad->by_id, pos, NULL);
}

static void follow(struct adopted_item *i, const struct ray_job *rj)
{
    set_str(&i->state, ray_job_status_to_string(rj->status));
    i->started_at = rj->start;
    i->ended_at = rj->end;
}

int adopted_put(struct adopted *ad,
                const struct ray_job *rj,
                const struct adopted_claim *claim,
                usec_t now,
                const struct adopted_item **ret,
                struct err *err)
{
    struct adopted_item *i = map_find(ad->by_id, rj->submission_id);
    if (!i && map_count(ad->by_id) >= ADOPTED_MAX)
        return message_refuse(err, ERR_REFUSED, "too_many_adopted",
                              MESSAGE_ARGS(MESSAGE_NUM("most", ADOPTED_MAX)));
    if (!i) {
        i = xcalloc(1, sizeof(*i));
        i->ray_id = xstrdup(rj->submission_id);
        map_set(ad->by_id, i->ray_id, i);
    }
    set_str(&i->session, claim->session);
    set_str(&i->project, claim->project);
    set_str(&i->owner, claim->owner);
    set_str(&i->adopted_by, claim->by);
    i->adopted_at = now;
    follow(i, rj);
    adopted_save(ad, i, now);
    *ret = i;
    return 0;
}

struct access_thing adopted_thing(const struct adopted_item *item)
{
    return (struct access_thing){.kind = ACCESS_KIND_JOB,
                                 .name = item->ray_id,
                                 .owner = item->owner,
                                 .project = item->project};
}

/* ---- what Ray tells ---- */

static void tell_end(struct events *ev, const struct adopted_item *i, usec_t now)
{
    struct access_thing thing = adopted_thing(i);
    _cleanup_(freep) char *object = xasprintf("foreign/%s", i->ray_id);
    char text[300];
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("project", i->project), MESSAGE_STR("state", i->state)));
    struct events_note note = {.kind = "adopted_ended",
                               .actor = "argusd",
                               .code = "adopted_ended",
                               .text = text,
                               .thing = &thing,
                               .object = object};
    events_add(ev, &note, now);
}

static bool adopted_is_over(const struct adopted_item *i)
{
    return !strcmp(i->state, GONE) ||
           ray_job_status_is_terminal(ray_job_status_from_string(i->state));
}

static const struct ray_job *find_job(const struct ray_jobs *jobs, const char *ray_id)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->v[i].is_submission && !strcmp(jobs->v[i].submission_id, ray_id))
            return &jobs->v[i];
    return NULL;
}

void adopted_saw_jobs(struct adopted *ad,
                      struct events *ev,
                      const struct ray_jobs *jobs,
                      const char *session,
                      usec_t now)
{
    struct adopted_item *i;
    for (size_t pos = 0; (i = map_next(ad->by_id, &pos, NULL));) {
        if (adopted_is_over(i))
            continue;
        const struct ray_job *rj = !strcmp(i->session, session) ? find_job(jobs, i->ray_id) : NULL;
        if (rj && !strcmp(ray_job_status_to_string(rj->status), i->state))
            continue;
        if (rj)
            follow(i, rj);
        else
            set_str(&i->state, GONE);
        if (!i->ended_at && adopted_is_over(i))
            i->ended_at = now;
        adopted_save(ad, i, now);
        if (adopted_is_over(i))
            tell_end(ev, i, now);
    }
}
