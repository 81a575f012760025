/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_schedule.c - when pipelines run by themselves. The file of a time zone is the machine's
 * own. */
#include <errno.h>
#include <stdlib.h>

#include "argusd/pipes/pipes_state.h"
#include "base/file.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"

static int pipes_open_zone(const char *name, struct pipe_zone **ret, struct err *err)
{
    struct buf bytes = BUF_INIT(PIPE_ZONE_MAX_BYTES);
    *ret = NULL;
    if (!name)
        return 0;
    _cleanup_(freep) char *path = xasprintf("/usr/share/zoneinfo/%s", name);
    int r = pipe_zone_is_name(name) ? file_read(path, &bytes, NULL) : -EINVAL;
    if (r == 0)
        r = pipe_zone_parse(buf_str(&bytes), bytes.len, ret, NULL);
    buf_release(&bytes);
    return r < 0 ? message_refuse(err, ERR_BAD_SPEC, "zone_unknown",
                                  MESSAGE_ARGS(MESSAGE_STR("zone", name)))
                 : 0;
}

/* When the schedule comes after this moment. */
static int pipes_foresee(const char *cron,
                         const char *zone,
                         usec_t now,
                         usec_t *ret,
                         struct err *err)
{
    struct pipe_cron c;
    struct pipe_zone *z = NULL;
    int r = pipe_cron_parse(cron, &c, err);
    if (r == 0)
        r = pipes_open_zone(zone, &z, err);
    if (r == 0)
        *ret = pipe_cron_next(&c, now, z ? pipe_zone_offset : NULL, z);
    pipe_zone_free(z);
    return r;
}

size_t pipes_next_times(const struct pipeline *p, usec_t *ret, size_t n)
{
    struct pipe_cron c;
    struct pipe_zone *z = NULL;
    size_t k = 0;
    if (!p->cron || !p->next_at || pipe_cron_parse(p->cron, &c, NULL) < 0 ||
        pipes_open_zone(p->zone, &z, NULL) < 0)
        return 0;
    for (usec_t at = p->next_at; at && k < n;
         at = pipe_cron_next(&c, at, z ? pipe_zone_offset : NULL, z))
        ret[k++] = at;
    pipe_zone_free(z);
    return k;
}

int pipes_set_schedule(struct pipes *ps,
                       const struct pipeline *p,
                       const char *cron,
                       const char *zone,
                       const char *params,
                       struct err *err)
{
    _cleanup_(freep) char *key = pipes_key(p->owner, p->name);
    struct pipeline *own = map_find(ps->by_key, key);
    usec_t next = 0;
    int r = cron ? pipes_foresee(cron, zone, clock_wall(), &next, err) : 0;
    if (r < 0)
        return r;
    set_str(&own->cron, cron);
    set_str(&own->zone, cron ? zone : NULL);
    set_str(&own->schedule_params, cron ? params : NULL);
    own->next_at = next;
    pipes_save(ps, own);
    return 0;
}

static void pipes_missed(const struct pipes *ps,
                         const struct pipeline *p,
                         const struct err *err,
                         usec_t now)
{
    struct access_thing thing = pipeline_thing(p);
    struct events_note note = {.kind = "pipeline_missed",
                               .actor = "argusd",
                               .code = err->message,
                               .text = err->message ? err->args : err->text,
                               .thing = &thing};
    events_add(ps->a->events, &note, now);
}

/* Its time has come, perhaps while argusd was away: one run, however many were missed. Of an owner
 * who is disabled or gone none begins, and that is told once. */
static void pipes_run_scheduled(struct pipes *ps, struct pipeline *p, usec_t now)
{
    struct problems problems = {0};
    struct err err = {0};
    const struct pipe_life *run;
    _cleanup_(json_unrefp) json_t *params =
        p->schedule_params ? json_loads(p->schedule_params, 0, NULL) : NULL;
    const struct pipes_start_ask ask = {
        .pipeline = p, .user = p->owner, .params = params, .by_schedule = true};
    usec_t next = 0;
    if (pipes_foresee(p->cron, p->zone, now, &next, &err) < 0)
        log_warn("pipes", "the schedule of '%s/%s' is not followed any more: %s", p->owner, p->name,
                 err.text);
    bool was_away = p->owner_away;
    p->owner_away = pipes_admit(ps, p->owner, &err) < 0;
    p->next_at = next;
    pipes_save(ps, p);
    if (p->owner_away) {
        if (!was_away)
            pipes_missed(ps, p, &err, now);
    } else if (pipes_run(ps, &ask, &run, &problems, &err) < 0) {
        if (problems.errors)
            (void)problem_to_err(problems_first(&problems), ERR_BAD_SPEC, &err); /* fills err */
        pipes_missed(ps, p, &err, now);
    }
    problems_release(&problems);
}

void pipes_look_at_schedules(struct pipes *ps, usec_t now)
{
    struct pipeline *p;
    for (size_t pos = 0; (p = map_next(ps->by_key, &pos, NULL));)
        if (p->next_at && p->next_at <= now)
            pipes_run_scheduled(ps, p, now);
}
