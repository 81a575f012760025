/* SPDX-License-Identifier: Apache-2.0 */
/* trackers_look.c - do the servers that argus.yaml names answer? Asked without a key, and whatever
 * one says with a status below 500 is an answer: it is there. See trackers.h. */
#include "argusd/trackers/trackers_state.h"
#include "base/str.h"

enum { LOOK_ANSWER_MAX = 1 << 20 };
static const usec_t LOOK_TIMEOUT = 5 * USEC_SEC;

static void trackers_on_sight(const struct wire_reply *reply, void *arg)
{
    struct tracker_sight *s = arg;
    struct trackers *ts = s->ts;
    s->is_known = true;
    /* An answer that is larger than what is read of it is one, too. */
    s->answers = reply->status ? reply->status < 500 : reply->err.code == ERR_TOO_LARGE;
    s->status = reply->status;
    s->err = reply->err;
    if (--ts->look.waits == 0)
        trackers_look_over(ts);
}

static void trackers_ask_server(struct trackers *ts, const char *name, const char *url)
{
    if (!url || ts->look.n == array_len(ts->look.v))
        return;
    struct tracker_sight *s = &ts->look.v[ts->look.n++];
    _cleanup_(freep) char *asked = xasprintf("%.*s/", tracker_url_len(url), url);
    *s = (struct tracker_sight){.name = name, .url = url, .ts = ts};
    ts->look.waits++;
    const struct wire_order order = {.method = "GET",
                                     .url = asked,
                                     .timeout = LOOK_TIMEOUT,
                                     .max_bytes = LOOK_ANSWER_MAX,
                                     .reach = REACH_NAMED,
                                     .said = name};
    (void)wire_send(ts->wire, &order, trackers_on_sight, s); /* trackers_close() ends it */
}

bool trackers_look(struct trackers *ts, trackers_looked_f done, void *arg)
{
    const struct settings *s = ts->p.settings;
    if (ts->closed || ts->look.done)
        return false;
    ts->look.n = ts->look.waits = 0;
    trackers_ask_server(ts, "wandb", s->tracker_wandb);
    trackers_ask_server(ts, "mlflow", s->tracker_mlflow);
    trackers_ask_server(ts, "swanlab", s->tracker_swanlab);
    if (!ts->look.n)
        return false;
    ts->look.done = done;
    ts->look.arg = arg;
    return true;
}

void trackers_look_over(struct trackers *ts)
{
    trackers_looked_f done = ts->look.done;
    ts->look.done = NULL;
    if (done)
        done(ts->look.arg);
}

const struct tracker_sight *trackers_seen(const struct trackers *ts, size_t *ret_n)
{
    *ret_n = ts->look.n;
    return ts->look.v;
}
