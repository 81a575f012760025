/* SPDX-License-Identifier: Apache-2.0 */
/* preflight_model.c - is a model whole, and is there room for its checkpoints; see preflight.h. */
#include "core/check/preflight.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

static const char FIELD[] = "model_id";
/* FSDP saves weights and both moments of Adam, each as 32-bit numbers. */
enum { WEIGHT_BYTES = 4, OPTIMISER_BYTES = 8 };

/* ---- whole? ---- */

static void judge_absent(const struct spec *s, const struct preflight_model *m, struct problems *ps)
{
    if (!m->is_hub) {
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, "look at the spelling, or import it first",
                     m->error == EACCES ? "'%.300s' cannot be read: permission denied"
                                        : "there is no model at '%.300s'",
                     m->path);
        return;
    }
    problems_add(ps, m->is_offline ? PROBLEM_ERROR : PROBLEM_WARNING, FIELD, 0, 0,
                 "import it first, or give a path below the shared root",
                 m->is_offline ? "'%.100s' is not in the cache of models, and HF_HUB_OFFLINE is set"
                               : "'%.100s' is not in the cache of models: the job downloads it "
                                 "while it holds its GPUs",
                 s->model_id);
}

/* Writes one sentence for a shard that cannot be loaded; false when the shard is fine. */
static bool judge_shard(const struct preflight_model *m,
                        const struct preflight_shard *d,
                        struct problems *ps)
{
    char has[32], wants[32];
    const char *what = preflight_name_head(d->head, d->n_head);
    const char *again = "copy or download it again";
    bool is_zip = !d->is_safetensors && what && strstr(what, "zip"); /* as torch saves */
    (void)preflight_size_text(d->size, has);
    (void)preflight_size_text(d->wants, wants);
    if (d->is_elsewhere)
        return false;
    if (d->error == ENOENT)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, again,
                     "shard '%.100s' of '%.200s' is missing, which '%.100s' names", d->name,
                     m->path, str_or(m->index_name, "the index"));
    else if (d->error)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, "let everybody read it: chmod a+r",
                     "shard '%.100s' of '%.200s' cannot be read: %s", d->name, m->path,
                     strerror(d->error));
    else if (what && !is_zip)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, again, "shard '%.100s' of '%.200s' is %s",
                     d->name, m->path, what);
    else if (d->broken)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, again,
                     "shard '%.100s' of '%.200s' is broken: %s", d->name, m->path, d->broken);
    else if (d->wants && d->size < d->wants)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, again,
                     "shard '%.100s' of '%.200s' is only half there: %s (%llu bytes) of %s (%llu)",
                     d->name, m->path, has, (unsigned long long)d->size, wants,
                     (unsigned long long)d->wants);
    else if (d->wants && d->size > d->wants)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, again,
                     "shard '%.100s' of '%.200s' is longer than its header says: %s of %s", d->name,
                     m->path, has, wants);
    else if (!d->size)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, again, "shard '%.100s' of '%.200s' is empty",
                     d->name, m->path);
    else
        return false;
    return true;
}

static void judge_shards(const struct preflight_model *m, struct problems *ps)
{
    enum { TOLD_MAX = 5 };
    size_t bad = 0;
    for (size_t i = 0; i < m->n_shards && bad < TOLD_MAX; i++)
        bad += judge_shard(m, &m->shards[i], ps);
    if (bad == TOLD_MAX && m->n_shards > TOLD_MAX)
        problems_add(ps, PROBLEM_WARNING, FIELD, 0, 0, NULL,
                     "not looked at after %d bad shards: the rest of %zu", TOLD_MAX, m->n_shards);
    if (m->index_broken)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, "copy or download it again",
                     "'%.200s/%.100s' is no index of shards: %s", m->path,
                     str_or(m->index_name, ""), m->index_broken);
    else if (!m->n_shards)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0,
                     "copy or import it whole: *.safetensors or *.bin", "'%.300s' has no weights",
                     m->path);
}

void preflight_judge_model(const struct spec *s,
                           const struct preflight_where *where,
                           const char *real_root,
                           const struct preflight_model *m,
                           struct problems *ps)
{
    if (m->is_elsewhere)
        return;
    if (m->error) {
        judge_absent(s, m, ps);
        return;
    }
    if (!m->is_dir) {
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, "give the directory that holds config.json",
                     "'%.300s' is a file, not a model", m->path);
        return;
    }
    if (m->real && real_root && !m->is_hub &&
        preflight_judge_real(FIELD, m->path, m->real, real_root, where, ps))
        return;
    if (m->is_empty)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, "copy or import it first", "'%.300s' is empty",
                     m->path);
    if (m->is_empty || m->only_there)
        return;
    if (!m->has_config)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, "give the directory that holds config.json",
                     "'%.300s' has no config.json: it is no model", m->path);
    if (m->config_broken)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0, "copy or download it again",
                     "'%.300s/config.json' does not parse: %s", m->path, m->config_broken);
    if (!m->has_tokenizer)
        problems_add(ps, PROBLEM_ERROR, FIELD, 0, 0,
                     "copy tokenizer.json or tokenizer_config.json there too",
                     "'%.300s' has no tokenizer", m->path);
    judge_shards(m, ps);
}

/* ---- room ---- */

static bool saves(const struct spec *s, const char *what)
{
    const char *contents =
        spec_override_find(s, "actor_rollout_ref.actor.checkpoint.save_contents");
    return !contents || strstr(contents, what);
}

uint64_t preflight_checkpoint_bytes(const struct spec *s, const struct preflight_model *m)
{
    uint64_t elements = 0, each = 0, bytes;
    if (!m || !workload_trains((enum workload)s->workload))
        return 0;
    for (size_t i = 0; i < m->n_shards; i++)
        if (__builtin_add_overflow(elements, m->shards[i].elements, &elements))
            return 0;
    each += saves(s, "model") ? WEIGHT_BYTES : 0;
    each += saves(s, "optimizer") ? OPTIMISER_BYTES : 0;
    if (s->workload == WORKLOAD_PPO)
        each *= 2; /* the critic */
    return __builtin_mul_overflow(elements, each, &bytes) ? 0 : bytes;
}

void preflight_judge_space(const struct spec *s,
                           const struct preflight_facts *f,
                           struct problems *ps)
{
    char one[32], all[32], has[32];
    uint64_t bytes = preflight_checkpoint_bytes(s, f->model), wants;
    if (!bytes || !f->has_free || s->checkpoint_none)
        return;
    /* verl writes the new one before it removes the oldest. */
    uint64_t keep = (uint64_t)(s->keep_last > 0 ? s->keep_last : 1) + 1;
    if (__builtin_mul_overflow(bytes, keep, &wants))
        wants = UINT64_MAX;
    if (wants > f->free_bytes)
        problems_add(ps, PROBLEM_ERROR, "checkpoint.keep_last", 0, 0,
                     "keep fewer, free some space, or write 'checkpoint: none'",
                     "%llu checkpoints of about %s do not fit: %s are needed while one is "
                     "written, %s are free",
                     (unsigned long long)keep, preflight_size_text(bytes, one),
                     preflight_size_text(wants, all), preflight_size_text(f->free_bytes, has));
    else if (s->save_freq > 0 && s->save_freq < 10)
        problems_add(ps, PROBLEM_WARNING, "save_freq", 0, 0, "10 or more is usual",
                     "a checkpoint every %lld steps writes about %s each time",
                     (long long)s->save_freq, preflight_size_text(bytes, one));
}
