/* SPDX-License-Identifier: Apache-2.0 */
/* preflight_model.c - is a model whole, and is there room for its checkpoints; see preflight.h. */
#include "base/message.h"
#include "core/check/preflight.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

/* FSDP saves weights and both moments of Adam, each as 32-bit numbers. */
enum { WEIGHT_BYTES = 4, OPTIMISER_BYTES = 8 };

/* ---- whole? ---- */

static void judge_absent(const struct spec *s, const struct preflight_model *m, struct problems *ps)
{
    if (!m->is_hub) {
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0,
                     m->error == EACCES ? "model_denied" : "model_absent",
                     MESSAGE_ARGS(MESSAGE_STR("path", m->path)));
        return;
    }
    problems_add(ps, m->is_offline ? PROBLEM_ERROR : PROBLEM_WARNING, m->field, 0, 0,
                 m->is_offline ? "model_offline" : "model_not_cached",
                 MESSAGE_ARGS(MESSAGE_STR("model", s->model_id)));
}

/* Only of one whose size is wrong: printf is slow, and most are right. */
static void shard_sizes(const struct preflight_shard *d, char has[static 32], char wants[static 32])
{
    if (!d->wants || d->size == d->wants)
        return;
    (void)preflight_size_text(d->size, has);
    (void)preflight_size_text(d->wants, wants);
}

/* Writes one sentence for a shard that cannot be loaded; false when the shard is fine. */
static bool judge_shard(const struct preflight_model *m,
                        const struct preflight_shard *d,
                        struct problems *ps)
{
    char has[32] = "", wants[32] = "";
    const char *what = preflight_name_head(d->head, d->n_head);
    bool is_zip = !d->is_safetensors && what && strstr(what, "zip"); /* as torch saves */
    shard_sizes(d, has, wants);
    if (d->is_elsewhere)
        return false;
    if (d->error == ENOENT)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "shard_missing",
                     MESSAGE_ARGS(MESSAGE_STR("shard", d->name), MESSAGE_STR("path", m->path),
                                  MESSAGE_STR("index", str_or(m->index_name, "*.index.json"))));
    else if (d->error)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "shard_unreadable",
                     MESSAGE_ARGS(MESSAGE_STR("shard", d->name), MESSAGE_STR("path", m->path),
                                  MESSAGE_STR("why", strerror(d->error))));
    else if (what && !is_zip)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "shard_other_kind",
                     MESSAGE_ARGS(MESSAGE_STR("shard", d->name), MESSAGE_STR("path", m->path),
                                  MESSAGE_STR("file", what)));
    else if (d->broken)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "shard_broken",
                     MESSAGE_ARGS(MESSAGE_STR("shard", d->name), MESSAGE_STR("path", m->path),
                                  MESSAGE_KEPT("why", d->broken)));
    else if (d->wants && d->size < d->wants)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "shard_half",
                     MESSAGE_ARGS(MESSAGE_STR("shard", d->name), MESSAGE_STR("path", m->path),
                                  MESSAGE_STR("has", has), MESSAGE_NUM("bytes", d->size),
                                  MESSAGE_STR("wants", wants), MESSAGE_NUM("wanted", d->wants)));
    else if (d->wants && d->size > d->wants)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "shard_longer",
                     MESSAGE_ARGS(MESSAGE_STR("shard", d->name), MESSAGE_STR("path", m->path),
                                  MESSAGE_STR("has", has), MESSAGE_STR("wants", wants)));
    else if (!d->size)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "shard_empty",
                     MESSAGE_ARGS(MESSAGE_STR("shard", d->name), MESSAGE_STR("path", m->path)));
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
        problems_add(ps, PROBLEM_WARNING, m->field, 0, 0, "shards_not_looked_at",
                     MESSAGE_ARGS(MESSAGE_NUM("bad", TOLD_MAX), MESSAGE_NUM("all", m->n_shards)));
    if (m->index_broken)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "index_broken",
                     MESSAGE_ARGS(MESSAGE_STR("path", m->path),
                                  MESSAGE_STR("name", str_or(m->index_name, "")),
                                  MESSAGE_KEPT("why", m->index_broken)));
    else if (!m->n_shards)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "model_no_weights",
                     MESSAGE_ARGS(MESSAGE_STR("path", m->path)));
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
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "model_is_file",
                     MESSAGE_ARGS(MESSAGE_STR("path", m->path)));
        return;
    }
    if (m->real && real_root && !m->is_hub &&
        preflight_judge_real(m->field, m->path, m->real, real_root, where, ps))
        return;
    if (m->is_empty)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "model_empty",
                     MESSAGE_ARGS(MESSAGE_STR("path", m->path)));
    if (m->is_empty || m->only_there)
        return;
    if (!m->has_config)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "model_no_config",
                     MESSAGE_ARGS(MESSAGE_STR("path", m->path)));
    if (m->config_broken)
        problems_add(
            ps, PROBLEM_ERROR, m->field, 0, 0, "model_config_broken",
            MESSAGE_ARGS(MESSAGE_STR("path", m->path), MESSAGE_KEPT("why", m->config_broken)));
    if (!m->has_tokenizer)
        problems_add(ps, PROBLEM_ERROR, m->field, 0, 0, "model_no_tokenizer",
                     MESSAGE_ARGS(MESSAGE_STR("path", m->path)));
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
        problems_add(ps, PROBLEM_ERROR, "checkpoint.keep_last", 0, 0, "checkpoints_no_room",
                     MESSAGE_ARGS(MESSAGE_NUM("keep", keep),
                                  MESSAGE_STR("each", preflight_size_text(bytes, one)),
                                  MESSAGE_STR("needed", preflight_size_text(wants, all)),
                                  MESSAGE_STR("free", preflight_size_text(f->free_bytes, has))));
    else if (s->save_freq > 0 && s->save_freq < 10)
        problems_add(ps, PROBLEM_WARNING, "save_freq", 0, 0, "save_freq_writes",
                     MESSAGE_ARGS(MESSAGE_NUM("steps", s->save_freq),
                                  MESSAGE_STR("each", preflight_size_text(bytes, one))));
}
