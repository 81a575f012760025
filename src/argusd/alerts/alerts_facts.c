/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_facts.c - what is the case now, as facts that rules ask about; see alerts_run.h. Their
 * list for people is docs/alerts.md.
 *
 * A fact that is not known is left out: no rule fires or ends by it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/alerts/alerts_facts.h"
#include "argusd/figures/figures.h"
#include "argusd/ground/jobspec.h"
#include "argusd/jobs/unsaved.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/alert/alert_cause.h"

/* After a start nothing is said to be gone before it could be seen. */
static const usec_t SETTLES = 10 * USEC_SEC;
static const usec_t USE_SPAN = 5 * USEC_MIN; /* of a job's GPUs */

void fact_text(struct facts *f, const char *name, const char *text)
{
    if (text && f->n < FACTS_MAX)
        f->v[f->n++] = (struct alert_fact){.name = name, .text = text};
}

void fact_message(struct facts *f, const char *name, const char *code, const char *args)
{
    message_to_string(code, args, true, f->said, sizeof(f->said));
    fact_text(f, name, f->said);
    f->says =
        (struct alert_saying){.name = name, .code = str_or(code, ""), .args = str_or(args, "")};
}

void fact_reason(struct facts *f, const char *code, const char *args)
{
    if (*str_or(args, ""))
        fact_message(f, "reason", code, args);
    else
        fact_message(f, "reason", "no_reason_known", "{}");
}

void fact_number(struct facts *f, const char *name, double number)
{
    if (f->n < FACTS_MAX)
        f->v[f->n++] = (struct alert_fact){.name = name, .number = number};
}

void fact_yes(struct facts *f, const char *name, bool yes)
{
    fact_text(f, name, yes ? "yes" : "no");
}

static double seconds_since(usec_t since, usec_t now)
{
    return since && now > since ? (double)(now - since) / (double)USEC_SEC : 0;
}

void alerts_see(struct alerts *as, const struct alert_subject *what, struct facts *f, usec_t now)
{
    struct alert_subject s = *what;
    fact_text(f, "name", s.name);
    s.v = f->v;
    s.n = f->n;
    s.says = f->says;
    alert_table_see(as->table, &as->rules, &s, now);
}

/* ---- jobs ---- */

static void place_free(struct strv *place)
{
    if (place)
        strv_release(place);
    free(place);
}

void alerts_places_free(struct alerts *as)
{
    struct strv *place;
    for (size_t pos = 0; (place = map_next(as->places, &pos, NULL));)
        place_free(place);
    map_free(as->places);
}

/* What it is leased is remembered beyond its end, until that was told. */
static void place_keep(struct alerts *as, const struct job *j)
{
    if (!j->gang.n)
        return;
    struct strv *place = map_find(as->places, j->id);
    if (!place) {
        place = xcalloc(1, sizeof(*place));
        (void)map_set(as->places, j->id, place); /* there was none */
    }
    struct strv nodes = {0};
    struct alert_where where = {.cluster = j->cluster, .nodes = &nodes};
    strv_release(place);
    for (size_t i = 0; i < j->gang.n; i++)
        strv_add(&nodes, j->gang.v[i].name);
    alert_suspects(ALERT_OF_JOB, &where, place);
    strv_release(&nodes);
}

static void job_facts(const struct job *j,
                      usec_t now,
                      struct facts *f,
                      char at[static CLOCK_TEXT_MAX])
{
    fact_text(f, "user", j->user);
    fact_text(f, "project", j->project);
    fact_text(f, "workload", j->workload);
    fact_text(f, "pool", j->pool);
    fact_text(f, "state", job_state_to_string(j->state));
    fact_number(f, "gpus", j->demand.nnodes * j->demand.gpus_per_node);
    fact_number(f, "attempts", j->n_attempts);
    fact_yes(f, "hung", (j->flags & JOB_FLAG_HUNG) != 0);
    fact_yes(f, "idle", (j->flags & JOB_FLAG_IDLE) != 0);
    fact_yes(f, "held", (j->flags & JOB_FLAG_HELD) != 0);
    fact_yes(f, "unknown", (j->flags & JOB_FLAG_UNKNOWN) != 0);
    if (j->flags & JOB_FLAG_UNKNOWN) {
        fact_number(f, "unknown_for", seconds_since(j->unknown_since, now));
        fact_text(f, "unknown_since", clock_to_string(j->unknown_since, at));
    }
    if (j->state == JOB_RUNNING)
        fact_number(f, "running_for", seconds_since(j->started_at, now));
    if (j->state == JOB_QUEUED)
        fact_number(f, "queued_for", seconds_since(j->queued_at, now));
}

/* What is wrong with its training. Left out until there is a verdict. */
static void job_verdict_facts(const struct live *l, struct facts *f)
{
    const struct record_extra *x = &l->extra;
    if (l->job->state != JOB_RUNNING || !x->verdict)
        return;
    fact_text(f, "verdict", x->verdict_says ? verdict_kind_to_string(x->verdict_kind) : "none");
    fact_text(f, "verdict_says", x->verdict_says);
    fact_text(f, "verdict_samples", x->verdict_samples);
    if (x->verdict_says)
        fact_number(f, "verdict_certainty", x->verdict_certainty);
}

/* Whether an alert of its spec holds. Left out where it has none. */
static void job_alert_facts(const struct live *l, struct facts *f)
{
    if (l->job->state != JOB_RUNNING || !l->extra.metric_alerts)
        return;
    fact_yes(f, "metric_alert", l->extra.alerts_say != NULL);
    fact_text(f, "metric_alert_says", l->extra.alerts_say);
    fact_text(f, "metric_alert_samples", l->extra.alerts_samples);
    fact_text(f, "metric_alert_curve", l->extra.alerts_curve);
}

/* Whether one of its ranks holds the others up. */
static void job_rank_facts(const struct live *l, struct facts *f)
{
    if (l->job->state != JOB_RUNNING)
        return;
    fact_yes(f, "rank_slow", l->extra.slow_rank_says != NULL);
    fact_text(f, "rank_slow_says", l->extra.slow_rank_says);
}

/* Whether the notebook whose lease this job is will be stopped as idle. */
static void job_notebook_facts(const struct alerts *as, const struct job *j, struct facts *f)
{
    usec_t left = 0;
    bool may_be = str_eq(j->workload, "notebook") && as->p.notebook_of;
    const char *name = may_be ? as->p.notebook_of(j->id, &left, as->p.arg) : NULL;
    if (!name)
        return;
    if (j->state != JOB_RUNNING)
        left = 0; /* what was told of a lease that goes is over: it may only wait to come back */
    fact_text(f, "notebook", name);
    fact_yes(f, "notebook_warned", left > 0);
    if (left)
        fact_number(f, "notebook_left", (double)left / (double)USEC_SEC);
}

/* What it does on its GPUs, of those that it shares its own part: the mean of all over the last
 * minutes, and that of the one that works the least and the most. Left out while not half of it is
 * known. */
static void job_gpu_facts(const struct figures *fs,
                          const struct job *j,
                          usec_t now,
                          struct facts *f)
{
    double least = 2, most = -1;
    usec_t ran = now > j->started_at ? now - j->started_at : 0;
    usec_t span = ran < USE_SPAN ? ran : USE_SPAN;
    struct figures_window all = figures_gang_use(fs, j->id, &j->gang, span);
    if (j->state != JOB_RUNNING || !figures_window_is_told(&all))
        return;
    for (size_t i = 0; i < j->gang.n; i++)
        for (int g = 0; g < GANG_GPUS_MAX; g++) {
            if (!(j->gang.v[i].gpus >> g & 1))
                continue;
            struct figures_window one = figures_use(fs, j->id, j->gang.v[i].name, g, span);
            if (!one.n)
                continue;
            least = one.mean < least ? one.mean : least;
            most = one.mean > most ? one.mean : most;
        }
    fact_number(f, "gpu_use", all.mean);
    fact_number(f, "gpu_use_min", least);
    fact_number(f, "gpu_use_max", most);
}

/* Who is told by its spec of this. */
static void job_notify(const struct alerts *as,
                       const struct live *l,
                       const char *word,
                       struct strv *ret)
{
    const struct spec *spec = jobspec_of(as->p.settings, l->job);
    for (size_t i = 0; spec && i < spec->notify.n; i++)
        (void)alert_notify_wants(spec->notify.v[i], word, ret); /* the rest is not for them */
}

static void see_job(struct alerts *as, struct live *l, usec_t now)
{
    const struct job *j = l->job;
    char at[CLOCK_TEXT_MAX];
    struct facts f = {0};
    struct strv notify = {0};
    place_keep(as, j);
    job_facts(j, now, &f, at);
    job_gpu_facts(as->p.figures, j, now, &f);
    job_verdict_facts(l, &f);
    job_alert_facts(l, &f);
    job_rank_facts(l, &f);
    job_notebook_facts(as, j, &f);
    if (j->flags & (JOB_FLAG_UNKNOWN | JOB_FLAG_HUNG))
        job_notify(as, l, j->flags & JOB_FLAG_UNKNOWN ? "unknown" : "hung", &notify);
    if (l->extra.verdict_says)
        job_notify(as, l, "verdict", &notify);
    if (l->extra.alerts_say)
        job_notify(as, l, "metric", &notify);
    struct alert_subject s = {.of = ALERT_OF_JOB,
                              .name = j->id,
                              .owner = j->user,
                              .project = j->project,
                              .notify = &notify,
                              .suspects = j->n_attempts ? map_find(as->places, j->id) : NULL,
                              .gpus = j->demand.nnodes * j->demand.gpus_per_node};
    alerts_see(as, &s, &f, now);
    strv_release(&notify);
}

/* ---- cluster, root, queue ---- */

static void see_cluster(struct alerts *as, usec_t now)
{
    const struct cluster *c = as->p.cluster;
    const char *code, *text;
    struct facts f = {0};
    cluster_why_not(c, &code, &text);
    fact_yes(&f, "up", cluster_is_up(c));
    fact_reason(&f, code, text);
    fact_text(&f, "session", cluster_session(c));
    struct alert_subject s = {.of = ALERT_OF_CLUSTER, .name = as->p.settings->cluster};
    alerts_see(as, &s, &f, now);
}

static void see_root(struct alerts *as, usec_t now)
{
    const struct cluster *c = as->p.cluster;
    struct facts f = {0};
    const char *code, *text;
    bool ok = cluster_root_is_ok(c), bad = cluster_root_is_bad(c);
    if (ok || bad)
        fact_yes(&f, "ok", ok);
    fact_yes(&f, "hangs", cluster_root_hangs(c));
    if (ok) {
        fact_number(&f, "free", (double)cluster_root_free_bytes(c));
        fact_number(&f, "write_time", (double)cluster_root_write_took(c) / (double)USEC_SEC);
    }
    cluster_root_why(c, &code, &text);
    fact_reason(&f, code, text);
    struct alert_subject s = {.of = ALERT_OF_ROOT, .name = ALERT_ROOT_NAME};
    alerts_see(as, &s, &f, now);
}

static void see_queue(struct alerts *as, usec_t now)
{
    const struct reason *why = jobs_blocked(as->p.jobs);
    struct facts f = {0};
    fact_number(&f, "waiting", (double)jobs_count(as->p.jobs, JOB_QUEUED));
    fact_number(&f, "running", (double)jobs_count(as->p.jobs, JOB_RUNNING));
    fact_yes(&f, "blocked", *why->code != 0);
    fact_text(&f, "code", why->code);
    fact_reason(&f, why->code, why->text);
    fact_number(&f, "longest_wait", seconds_since(jobs_oldest_wait(as->p.jobs), now));
    struct strv suspects = {0};
    struct alert_where where = {.cluster = as->p.settings->cluster};
    alert_suspects(ALERT_OF_QUEUE, &where, &suspects);
    struct alert_subject s = {.of = ALERT_OF_QUEUE, .name = "queue", .suspects = &suspects};
    alerts_see(as, &s, &f, now);
    strv_release(&suspects);
}

static const char QUEUED_FOR[] = "queued_for";

/* While a job waits, only the time since then changes by itself: the job is asked about again when
 * a rule may say something else, and at each look while an alert of it is open or pending. */
static void see_again(struct alerts *as, struct live *l, usec_t now)
{
    const struct job *j = l->job;
    if (!alert_table_minds(as->table, ALERT_OF_JOB, j->id))
        jobs_seen(l);
    if (!as->asks_queued)
        return;
    double next =
        alert_rules_next(&as->rules, ALERT_OF_JOB, QUEUED_FOR, seconds_since(j->queued_at, now));
    if (isfinite(next)) /* a microsecond later, so that > says yes too */
        jobs_look_later(l, j->queued_at + (usec_t)(next * (double)USEC_SEC) + 1);
}

static void ask_all_jobs(struct alerts *as, usec_t now)
{
    struct live *l;
    as->ask_all = false;
    as->asks_queued = isfinite(alert_rules_next(&as->rules, ALERT_OF_JOB, QUEUED_FOR, 0));
    for (size_t pos = 0; (l = jobs_next(as->p.jobs, &pos));)
        jobs_look_later(l, now);
}

/* Those that hold slots at each look, and of the queue those about which something is new. */
static void see_jobs(struct alerts *as, usec_t now)
{
    struct live *l;
    if (as->ask_all)
        ask_all_jobs(as, now);
    jobs_look(as->p.jobs, now);
    for (size_t pos = 0; (l = jobs_next_placed(as->p.jobs, &pos));)
        if (!l->over)
            see_job(as, l, now);
    for (size_t pos = 0; (l = jobs_next_changed(as->p.jobs, &pos));) {
        if (l->over || l->job->state != JOB_QUEUED) {
            jobs_seen(l);
            continue;
        }
        see_job(as, l, now);
        see_again(as, l, now);
    }
    alert_table_round(as->table, ALERT_OF_JOB, now);
}

/* ---- quotas ---- */

static void see_account(struct alerts *as,
                        enum sched_account kind,
                        const char *name,
                        double limit,
                        usec_t now)
{
    struct sched_usage u;
    struct facts f = {0};
    char key[80];
    if (limit <= 0)
        return;
    sched_usage(jobs_sched(as->p.jobs), kind, name, jobs_now(as->p.jobs), &u);
    text_printf(key, "%s/%s", kind == SCHED_USER ? "user" : "project", name);
    fact_text(&f, "kind", kind == SCHED_USER ? "user" : "project");
    fact_number(&f, "limit", limit);
    fact_number(&f, "used_hours", u.gpu_seconds_month / 3600);
    fact_number(&f, "used", u.gpu_seconds_month / 3600 / limit);
    struct alert_subject s = {.of = ALERT_OF_QUOTA,
                              .name = key,
                              .owner = kind == SCHED_USER ? name : NULL,
                              .project = kind == SCHED_PROJECT ? name : NULL};
    alerts_see(as, &s, &f, now);
}

static void see_quotas(struct alerts *as, usec_t now)
{
    struct person *p;
    struct project *project;
    for (size_t pos = 0; (p = people_next(as->p.people, &pos));)
        see_account(as, SCHED_USER, p->name, p->quota.gpu_hours_per_month, now);
    for (size_t pos = 0; (project = people_next_project(as->p.people, &pos));)
        see_account(as, SCHED_PROJECT, project->name, project->quota.gpu_hours_per_month, now);
    alert_table_round(as->table, ALERT_OF_QUOTA, now);
}

/* ---- argusd itself ---- */

/* For how long something of argusd has not gone as it should, and why. */
static void fact_late(const struct alerts *as,
                      usec_t (*late)(const char **ret_trouble, void *arg),
                      const char *span_name,
                      const char *trouble_name,
                      struct facts *f)
{
    const char *trouble = "";
    usec_t span = late ? late(&trouble, as->p.arg) : 0;
    fact_number(f, span_name, (double)span / (double)USEC_SEC);
    if (span)
        fact_text(f, trouble_name, trouble);
}

/* Without their names: all see this alert, and not all see each service. */
static void fact_services(const struct alerts *as, struct facts *f)
{
    usec_t longest = 0;
    size_t n = as->p.services_down ? as->p.services_down(&longest, as->p.arg) : 0;
    fact_number(f, "services_down", (double)n);
    fact_number(f, "service_down", (double)longest / (double)USEC_SEC);
}

static void see_argusd(struct alerts *as, usec_t now)
{
    struct alerts_outlet o, worst = {0};
    usec_t wall = clock_wall();
    struct facts f = {0};
    for (size_t i = 0; alerts_outlet_at(as, i, &o); i++)
        if (o.failing_since && (!worst.receiver || o.failing_since < worst.failing_since))
            worst = o;
    fact_yes(&f, "store_failing", store_is_failing(as->p.store));
    fact_number(&f, "loop_late", (double)as->late / (double)USEC_SEC);
    fact_number(&f, "messages_failing",
                worst.receiver ? seconds_since(worst.failing_since, wall) : 0);
    if (worst.receiver) {
        fact_text(&f, "receiver", worst.receiver->name);
        /* Not its trouble: all see the alert, and that may quote what a server answered. */
        fact_message(&f, "reason", "told_to_admins", "{}");
    }
    fact_late(as, as->p.agent_failing, "agent_failing", "agent_trouble", &f);
    fact_late(as, as->p.backup_overdue, "backup_overdue", "backup_trouble", &f);
    fact_services(as, &f);
    struct alert_subject s = {.of = ALERT_OF_ARGUSD, .name = "argusd"};
    alerts_see(as, &s, &f, now);
}

void alerts_look(struct alerts *as, usec_t now)
{
    see_argusd(as, now);
    see_root(as, now);
    see_jobs(as, now);
    if (clock_mono() - as->started >= SETTLES || cluster_is_up(as->p.cluster)) {
        see_cluster(as, now);
        alerts_see_nodes(as, now);
        alerts_see_gpus(as, now);
        see_queue(as, now);
    }
    see_quotas(as, now);
    alert_table_tick(as->table, &as->rules, now);
}

/* ---- events ---- */

/* What ended for its own reasons is not the node's fault. */
static bool may_be_a_machine(const struct job *j)
{
    enum finding_class c = j->finding;
    return c == FINDING_NONE || finding_class_is(c, FINDING_BLAMES_NODE) ||
           finding_class_is(c, FINDING_IS_LOSS) || finding_class_is(c, FINDING_IS_DEATH);
}

static const char *end_word(const struct store_event *row)
{
    static const struct {
        const char *state, *word;
    } words[] = {{"FAILED", "failed"},
                 {"TIMEOUT", "timeout"},
                 {"SUCCEEDED", "succeeded"},
                 {"STOPPED", "stopped"},
                 {"QUEUED", "interrupted"}};
    for (size_t i = 0; i < array_len(words); i++)
        if (!strcmp(str_or(row->to_state, ""), words[i].state))
            return words[i].word;
    return "";
}

static bool is_finding(const struct store_event *row)
{
    return !strcmp(row->kind, "finding");
}

static void job_event_facts(const struct store_event *row, struct facts *f)
{
    fact_text(f, "event", row->kind);
    fact_text(f, "from", row->from_state);
    fact_text(f, "to", row->to_state);
    fact_text(f, is_finding(row) ? "class" : "code", row->reason_code);
    fact_message(f, "finding", row->reason_code, row->text);
}

/* GPU-seconds that an attempt takes along when it ends like this. */
static double job_event_lost(const struct live *l, const struct store_event *row, usec_t now)
{
    if (!l || !l->job || is_finding(row) || !str_list_has("FAILED,TIMEOUT,QUEUED", row->to_state))
        return 0;
    return l->job->demand.nnodes * l->job->demand.gpus_per_node * live_unsaved(l, now);
}

static void see_job_event(struct alerts *as, struct live *l, const struct store_event *row)
{
    char at[CLOCK_TEXT_MAX];
    struct facts f = {0};
    struct strv notify = {0};
    usec_t now = clock_wall();
    const struct job *j = l ? l->job : NULL;
    job_event_facts(row, &f);
    if (j)
        job_facts(j, now, &f, at);
    if (l)
        job_notify(as, l, end_word(row), &notify);
    if (l && !is_finding(row))
        fact_yes(&f, "asked_for", notify.n > 0);
    struct alert_subject s = {.of = ALERT_OF_JOB,
                              .name = row->job,
                              .owner = j ? j->user : NULL,
                              .project = j ? j->project : NULL,
                              .notify = &notify,
                              .suspects =
                                  j && may_be_a_machine(j) ? map_find(as->places, j->id) : NULL,
                              .gpus = j ? j->demand.nnodes * j->demand.gpus_per_node : 0,
                              .lost = job_event_lost(l, row, now)};
    alerts_see(as, &s, &f, now);
    strv_release(&notify);
    if (j && job_state_is_terminal(j->state))
        place_free(map_remove(as->places, row->job));
}

/* A run of a pipeline has ended. It suspects the job that failed, so that both are one incident. */
static void see_pipeline_event(struct alerts *as, const struct store_event *row)
{
    const char *slash = strchr(row->object, '/');
    struct facts f = {0};
    struct strv suspects = {0};
    _cleanup_(json_unrefp) json_t *args = json_loads(str_or(row->text, "{}"), 0, NULL);
    const char *job = json_get_str(args, "job", NULL);
    if (job)
        strv_addf(&suspects, "%s/%s", alert_of_names[ALERT_OF_JOB], job);
    fact_text(&f, "user", row->owner);
    fact_text(&f, "project", row->project);
    fact_text(&f, "event", row->kind);
    fact_text(&f, "from", row->from_state);
    fact_text(&f, "to", row->to_state);
    fact_reason(&f, row->reason_code, row->text);
    struct alert_subject s = {.of = ALERT_OF_PIPELINE,
                              .name = slash + 1,
                              .owner = row->owner,
                              .project = row->project,
                              .suspects = &suspects};
    alerts_see(as, &s, &f, clock_wall());
    strv_release(&suspects);
}

bool alerts_see_event(struct alerts *as, const struct store_event *row)
{
    if (str_eq(row->kind, "pipeline_ended") && str_starts(str_or(row->object, ""), "pipeline/")) {
        see_pipeline_event(as, row);
        return true;
    }
    /* A job that has just been submitted is queued, too, but it came from no state. */
    bool ends = row->from_state && row->to_state && strcmp(row->from_state, row->to_state) != 0 &&
                *end_word(row);
    if (!row->job || (!ends && !is_finding(row)))
        return false;
    struct live *l = jobs_find_any(as->p.jobs, row->job);
    see_job_event(as, l, row);
    if (l && !l->over && alert_table_minds(as->table, ALERT_OF_JOB, row->job))
        jobs_look_later(l, row->at);
    return true;
}
