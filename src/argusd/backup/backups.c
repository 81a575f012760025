/* SPDX-License-Identifier: Apache-2.0 */
/* backups.c - see backups.h. The work and the service are two objects: at an end of argusd the work
 * is left behind, ends at its next piece, and frees itself on the loop. */
#include "argusd/backup/backups.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { BACKUPS_TICK_MS = 2000 };
static const usec_t BACKUPS_AGAIN = 5 * USEC_MIN;    /* after a failure, or sooner by `every` */
static const usec_t BACKUPS_SETTLES = 60 * USEC_SEC; /* a start has other things to do */

struct backups_work {
    struct backups *owner; /* NULL: it is gone */
    const struct settings *settings;
    unsigned char key[SEAL_KEY_BYTES];
    volatile int stop;
    bool makes; /* else it only looks */
    char *actor;
    usec_t now;
    struct backup_file made;
    struct store_copied of;
    struct backup_files all;
    int result;
    struct err err;
};

struct backups {
    struct backups_parts p;
    uv_timer_t timer;
    unsigned char key[SEAL_KEY_BYTES];
    struct backups_work *work; /* NULL: nothing runs */
    struct backup_files all;
    bool looked, closing, is_failing;
    usec_t started, tried; /* monotonic */
    char trouble[400];
};

static usec_t backups_newest(const struct backups *bs)
{
    return bs->all.n ? bs->all.v[0].at : 0;
}

/* ---- the work ---- */

static void backups_work_free(struct backups_work *w)
{
    seal_forget(w->key, sizeof(w->key));
    backup_files_release(&w->all);
    free(w->actor);
    free(w);
}

static void backups_run(void *arg)
{
    struct backups_work *w = arg;
    const struct backup_place place = {.settings = w->settings, .key = w->key, .stop = &w->stop};
    if (w->makes)
        w->result = backup_make(&place, w->now, &w->made, &w->of, &w->err);
    if (w->result == 0)
        w->result = backup_list(w->settings, &w->all, &w->err);
}

static void backups_tell_made(const struct backups *bs, const struct backups_work *w)
{
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    char text[400];
    _cleanup_(freep) char *object = xasprintf("backup/%s", w->made.name);
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("name", w->made.name), MESSAGE_NUM("jobs", w->of.jobs),
                               MESSAGE_NUM("events", w->of.events),
                               MESSAGE_NUM("bytes", (int64_t)w->made.bytes)));
    const struct events_note note = {.thing = &thing,
                                     .kind = "backup_made",
                                     .actor = w->actor,
                                     .object = object,
                                     .code = "backup_made",
                                     .text = text};
    events_add(bs->p.events, &note, clock_wall());
}

static void backups_tell_failed(struct backups *bs, const struct backups_work *w)
{
    static const struct access_thing thing = {.kind = ACCESS_KIND_CLUSTER};
    char text[600];
    text_copy(bs->trouble, w->err.text);
    log_err("backup", "no backup could be made: %s", w->err.text);
    if (bs->is_failing)
        return;
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_ERR("why", &w->err)));
    const struct events_note note = {.thing = &thing,
                                     .kind = "backup_failed",
                                     .actor = w->actor,
                                     .object = "backup/new",
                                     .code = "backup_failed",
                                     .text = text};
    events_add(bs->p.events, &note, clock_wall());
}

static void backups_on_done(void *arg)
{
    struct backups_work *w = arg;
    struct backups *bs = w->owner;
    if (!bs) {
        backups_work_free(w);
        return;
    }
    bs->work = NULL;
    bs->looked = true;
    if (w->result < 0) {
        backups_tell_failed(bs, w);
        bs->is_failing = true;
    } else {
        if (w->makes) {
            backups_tell_made(bs, w);
            log_info("backup", "%s: %lld jobs, %lld events", w->made.name, (long long)w->of.jobs,
                     (long long)w->of.events);
            bs->is_failing = false;
            *bs->trouble = 0;
        }
        backup_files_release(&bs->all);
        bs->all = w->all;
        w->all = (struct backup_files){0};
    }
    backups_work_free(w);
}

static void backups_work_start(struct backups *bs, bool makes, const char *actor)
{
    struct backups_work *w = xcalloc(1, sizeof(*w));
    w->owner = bs;
    w->settings = bs->p.settings;
    memcpy(w->key, bs->key, sizeof(w->key));
    w->makes = makes;
    w->actor = xstrdup(actor);
    w->now = clock_wall();
    bs->work = w;
    bs->tried = clock_mono();
    work_start(bs->p.loop, backups_run, backups_on_done, w);
}

/* ---- the service ---- */

static bool backups_has_place(const struct backups *bs)
{
    return bs->p.settings->backup_dir || cluster_root_is_ok(bs->p.cluster);
}

static void backups_on_tick(uv_timer_t *timer)
{
    struct backups *bs = container_of(timer, struct backups, timer);
    usec_t every = bs->p.settings->backup_every, wall = clock_wall(), newest = backups_newest(bs);
    usec_t again = every && every < BACKUPS_AGAIN ? every : BACKUPS_AGAIN;
    if (bs->work || !backups_has_place(bs) ||
        (bs->tried && bs->is_failing && clock_mono() - bs->tried < again))
        return;
    usec_t settles = every < BACKUPS_SETTLES ? every : BACKUPS_SETTLES;
    if (!bs->looked)
        backups_work_start(bs, false, "argusd");
    else if (every && clock_mono() - bs->started >= settles &&
             (newest + every <= wall || newest > wall + every))
        backups_work_start(bs, true, "argusd");
}

int backups_new(const struct backups_parts *parts, struct backups **ret, struct err *err)
{
    struct backups *bs = xcalloc(1, sizeof(*bs));
    bs->p = *parts;
    int r = backup_need_key(parts->settings, bs->key, err);
    if (r < 0) {
        free(bs);
        return r;
    }
    (void)uv_timer_init(parts->loop, &bs->timer); /* never fails */
    *ret = bs;
    return 0;
}

void backups_start(struct backups *bs)
{
    bs->started = clock_mono();
    (void)uv_timer_start(&bs->timer, backups_on_tick, BACKUPS_TICK_MS,
                         BACKUPS_TICK_MS); /* cannot fail */
}

void backups_close(struct backups *bs)
{
    if (!bs || bs->closing)
        return;
    bs->closing = true;
    if (bs->work) {
        bs->work->stop = 1;
        bs->work->owner = NULL;
    }
    bs->work = NULL;
    uv_close((uv_handle_t *)&bs->timer, NULL);
}

void backups_free(struct backups *bs)
{
    if (!bs)
        return;
    seal_forget(bs->key, sizeof(bs->key));
    backup_files_release(&bs->all);
    free(bs);
}

int backups_begin(struct backups *bs, const char *actor, struct err *err)
{
    if (bs->work)
        return message_refuse(err, ERR_CONFLICT, "backup_under_way", MESSAGE_NO_ARGS);
    if (!backups_has_place(bs))
        return message_refuse(err, ERR_UNAVAILABLE, "backup_no_root", MESSAGE_NO_ARGS);
    backups_work_start(bs, true, actor);
    return 0;
}

const struct backup_files *backups_all(const struct backups *bs)
{
    return &bs->all;
}

/* A start, and the hour in which a first one is made, are no delay. */
usec_t backups_overdue(const struct backups *bs, const char **ret_trouble)
{
    usec_t every = bs->p.settings->backup_every, wall = clock_wall(), newest = backups_newest(bs);
    usec_t runs = clock_mono() - bs->started, late;
    *ret_trouble = *bs->trouble ? bs->trouble : "no reason is known";
    if (!every || !bs->started)
        return 0;
    late = newest && newest < wall ? wall - newest : runs;
    if (late <= every)
        return bs->is_failing ? 1 : 0;
    late -= every;
    return late < runs ? late : runs;
}
