/* SPDX-License-Identifier: Apache-2.0 */
/* view_item.c - see view_item.h.
 *
 * Lists are long and asked for often: an item reads its row, and of a live job what is in memory,
 * and nothing else. */
#include "argusd/kit/view_item.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "argusd/figures/figures.h"
#include "argusd/kit/api.h"
#include "base/digest/hash.h"
#include "base/field.h"
#include "base/str.h"

static const struct field eta_rows[] = {
    FIELD_AT(view_eta, "p50", FIELD_TIME, p50, .flags = FIELD_ALWAYS),
    FIELD_AT(view_eta, "p90", FIELD_TIME, p90, .flags = FIELD_ALWAYS),
};
const struct field_table view_eta_table = FIELD_TABLE("Eta", eta_rows, view_eta);

static const char *const flag_names[] = {"UNKNOWN", "HELD", "RESTARTING", "HOLDING",
                                         "HUNG",    "IDLE", NULL};
static_assert(JOB_FLAG_IDLE == 1 << (array_len(flag_names) - 2), "each flag has its word");

#define ITEM(key, ftype, member, ...) FIELD_AT(job_item, key, ftype, member, __VA_ARGS__)
static const struct field item_rows[] = {
    ITEM("id", FIELD_STR, row.id, .flags = FIELD_ALWAYS),
    ITEM("name", FIELD_STR, row.name),
    ITEM("user", FIELD_STR, row.user, .flags = FIELD_ALWAYS),
    ITEM("project", FIELD_STR, row.project, .flags = FIELD_ALWAYS),
    ITEM("workload", FIELD_STR, row.workload, .flags = FIELD_ALWAYS),
    ITEM("cluster", FIELD_STR, row.cluster, .flags = FIELD_ALWAYS),
    ITEM("state", FIELD_STR, row.state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    ITEM("flags", FIELD_BITS, flags, .names = flag_names),
    ITEM("unknown_since", FIELD_TIME, unknown_since, .flags = FIELD_OMIT),
    ITEM("hold_until",
         FIELD_TIME,
         hold_until,
         .flags = FIELD_OMIT,
         .doc = "of one that has failed and is HOLDING its slots: it gives them back then"),
    ITEM("reason", FIELD_OBJECT, reason, .of = &said_table),
    ITEM("position", FIELD_INT32, position, .flags = FIELD_OMIT),
    ITEM("eta", FIELD_PART, eta, .of = &view_eta_table),
    ITEM("pool", FIELD_STR, row.pool),
    ITEM("priority", FIELD_INT, row.priority),
    ITEM("nnodes", FIELD_INT, row.nnodes),
    ITEM("n_gpus_per_node", FIELD_REAL, row.n_gpus_per_node),
    ITEM("gpus", FIELD_REAL, gpus),
    ITEM("queued_at", FIELD_TIME, row.queued_at),
    ITEM("started_at", FIELD_TIME, row.started_at),
    ITEM("ended_at", FIELD_TIME, row.ended_at),
    ITEM("attempt", FIELD_INT, row.attempt),
    ITEM("restarts", FIELD_INT, row.restarts),
    ITEM("step", FIELD_INT, row.step, .flags = FIELD_NO_LIMIT),
    ITEM("total_steps", FIELD_INT, total_steps, .flags = FIELD_NO_LIMIT, .doc = "of a live job"),
    ITEM("reward", FIELD_REAL, reward, .flags = FIELD_MAYBE, .doc = "the newest, of a live job"),
    ITEM("ends",
         FIELD_PART,
         ends,
         .of = &view_eta_table,
         .doc =
             "when a running job is expected to end: its last step at its own pace, else by what "
             "jobs like it took"),
    ITEM("nodes", FIELD_LIST, nodes, .of = &view_node_gpus_table, .doc = "its lease"),
    ITEM("gpu_util", FIELD_REAL, gpu_util, .flags = FIELD_NO_LIMIT),
    ITEM("gpu_hours",
         FIELD_REAL,
         gpu_hours,
         .doc =
             "held by its leases, over all attempts; of a lease that is there to the whole minute"),
};
#undef ITEM
const struct field_table view_item_table = FIELD_TABLE("JobItem", item_rows, job_item);

const struct view_eta *view_eta_known(const struct view_eta *eta)
{
    return eta->p50 ? eta : NULL;
}

/* Percent, of its own part of all GPUs of its lease over the last minutes; -1 while not half of it
 * is known. A whole number: a page that is the same keeps its ETag. */
static double view_gpu_util(const struct live *l, const struct api_eyes *eyes)
{
    static const usec_t window = 5 * USEC_MIN, begun = 2 * FIGURE_EVERY;
    if (!l || !eyes || !l->job->gang.n || l->job->state != JOB_RUNNING)
        return -1;
    usec_t ran = jobs_in_state(l);
    usec_t span = ran < begun ? begun : ran < window ? ran : window;
    struct figures_window w = figures_gang_use(eyes->a->figures, l->job->id, &l->job->gang, span);
    return figures_window_is_told(&w) ? round(100 * w.mean) : -1;
}

/* By what jobs like it took, from the start of its attempt on. */
static void view_learnt_end(const struct job *job,
                            const struct record_extra *x,
                            struct view_eta *ret)
{
    if (!job->started_at || !x->expected_p50)
        return;
    ret->p50 = job->started_at + x->expected_p50;
    ret->p90 = job->started_at + x->expected_p90;
}

/* A moment that has passed is none that is expected. */
static void view_ends(const struct live *l, struct view_eta *ret)
{
    usec_t now = clock_wall();
    *ret = (struct view_eta){0};
    if (l->job->state != JOB_RUNNING)
        return;
    view_learnt_end(l->job, &l->extra, ret);
    if (l->extra.paced_end > now)
        ret->p50 = l->extra.paced_end;
    if (ret->p90 < ret->p50)
        ret->p90 = ret->p50;
    if (ret->p50 <= now)
        ret->p50 = ret->p90;
    if (ret->p50 <= now)
        *ret = (struct view_eta){0};
}

struct slotbook_held view_held(struct slotbook_held held, const struct live *l)
{
    struct slotbook_held now = {0};
    if (!l || !l->job->gang.n)
        return held;
    jobs_add_held(l, &now);
    double minute = demand_gpus(&l->job->demand) * SLOTBOOK_GPU * 60 * 1000;
    if (now.held <= 0 || minute <= 0)
        return held;
    double whole = floor((double)now.held / minute) * minute, part = whole / (double)now.held;
    held.held += (int64_t)whole;
    held.idle += (int64_t)((double)now.idle * part);
    held.unknown += (int64_t)((double)now.unknown * part);
    held.busy += (int64_t)((double)now.busy * part);
    held.redone += (int64_t)((double)now.redone * part);
    return held;
}

double view_hours(int64_t held)
{
    return (double)held / ((double)SLOTBOOK_GPU * 1000 * 3600);
}

double view_gpu_hours(int64_t of_row, const struct live *l)
{
    struct slotbook_held past = {.held = of_row};
    return view_hours(view_held(l ? l->extra.held : past, l).held);
}

/* It does not move while it holds, but for jumps of the clock: a page that is the same keeps its
 * ETag. */
static usec_t view_hold_until(const struct live *l)
{
    if (!l || !job_is_holding(l->job))
        return 0;
    const struct moment now = jobs_moment(l->jobs);
    return job_deadline(l->job, 0, &now);
}

void view_fill_item(struct job_item *item,
                    const struct store_job *row,
                    const struct live *l,
                    const struct api_eyes *eyes)
{
    int64_t step = l ? l->extra.step : row->step;
    *item = (struct job_item){.row = *row,
                              .flags = record_flags_from_string(row->flags),
                              .unknown_since = l ? l->job->unknown_since : 0,
                              .hold_until = view_hold_until(l),
                              .gpus = (double)row->nnodes * row->n_gpus_per_node,
                              .gpu_util = view_gpu_util(l, eyes),
                              .gpu_hours = view_gpu_hours(row->gpu_held, l)};
    item->row.name = row->name && *row->name ? row->name : NULL;
    item->row.pool = row->pool && *row->pool ? row->pool : NULL;
    item->row.step = step > 0 ? step : -1;
    item->total_steps = l && l->extra.total_steps > 0 ? l->extra.total_steps : -1;
    if (l)
        item->nodes = (struct field_list){.v = l->job->gang.v, .n = l->job->gang.n};
    if (l)
        jobs_reason(l, &item->now, &item->position);
    if (l && l->job->state == JOB_QUEUED)
        jobs_eta(l, &item->expected.p50, &item->expected.p90);
    if (l)
        view_ends(l, &item->foreseen);
    item->eta = view_eta_known(&item->expected);
    item->ends = view_eta_known(&item->foreseen);
    item->reward = l && l->extra.has_reward ? l->extra.reward : NAN;
    saying_say(eyes, row->id, l ? item->now.code : row->reason_code,
               l ? item->now.text : row->reason_text, &item->reason);
}

void view_item(struct jout *j,
               const struct store_job *row,
               const struct live *l,
               const struct api_eyes *eyes)
{
    struct job_item item;
    view_fill_item(&item, row, l, eyes);
    field_to_json(&view_item_table, &item, FIELD_ALL, FIELD_PAGE, j, NULL);
    said_release(&item.reason);
}

uint64_t view_item_mark(const struct live *l, const struct api_eyes *eyes)
{
    static const unsigned char seed[16];
    const struct job *job = l->job;
    struct {
        uint64_t text;
        int64_t step, total, times[7], numbers[6];
        double util, hours, reward;
    } all = {.step = l->extra.step,
             .total = l->extra.total_steps,
             .util = view_gpu_util(l, eyes),
             .hours = view_gpu_hours(0, l),
             .reward = l->extra.reward};
    struct reason now;
    struct view_eta eta = {0}, ends;
    int position = 0;
    jobs_reason(l, &now, &position);
    if (job->state == JOB_QUEUED)
        jobs_eta(l, &eta.p50, &eta.p90);
    all.text = hash_keyed(seed, now.code, strlen(now.code)) * 31 +
               hash_keyed(seed, now.text, strlen(now.text));
    view_ends(l, &ends);
    const usec_t times[] = {job->unknown_since, job->started_at, job->ended_at, eta.p50, eta.p90,
                            ends.p50,           ends.p90};
    const int64_t numbers[] = {job->state,      (int64_t)job->flags,   position,
                               job->n_attempts, job->restart.failures, job->priority};
    for (size_t i = 0; i < array_len(times); i++)
        all.times[i] = (int64_t)times[i];
    memcpy(all.numbers, numbers, sizeof(numbers));
    return hash_keyed(seed, &all, sizeof(all));
}
