/* SPDX-License-Identifier: Apache-2.0 */
/* trackers_talk.c - what is said to a server about one run: a step is one request, and its answer
 * chooses the next step. Nothing of an answer is told but its status. */
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/trackers/trackers_state.h"
#include "base/digest/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"

enum { ANSWER_MAX = 8 << 20, START_ANSWER_MAX = 1 << 20, REQUEST_MAX = 1 << 20 };
enum { KEYS_MAX = 20000, TAG_MAX = 2000 };
static const usec_t REQUEST_TIMEOUT = 15 * USEC_SEC;
static const usec_t BEGIN_TIMEOUT = 20 * USEC_SEC; /* all of it, before a start */
static const usec_t COMPLETE_TIMEOUT = 10 * USEC_MIN;

enum talk_step {
    TALK_FIND_EXPERIMENT,
    TALK_MAKE_EXPERIMENT,
    TALK_FIND_RUN,
    TALK_MAKE_RUN,
    TALK_SEE_RUN,
    TALK_SEND,
    TALK_TELL, /* how it ended, and why */
    TALK_CLOSE,
    TALK_SEE_WANDB,
    TALK_SEE_SWANLAB,
    TALK_STEPS
};

struct talk {
    struct tracker_run *r; /* NULL: ended while the worker was busy with it */
    struct userlines_place place;
    enum talk_step step;
    bool is_start, completes, made_experiment, reading;
    usec_t until; /* mono; 0: it has no turn yet, and waits for as long as it takes */
    talk_f done;
    struct wire_request *request;
    struct pairs keys; /* of the server: opened once it is its turn, wiped after it */
    struct map *newest;
    struct feed feed;
};

/* argus.yaml names the server: of each kind, or in the environment of all jobs. */
static bool tracker_is_named(const struct tracker_run *r)
{
    const struct settings *s = r->ts->p.settings;
    const char *const urls[] = {s->tracker_wandb, s->tracker_mlflow, s->tracker_swanlab};
    for (size_t i = 0; i < array_len(urls); i++)
        if (str_eq(r->url, urls[i]))
            return true;
    for (size_t i = 0; i < s->env_vars.n; i++)
        if (str_eq(r->url, s->env_vars.v[i].value))
            return true;
    return false;
}

static void talk_go(struct talk *t, enum talk_step step);

static void talk_free(struct talk *t)
{
    size_t pos = 0;
    for (int64_t *v; t->newest && (v = map_next(t->newest, &pos, NULL));)
        free(v);
    map_free(t->newest);
    pairs_wipe(&t->keys);
    buf_release(&t->feed.body);
    free(t->feed.root);
    free(t->feed.job);
    free(t->feed.run);
    free(t);
}

static struct userlines *talk_line(const struct talk *t)
{
    return t->is_start ? &t->r->ts->starts : &t->r->ts->ends;
}

static void talks_on_turn(uv_timer_t *timer)
{
    talks_take_turns(timer->data);
}

/* Never from inside a call: what comes next may call back. */
static void talks_wake(struct trackers *ts)
{
    if (!ts->closed && ts->turn.data)
        (void)uv_timer_start(&ts->turn, talks_on_turn, 0, 0); /* cannot fail */
}

void talk_end(struct tracker_run *r)
{
    struct talk *t = r->talk;
    if (!t)
        return;
    userlines_leave(talk_line(t), &t->place);
    talks_wake(r->ts);
    wire_request_free(t->request);
    t->request = NULL;
    r->talk = NULL;
    t->r = NULL;
    if (!t->reading)
        talk_free(t);
}

static void talk_over(struct talk *t, const char *why)
{
    struct tracker_run *r = t->r;
    talk_f done = t->done;
    char text[200];
    text_copy(text, str_or(why, ""));
    talk_end(r);
    done(r, why ? text : NULL);
}

/* ---- requests ---- */

static void put_tag(struct jout *j, const char *key, const char *value)
{
    jout_open(j, NULL, '{');
    jout_str(j, "key", key);
    jout_str(j, "value", value);
    jout_close(j, '}');
}

static void put_run(struct jout *j, const struct tracker_run *r)
{
    _cleanup_(freep) char *id = xasprintf("%s-%d", r->job, r->attempt);
    jout_str(j, "experiment_id", r->experiment);
    jout_str(j, "run_name", str_or(r->name, id));
    jout_int(j, "start_time", (int64_t)(r->started_at / USEC_MS));
    jout_open(j, "tags", '[');
    put_tag(j, "argus.job", r->job);
    put_tag(j, "argus.run", id);
    put_tag(j, "mlflow.user", r->user);
    jout_close(j, ']');
}

static void put_search(struct jout *j, const struct tracker_run *r)
{
    _cleanup_(freep) char *filter = xasprintf("tags.`argus.run` = '%s-%d'", r->job, r->attempt);
    jout_open(j, "experiment_ids", '[');
    jout_str(j, NULL, r->experiment);
    jout_close(j, ']');
    jout_str(j, "filter", filter);
    jout_int(j, "max_results", 1);
}

static void put_told(struct jout *j, const struct tracker_run *r)
{
    const char *const words[][2] = {{"argus.state", r->outcome},
                                    {"argus.finding", r->finding},
                                    {"argus.advice", r->advice},
                                    {"argus.pipeline", r->pipeline},
                                    {"argus.pipeline_step", r->pipeline_step},
                                    {"argus.pipeline_end", r->pipeline_end}};
    char restarts[16], value[TAG_MAX];
    text_printf(restarts, "%d", r->attempt - 1);
    jout_str(j, "run_id", r->run);
    jout_open(j, "tags", '[');
    put_tag(j, "argus.restarts", restarts);
    for (size_t i = 0; i < array_len(words); i++)
        if (words[i][1]) {
            text_copy(value, words[i][1]);
            put_tag(j, words[i][0], value);
        }
    jout_close(j, ']');
}

static void put_close(struct jout *j, const struct tracker_run *r)
{
    static const char *const words[] = {"FINISHED", "FAILED", "KILLED"};
    jout_str(j, "run_id", r->run);
    jout_str(j, "status", words[r->end]);
    jout_int(j, "end_time", (int64_t)(r->ended_at / USEC_MS));
}

/* NULL: the step has no body, and is a GET. */
static char *talk_body(const struct talk *t)
{
    const struct tracker_run *r = t->r;
    struct buf out = BUF_INIT(REQUEST_MAX);
    struct jout j = jout_begin(&out);
    if (t->step == TALK_SEND)
        return xstrdup(buf_str(&t->feed.body));
    if (t->step == TALK_FIND_EXPERIMENT || t->step == TALK_SEE_RUN || t->step == TALK_SEE_SWANLAB)
        return NULL;
    jout_open(&j, NULL, '{');
    if (t->step == TALK_MAKE_EXPERIMENT)
        jout_str(&j, "name", r->project);
    else if (t->step == TALK_FIND_RUN)
        put_search(&j, r);
    else if (t->step == TALK_MAKE_RUN)
        put_run(&j, r);
    else if (t->step == TALK_TELL)
        put_told(&j, r);
    else if (t->step == TALK_CLOSE)
        put_close(&j, r);
    else
        jout_str(&j, "query", "query Viewer { viewer { entity } }");
    jout_close(&j, '}');
    return buf_take(&out);
}

int tracker_url_len(const char *url)
{
    size_t n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    return (int)n;
}

static char *talk_url(const struct talk *t)
{
    static const char *const paths[TALK_STEPS] = {
        [TALK_FIND_EXPERIMENT] = "/api/2.0/mlflow/experiments/get-by-name?experiment_name=",
        [TALK_MAKE_EXPERIMENT] = "/api/2.0/mlflow/experiments/create",
        [TALK_FIND_RUN] = "/api/2.0/mlflow/runs/search",
        [TALK_MAKE_RUN] = "/api/2.0/mlflow/runs/create",
        [TALK_SEE_RUN] = "/api/2.0/mlflow/runs/get?run_id=",
        [TALK_SEND] = "/api/2.0/mlflow/runs/log-batch",
        [TALK_TELL] = "/api/2.0/mlflow/runs/log-batch",
        [TALK_CLOSE] = "/api/2.0/mlflow/runs/update",
        [TALK_SEE_WANDB] = "/graphql",
        [TALK_SEE_SWANLAB] = "/",
    };
    struct buf out = BUF_INIT(64 << 10);
    (void)buf_addf(&out, "%.*s%s", tracker_url_len(t->r->url), t->r->url,
                   paths[t->step]); /* a failed one has no answer */
    if (t->step == TALK_FIND_EXPERIMENT)
        buf_add_url(&out, t->r->project);
    else if (t->step == TALK_SEE_RUN)
        buf_add_url(&out, t->r->run);
    return buf_take(&out);
}

/* ---- answers ---- */

static const char *text_at(const json_t *v, const char *a, const char *b, const char *key)
{
    const json_t *x = a ? json_get_object(v, a) : v;
    x = b ? json_get_object(x, b) : x;
    return json_get_str(x, key, NULL);
}

static bool is_id(const char *text)
{
    return text && *text && strlen(text) < 100 && !text[strspn(text, "0123456789abcdefABCDEF-")];
}

static void set_link(struct tracker_run *r)
{
    free(r->link);
    r->link = xasprintf("%.*s/#/experiments/%s/runs/%s", tracker_url_len(r->url), r->url,
                        r->experiment, r->run);
}

static void talk_take_run(struct talk *t, const char *id)
{
    if (!is_id(id)) {
        talk_over(t, "its answer names no run");
        return;
    }
    set_str(&t->r->run, id);
    set_link(t->r);
    if (t->completes)
        talk_go(t, TALK_SEE_RUN);
    else
        talk_over(t, NULL);
}

static void talk_take_newest(struct talk *t, const json_t *v)
{
    const json_t *run = json_get_object(v, "run"), *data = json_get_object(run, "data"), *m;
    unsigned char seed[16];
    size_t i;
    random_bytes(seed, sizeof(seed));
    t->newest = map_new(seed);
    json_array_foreach (json_get_array(data, "metrics"), i, m) {
        const char *key = json_get_str(m, "key", NULL);
        int64_t step = json_get_int(m, "step", 0);
        const char *words = json_get_str(m, "step", NULL); /* where a proxy writes int64 as text */
        if (words && str_to_int(words, INT64_MIN, INT64_MAX, &step, NULL) < 0)
            step = 0;
        if (!key || map_count(t->newest) >= KEYS_MAX || map_find(t->newest, key))
            continue;
        int64_t *kept = xmalloc(sizeof(*kept));
        *kept = step;
        (void)map_set(t->newest, key, kept); /* it was not there */
    }
    const struct settings *s = t->r->ts->p.settings;
    t->feed = (struct feed){.root = xstrdup(s->shared_root),
                            .job = xstrdup(t->r->job),
                            .attempt = t->r->attempt,
                            .newest = t->newest,
                            .run = xstrdup(t->r->run),
                            .at = t->r->ended_at,
                            .body = BUF_INIT(REQUEST_MAX)};
}

static void on_feed(void *arg)
{
    struct talk *t = arg;
    t->reading = false;
    if (!t->r)
        talk_free(t);
    else if (t->feed.result < 0)
        talk_over(t, t->feed.err.text);
    else if (t->feed.body.len)
        talk_go(t, TALK_SEND);
    else
        talk_go(t, TALK_TELL);
}

static void run_feed(void *arg)
{
    struct talk *t = arg;
    feed_run(&t->feed);
}

static void talk_feed(struct talk *t)
{
    t->reading = true;
    work_start_for(t->r->ts->p.loop, t->r->user, run_feed, on_feed, t);
}

static void talk_take_experiment(struct talk *t, const char *id)
{
    if (!is_id(id)) {
        talk_over(t, "its answer names no experiment");
        return;
    }
    set_str(&t->r->experiment, id);
    talk_go(t, TALK_FIND_RUN);
}

static void talk_take_found(struct talk *t, const json_t *v)
{
    const json_t *first = json_array_get(json_get_array(v, "runs"), 0);
    const char *id = text_at(first, "info", NULL, "run_id");
    if (id)
        talk_take_run(t, id);
    else
        talk_go(t, TALK_MAKE_RUN);
}

static void talk_take_viewer(struct talk *t, const json_t *v)
{
    const char *entity = text_at(v, "data", "viewer", "entity");
    struct tracker_run *r = t->r;
    if (!entity || strlen(entity) > 128) {
        talk_over(t, "it does not know the key");
        return;
    }
    struct buf out = BUF_INIT(8 << 10);
    (void)buf_addf(&out, "%.*s/", (int)strcspn(r->url, "?"), r->url); /* a cut link is a link */
    buf_add_url(&out, entity);
    (void)buf_adds(&out, "/");
    buf_add_url(&out, r->project);
    (void)buf_addf(&out, "/runs/%s-%d", r->job, r->attempt);
    free(r->link);
    r->link = buf_take(&out);
    talk_over(t, NULL);
}

static void talk_take_answer(struct talk *t, const json_t *v)
{
    switch (t->step) {
    case TALK_FIND_EXPERIMENT:
        talk_take_experiment(t, text_at(v, "experiment", NULL, "experiment_id"));
        break;
    case TALK_MAKE_EXPERIMENT:
        talk_take_experiment(t, text_at(v, NULL, NULL, "experiment_id"));
        break;
    case TALK_FIND_RUN:
        talk_take_found(t, v);
        break;
    case TALK_MAKE_RUN:
        talk_take_run(t, text_at(v, "run", "info", "run_id"));
        break;
    case TALK_SEE_RUN:
        talk_take_newest(t, v);
        talk_feed(t);
        break;
    case TALK_SEND:
        talk_feed(t);
        break;
    case TALK_TELL:
        talk_go(t, TALK_CLOSE);
        break;
    case TALK_SEE_WANDB:
        talk_take_viewer(t, v);
        break;
    default:
        talk_over(t, NULL);
    }
}

/* What is not there may be made. True if that was so. */
static bool talk_mends(struct talk *t, int status)
{
    if (t->step == TALK_FIND_EXPERIMENT && status == 404 && !t->made_experiment) {
        t->made_experiment = true;
        talk_go(t, TALK_MAKE_EXPERIMENT);
    } else if (t->step == TALK_MAKE_EXPERIMENT && status == 400) { /* somebody else just made it */
        talk_go(t, TALK_FIND_EXPERIMENT);
    } else if (t->step == TALK_SEE_RUN && status == 404) { /* it was removed there */
        set_str(&t->r->run, NULL);
        talk_go(t, TALK_FIND_EXPERIMENT);
    } else {
        return false;
    }
    return true;
}

static void on_answer(const struct wire_reply *reply, void *arg)
{
    struct talk *t = arg;
    char why[160];
    t->request = NULL;
    if (t->step == TALK_SEE_SWANLAB && reply->status && reply->status < 500) {
        talk_over(t, NULL);
        return;
    }
    if (reply->status == 200) {
        json_t *v = NULL;
        int r = json_parse(reply->body, reply->len, ANSWER_MAX, &v, NULL);
        if (r == 0)
            talk_take_answer(t, v);
        else
            talk_over(t, "its answer is not valid JSON");
        json_decref(v);
        return;
    }
    if (talk_mends(t, reply->status))
        return;
    if (reply->status)
        text_printf(why, "it answers %d", reply->status);
    else
        text_printf(why, "%.150s", reply->err.text);
    talk_over(t, why);
}

static void talk_go(struct talk *t, enum talk_step step)
{
    usec_t now = clock_mono(), left = t->until > now ? t->until - now : 0;
    struct strv headers = {0};
    if (left < USEC_MS) { /* to the wire less than that is no limit */
        talk_over(t, "it took too long");
        return;
    }
    t->step = step;
    _cleanup_(freep) char *url = talk_url(t), *body = talk_body(t);
    const char *token = pairs_find(&t->keys, "MLFLOW_TRACKING_TOKEN");
    const char *user = pairs_find(&t->keys, "MLFLOW_TRACKING_USERNAME");
    const char *password = pairs_find(&t->keys, "MLFLOW_TRACKING_PASSWORD");
    const char *key = pairs_find(&t->keys, "WANDB_API_KEY");
    if (token)
        strv_addf(&headers, "Authorization: Bearer %s", token);
    if (key) {
        user = "api";
        password = key;
    }
    struct wire_order order = {.method = body ? "POST" : "GET",
                               .url = url,
                               .body = body,
                               .timeout = left < REQUEST_TIMEOUT ? left : REQUEST_TIMEOUT,
                               .max_bytes = t->is_start ? START_ANSWER_MAX : ANSWER_MAX,
                               .headers = headers.n ? &headers : NULL,
                               .reach = tracker_is_named(t->r) ? REACH_NAMED : REACH_OUTSIDE,
                               .said = tracker_kind_to_string((enum tracker_kind)t->r->kind),
                               .user = token ? NULL : user,
                               .password = token ? NULL : password};
    t->request = wire_send(t->r->ts->wire, &order, on_answer, t);
    strv_release(&headers);
}

/* ---- turns ---- */

/* In its user's line. */
static void talk_new(struct tracker_run *r, enum talk_step first, bool completes, talk_f done)
{
    struct talk *t = xcalloc(1, sizeof(*t));
    *t = (struct talk){
        .r = r, .step = first, .is_start = r->deciding, .completes = completes, .done = done};
    if (t->is_start)
        t->until = clock_mono() + BEGIN_TIMEOUT;
    r->talk = t;
    userlines_join(talk_line(t), &t->place, r->user);
    talks_wake(r->ts);
}

static void talk_take_turn(struct talk *t)
{
    struct tracker_run *r = t->r;
    struct strv wanted = {0};
    if (!t->until)
        t->until = clock_mono() + (t->completes ? COMPLETE_TIMEOUT : BEGIN_TIMEOUT);
    for (const char *const *name = tracker_secrets((enum tracker_kind)r->kind); *name; name++)
        strv_add(&wanted, *name);
    secrets_reveal(r->ts->p.secrets, r->user, r->group, &wanted, &t->keys);
    strv_release(&wanted);
    talk_go(t, t->step);
}

void talks_take_turns(struct trackers *ts)
{
    struct userlines_place *next;
    while (!ts->closed && (next = userlines_next(&ts->starts, STARTS_MOST)))
        talk_take_turn(container_of(next, struct talk, place));
    while (!ts->closed && (next = userlines_next(&ts->ends, ENDS_MOST)))
        talk_take_turn(container_of(next, struct talk, place));
}

void talk_look(struct tracker_run *r, usec_t now)
{
    struct talk *t = r->talk;
    if (t && !t->place.goes_on && t->until && now >= t->until)
        talk_over(t, "the servers of its user's other jobs take too long");
}

void talk_begin(struct tracker_run *r, talk_f done)
{
    enum talk_step first = r->kind == TRACKER_MLFLOW  ? TALK_FIND_EXPERIMENT
                           : r->kind == TRACKER_WANDB ? TALK_SEE_WANDB
                                                      : TALK_SEE_SWANLAB;
    talk_new(r, first, false, done);
}

void talk_complete(struct tracker_run *r, talk_f done)
{
    talk_new(r, r->run ? TALK_SEE_RUN : TALK_FIND_EXPERIMENT, true, done);
}
