/* SPDX-License-Identifier: Apache-2.0 */
/* past.c - see past.h: command lines as they are compared, and the runs that had them.
 *
 * A key that no table below knows has to be the same on both sides: what it does to a GPU's memory
 * is not known. */
#include "core/past/past.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/strv.h"

/* So many steps went through every phase that takes memory. */
enum { STEPS_ENOUGH = 3, TEXT_MAX = 64 << 10 };

/* Beginnings of keys that say what one step has to do, not what a GPU holds at once. */
static const char *const WORK[] = {
    "data.train_batch_size", "data.train_files",
    "data.gen_batch_size",   "actor_rollout_ref.actor.ppo_mini_batch_size",
    "critic.ppo_mini_batch", "actor_rollout_ref.actor.ppo_epochs",
    "critic.ppo_epochs",     "actor_rollout_ref.rollout.n",
};

/* Beginnings of keys that say neither. */
static const char *const IDLE[] = {
    "hydra.run",
    "data.val_files",
    "data.val_batch_size",
    "data.seed",
    "data.shuffle",
    "data.train_max_samples",
    "data.val_max_samples",
    "data.filter_overlong",
    "trainer.nnodes",
    "trainer.n_gpus_per_node",
    "trainer.default_local_dir",
    "trainer.project_name",
    "trainer.experiment_name",
    "trainer.logger",
    "trainer.log_val_generations",
    "trainer.rollout_data_dir",
    "trainer.validation_data_dir",
    "trainer.total_",
    "trainer.save_freq",
    "trainer.test_freq",
    "trainer.val_before_train",
    "trainer.max_",
    "trainer.resume_",
    "actor_rollout_ref.actor.clip_ratio",
    "actor_rollout_ref.actor.entropy_coeff",
    "actor_rollout_ref.actor.kl_loss_coef",
    "actor_rollout_ref.actor.kl_loss_type",
    "actor_rollout_ref.actor.grad_clip",
    "actor_rollout_ref.rollout.temperature",
    "actor_rollout_ref.rollout.top_",
    "actor_rollout_ref.rollout.val_kwargs.",
    "algorithm.kl_ctrl.",
    "algorithm.gamma",
    "algorithm.lam",
    "algorithm.norm_adv_by_std",
    "custom_reward_function.",
    "reward.custom_reward_function.",
};

/* The same, anywhere in a key. */
static const char *const IDLE_PARTS[] = {"optim.lr", "optim.weight_decay", "optim.warmup"};

static const char *const SIZES[] = {"micro_batch_size_per_gpu", "max_token_len_per_gpu",
                                    "gpu_memory_utilization"};

static bool is_work(const char *key)
{
    for (size_t i = 0; i < array_len(WORK); i++)
        if (str_starts(key, WORK[i]))
            return !str_starts(key, "actor_rollout_ref.rollout.n") ||
                   str_eq(key, "actor_rollout_ref.rollout.n");
    return false;
}

static bool past_is_idle(const char *key)
{
    for (size_t i = 0; i < array_len(IDLE); i++)
        if (str_starts(key, IDLE[i]))
            return true;
    for (size_t i = 0; i < array_len(IDLE_PARTS); i++)
        if (strstr(key, IDLE_PARTS[i]))
            return true;
    return false;
}

/* ---- a command line ---- */

void past_line_release(struct past_line *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->sizes[i].key);
    free(l->alike);
    free(l->work);
    *l = (struct past_line){0};
}

/* Without the mark that adds a key; one that takes it away has no value. False for what is no
 * override. */
static bool past_split(const char *arg, char **ret_key, const char **ret_value)
{
    const char *key = arg + strspn(arg, "+"), *equals = strchr(arg, '=');
    if (*arg == '~' && !equals)
        equals = arg + strlen(arg);
    if (!equals || (*arg == '-' && !str_starts(arg, "--config-name=")))
        return false;
    *ret_key = xstrndup(key, (size_t)(equals - key));
    *ret_value = *equals ? equals + 1 : equals;
    return true;
}

static int past_by_key(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

/* By key, the last value of each. False: too many. */
static bool read_overrides(const json_t *argv, struct pairs *ret)
{
    size_t i;
    const json_t *arg;
    if (!json_is_array(argv) || json_array_size(argv) > PAST_ARGS_MAX)
        return false;
    json_array_foreach (argv, i, arg) {
        char *key;
        const char *value;
        if (!json_is_string(arg) || !past_split(json_string_value(arg), &key, &value))
            continue;
        pairs_set(ret, key, value);
        free(key);
    }
    xsort(ret->v, ret->n, sizeof(ret->v[0]), past_by_key);
    return true;
}

/* Where rows are packed by tokens their number means nothing, and the other way round; what has no
 * flag of its own does as the actor. */
static bool is_void(const struct pairs *all, const char *key)
{
    static const char ACTOR[] = "actor_rollout_ref.actor.use_dynamic_bsz";
    bool by_tokens = false;
    if (!str_starts(key, "actor_rollout_ref.") && !str_starts(key, "critic."))
        return false;
    for (size_t i = 0; i < all->n; i++)
        if (str_eq(all->v[i].key, ACTOR))
            by_tokens = str_eq(all->v[i].value, "True") || str_eq(all->v[i].value, "true");
        else if (str_ends(all->v[i].key, "use_dynamic_bsz"))
            return false; /* each for itself: not looked into */
    return by_tokens ? str_ends(key, SIZES[0]) : str_ends(key, SIZES[1]);
}

/* True: it is a size, kept or of no meaning. */
static bool take_size(struct past_line *l, const struct pairs *all, const struct pair *o)
{
    bool is_size = false;
    double v;
    for (size_t i = 0; i < array_len(SIZES); i++)
        is_size |= str_ends(o->key, SIZES[i]);
    if (!is_size || str_to_real(o->value, &v, NULL) < 0 || !isfinite(v) || v <= 0)
        return false;
    if (is_void(all, o->key))
        return true;
    if (l->n == PAST_SIZES_MAX)
        return false;
    l->sizes[l->n++] = (struct past_size){.key = xstrdup(o->key), .value = v};
    return true;
}

/* Takes a number above 0 that stands under this key. */
static void take_count(const struct pair *o, const char *key, int64_t *ret)
{
    int64_t v;
    if (str_eq(o->key, key) && str_to_int(o->value, 1, INT64_MAX, &v, NULL) == 0)
        *ret = v;
}

void past_line_read(const json_t *argv, struct past_line *ret)
{
    struct pairs all = {0};
    struct buf alike = BUF_INIT(TEXT_MAX), work = BUF_INIT(TEXT_MAX);
    *ret = (struct past_line){0};
    bool can_tell = read_overrides(argv, &all);
    for (size_t i = 0; i < all.n; i++) {
        const struct pair *o = &all.v[i];
        take_count(o, "trainer.save_freq", &ret->save_freq);
        take_count(o, "trainer.total_training_steps", &ret->total_steps);
        if (is_work(o->key))
            (void)buf_addf(&work, "%s=%s\n", o->key, o->value); /* failed is looked at below */
        else if (!past_is_idle(o->key) && !take_size(ret, &all, o))
            (void)buf_addf(&alike, "%s=%s\n", o->key, o->value);
    }
    if (can_tell && !alike.failed && !work.failed) {
        ret->alike = buf_take(&alike);
        ret->work = buf_take(&work);
    }
    buf_release(&alike);
    buf_release(&work);
    pairs_release(&all);
}

/* ---- a run ---- */

static void past_run_release(struct past_run *r)
{
    free(r->id);
    free(r->project);
    free(r->verl);
    past_line_release(&r->line);
}

void past_release(struct past *p)
{
    for (size_t i = 0; i < p->n; i++)
        past_run_release(&p->v[i]);
    free(p->v);
    *p = (struct past){0};
}

/* "0.7" of "0.7.1" */
static size_t minor_length(const char *version)
{
    const char *dot = strchr(version, '.');
    return dot ? (size_t)(dot - version) + 1 + strcspn(dot + 1, ".") : strlen(version);
}

static bool is_minor_same(const char *a, const char *b)
{
    if (!a || !b || !*a || !*b)
        return true;
    size_t n = minor_length(a);
    return n == minor_length(b) && !strncmp(a, b, n);
}

static void past_sum_up(struct past_run *run, const struct past_row *row)
{
    struct goodput_sums sums;
    double newest_s = 0, ran_s = (double)row->ran / (double)USEC_SEC;
    goodput_from_json(json_get_array(row->metrics, "attempts"), &sums);
    for (size_t i = 0; i < sums.n; i++) {
        const struct goodput_attempt *a = &sums.v[i];
        newest_s = a->good_s + a->lost_s;
        run->told.steps += a->steps;
        run->told.lost += a->lost;
        run->told.good_s += a->good_s;
        run->told.lost_s += a->lost_s;
        run->told.saves += a->saves;
        run->told.save_s += a->save_s;
    }
    run->held_s = run->told.good_s + run->told.lost_s;
    if (ran_s > newest_s)
        run->held_s += ran_s - newest_s;
}

/* A job that ran out of memory in one attempt and not in another says nothing. A failure that
 * would come again at once is none of those that saving helps against. */
static void judge_end(struct past_run *run, const struct past_row *row)
{
    bool failed = row->state == JOB_FAILED;
    bool oom = row->newest == FINDING_GPU_OOM || row->finding == FINDING_GPU_OOM;
    run->succeeded = row->state == JOB_SUCCEEDED;
    if (failed && oom)
        run->end = PAST_DIED;
    else if (!oom && (run->succeeded || run->told.steps >= STEPS_ENOUGH))
        run->end = PAST_WORKED;
    run->failures = row->failures + (failed && finding_class_is(row->finding, FINDING_BLAMES_NODE));
}

void past_add(struct past *p, const struct past_row *row)
{
    struct past_run run = {
        .nnodes = row->nnodes, .gpus_per_node = row->gpus_per_node, .step_s = NAN};
    past_line_read(row->argv, &run.line);
    if (!run.line.alike || p->n == PAST_RUNS_MAX) {
        past_line_release(&run.line);
        return;
    }
    past_sum_up(&run, row);
    judge_end(&run, row);
    if (run.told.steps >= STEPS_ENOUGH)
        run.step_s = json_get_real(row->metrics, "step_seconds", NAN);
    run.id = xstrdup(row->id);
    run.project = xstrdup(str_or(row->project, ""));
    run.verl = xstrdup(row->verl);
    p->v = xrealloc(p->v, p->n + 1, sizeof(*p->v));
    p->v[p->n++] = run;
}

static bool is_like(const struct past_run *r, const struct past_kind *kind)
{
    return r->nnodes == kind->nnodes && fabs(r->gpus_per_node - kind->gpus_per_node) < 1e-6 &&
           is_minor_same(r->verl, kind->verl) && str_eq(r->line.alike, kind->line->alike);
}

void past_keep(struct past *p, const struct past_kind *kind)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (is_like(&p->v[i], kind))
            p->v[n++] = p->v[i];
        else
            past_run_release(&p->v[i]);
    p->n = n;
}
