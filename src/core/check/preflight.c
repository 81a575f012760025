/* SPDX-License-Identifier: Apache-2.0 */
/* preflight.c - which files a spec names, and what is wrong with each; see preflight.h. */
#include "core/check/preflight.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/verl/cmdline.h"

enum { REWARD_BYTES_MAX = 4 << 20, TREE_BYTES_MAX = 1 << 20 };

/* ---- what to look at ---- */

static void preflight_add_file(struct preflight_facts *f,
                               const char *field,
                               enum preflight_kind kind,
                               const char *path)
{
    if (!path || path[0] != '/' || f->n_files >= PREFLIGHT_FILES_MAX)
        return;
    f->files = xrealloc(f->files, f->n_files + 1, sizeof(*f->files));
    f->files[f->n_files++] =
        (struct preflight_file){.field = xstrdup(field), .path = xstrdup(path), .kind = kind};
}

static void add_files(struct preflight_facts *f,
                      const char *field,
                      enum preflight_kind kind,
                      const struct strv *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        preflight_add_file(f, field, kind, paths->v[i]);
}

static void add_config_files(struct preflight_facts *f, const struct spec *s)
{
    for (size_t i = 0; spec_file_overrides[i]; i++) {
        const char *path = spec_override_find(s, spec_file_overrides[i]);
        if (path && !strchr(path, '$')) /* Hydra's own names mean nothing here */
            preflight_add_file(f, "overrides", PREFLIGHT_TREE, path);
    }
}

/* "Qwen/Qwen2.5" to <hf_home>/hub/models--Qwen--Qwen2.5 */
static char *hub_dir(const char *hf_home, const char *id)
{
    const char *slash = strchr(id, '/');
    if (!slash)
        return xasprintf("%s/hub/models--%s", hf_home, id);
    return xasprintf("%s/hub/models--%.*s--%s", hf_home, (int)(slash - id), id, slash + 1);
}

static bool preflight_is_below(const char *path, const char *root)
{
    size_t n = strlen(root);
    return !strncmp(path, root, n) && (!path[n] || path[n] == '/');
}

static void plan_model(const struct spec *s,
                       const char *field,
                       const struct preflight_where *where,
                       struct preflight_facts *f)
{
    if (!s->model_id || !workload_is_verl((enum workload)s->workload))
        return;
    bool is_path = s->model_id[0] == '/';
    bool is_away = !is_path && where->hf_home && where->shared_root &&
                   !preflight_is_below(where->hf_home, where->shared_root);
    if (!is_path && (!where->hf_home || (is_away && !where->hf_is_ours)))
        return;
    f->model = xcalloc(1, sizeof(*f->model));
    *f->model = (struct preflight_model){.field = field,
                                         .path = is_path ? xstrdup(s->model_id)
                                                         : hub_dir(where->hf_home, s->model_id),
                                         .cache = is_away ? xstrdup(where->hf_home) : NULL,
                                         .is_hub = !is_path,
                                         .is_offline = where->hf_offline,
                                         .only_there = s->workload == WORKLOAD_MERGE};
}

/* The step that it goes on from, where it names one. */
static void plan_resume(const struct spec *s,
                        const struct preflight_where *where,
                        struct preflight_facts *f)
{
    if (s->resume_mode != SPEC_RESUME_JOB || s->resume_step <= 0 || !where->shared_root)
        return;
    _cleanup_(freep) char *path = spec_resume_path(s, where->shared_root, s->resume_step);
    preflight_add_file(f, "resume", PREFLIGHT_CHECKPOINT, path);
}

static const char *placed_by(unsigned replaced, enum spec_replaced part, const char *key)
{
    return replaced & part ? "overrides" : key;
}

void preflight_plan(const struct spec *s,
                    const struct preflight_where *where,
                    struct preflight_facts *ret)
{
    struct spec held;
    unsigned replaced;
    const struct spec *final = spec_final(s, &held, &replaced);
    *ret = (struct preflight_facts){0};
    preflight_add_file(ret, "code_path", PREFLIGHT_DIR, s->code_path);
    preflight_add_file(ret, "working_dir", PREFLIGHT_DIR, s->working_dir);
    add_files(ret, "extra_pythonpath", PREFLIGHT_DIR, &s->extra_pythonpath);
    preflight_add_file(ret, "runtime_env.py_executable", PREFLIGHT_PROGRAM, s->py_executable);
    if (workload_is_verl((enum workload)s->workload)) {
        add_files(ret, placed_by(replaced, SPEC_REPLACED_TRAIN, "train_file"), PREFLIGHT_DATA,
                  &final->train_file);
        add_files(ret, placed_by(replaced, SPEC_REPLACED_VAL, "val_file"), PREFLIGHT_DATA,
                  &final->val_file);
        add_config_files(ret, s);
    }
    preflight_add_file(ret, placed_by(replaced, SPEC_REPLACED_REWARD, "reward_fn_path"),
                       PREFLIGHT_REWARD, final->reward_file);
    plan_model(final, placed_by(replaced, SPEC_REPLACED_MODEL, "model_id"), where, ret);
    plan_resume(s, where, ret);
    spec_release(&held);
}

bool preflight_has_work(const struct preflight_facts *f)
{
    return f->n_files > 0 || f->model;
}

static void model_free(struct preflight_model *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_shards; i++) {
        free(m->shards[i].name);
        free(m->shards[i].broken);
    }
    char *texts[] = {m->path, m->cache, m->real, m->config_broken, m->index_name, m->index_broken};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    free(m->shards);
    free(m);
}

void preflight_release(struct preflight_facts *f)
{
    for (size_t i = 0; i < f->n_files; i++) {
        free(f->files[i].field);
        free(f->files[i].path);
        free(f->files[i].real);
        free(f->files[i].broken);
    }
    free(f->files);
    free(f->real_root);
    model_free(f->model);
    *f = (struct preflight_facts){0};
}

void preflight_keys_release(struct preflight_keys *k)
{
    struct strv *lists[] = {&k->keys, &k->groups, &k->options, &k->leaves};
    for (size_t i = 0; i < array_len(lists); i++)
        strv_release(lists[i]);
    freep(&k->name);
}

/* ---- words ---- */

const char *preflight_size_text(uint64_t bytes, char buf[static 32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1000 && u + 1 < array_len(units)) {
        v /= 1000;
        u++;
    }
    text_printf_to(buf, 32, u ? "%.1f %s" : "%.0f %s", v, units[u]);
    return buf;
}

static bool begins(const unsigned char *head, size_t n, const char *with)
{
    size_t m = strlen(with);
    return n >= m && !strncasecmp((const char *)head, with, m);
}

const char *preflight_name_head(const unsigned char *head, size_t n)
{
    while (n > 0 && (isspace(*head) || *head == 0xef || *head == 0xbb || *head == 0xbf)) {
        head++;
        n--;
    }
    if (begins(head, n, "version https://git-lfs"))
        return "a pointer of git-lfs, not the file itself";
    if (begins(head, n, "<!doctype") || begins(head, n, "<html") || begins(head, n, "<?xml"))
        return "a web page";
    if (begins(head, n, "\x1f\x8b"))
        return "a gzip archive";
    if (begins(head, n, "PK\x03\x04"))
        return "a zip archive";
    return NULL;
}

/* ---- one file ---- */

static const char *preflight_kind_word(enum preflight_kind k)
{
    static const char *const words[] = {
        [PREFLIGHT_DATA] = "data file",          [PREFLIGHT_REWARD] = "Python file",
        [PREFLIGHT_DIR] = "directory",           [PREFLIGHT_PROGRAM] = "program",
        [PREFLIGHT_TREE] = "configuration file", [PREFLIGHT_CHECKPOINT] = "checkpoint"};
    return words[k];
}

static void preflight_say(struct problems *ps,
                          const char *field,
                          const char *code,
                          const struct message_arg *args)
{
    problems_add(ps, PROBLEM_ERROR, field, 0, 0, code, args);
}

/* It is no such file at all: its head says that it is another. */
static void say_other_kind(const struct preflight_file *f, const char *kind, struct problems *ps)
{
    preflight_say(ps, f->field, strstr(kind, "git-lfs") ? "file_is_pointer" : "file_other_kind",
                  MESSAGE_ARGS(MESSAGE_STR("path", f->path), MESSAGE_STR("file", kind)));
}

static void say_error(const struct preflight_file *f, struct problems *ps)
{
    const char *word = preflight_kind_word(f->kind);
    if (f->kind == PREFLIGHT_CHECKPOINT && (f->error == ENOENT || f->error == ENOTDIR))
        preflight_say(ps, f->field, "no_checkpoint_file",
                      MESSAGE_ARGS(MESSAGE_STR("file", word), MESSAGE_STR("path", f->path)));
    else if (f->error == ENOENT || f->error == ENOTDIR)
        preflight_say(ps, f->field, "file_absent",
                      MESSAGE_ARGS(MESSAGE_STR("file", word), MESSAGE_STR("path", f->path)));
    else if (f->error == EACCES || f->error == EPERM)
        preflight_say(ps, f->field, "file_denied", MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
    else if (f->error == ELOOP)
        preflight_say(ps, f->field, "file_loop", MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
    else
        preflight_say(
            ps, f->field, "file_unreadable",
            MESSAGE_ARGS(MESSAGE_STR("path", f->path), MESSAGE_STR("why", strerror(f->error))));
}

/* Where links lead, after the lexical look of spec_expand(). */
bool preflight_judge_real(const char *field,
                          const char *path,
                          const char *real,
                          const char *real_root,
                          const struct preflight_where *where,
                          struct problems *ps)
{
    size_t n = strlen(real_root), m = strlen(where->shared_root);
    const char *own =
        preflight_is_below(where->user_root, where->shared_root) ? where->user_root + m : "";
    if (!preflight_is_below(path, where->shared_root))
        return false; /* a root of its own that spec_expand() knows */
    if (!preflight_is_below(real, real_root))
        preflight_say(ps, field, "file_leads_out",
                      MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("real", real)));
    else if (str_starts(real + n, "/users/") && !(*own && preflight_is_below(real + n, own)))
        preflight_say(ps, field, "file_leads_to_user", MESSAGE_ARGS(MESSAGE_STR("path", path)));
    else
        return false;
    return true;
}

static bool is_parquet_name(const char *path)
{
    return !str_ends(path, ".json") && !str_ends(path, ".jsonl");
}

static void judge_data(const struct preflight_file *f, struct problems *ps)
{
    const char *what = preflight_name_head(f->head, f->n_head);
    char size[32];
    if (what) {
        say_other_kind(f, what, ps);
        return;
    }
    if (!is_parquet_name(f->path)) {
        if (f->head[0] != '{' && f->head[0] != '[')
            preflight_say(ps, f->field, "data_not_json",
                          MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
        return;
    }
    bool begins_well = f->n_head >= 4 && !memcmp(f->head, "PAR1", 4);
    if (f->n_head >= 4 && !memcmp(f->head, "PARE", 4))
        preflight_say(ps, f->field, "data_encrypted", MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
    else if (!begins_well)
        preflight_say(ps, f->field, "data_not_parquet", MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
    else if (f->size < 12 || memcmp(f->tail, "PAR1", 4) != 0)
        preflight_say(ps, f->field, "data_cut",
                      MESSAGE_ARGS(MESSAGE_STR("path", f->path),
                                   MESSAGE_STR("size", preflight_size_text(f->size, size))));
}

static void judge_reward(const struct preflight_file *f, struct problems *ps)
{
    const char *what = preflight_name_head(f->head, f->n_head);
    char size[32];
    if (what)
        say_other_kind(f, what, ps);
    else if (f->size > REWARD_BYTES_MAX)
        preflight_say(ps, f->field, "reward_too_large",
                      MESSAGE_ARGS(MESSAGE_STR("path", f->path),
                                   MESSAGE_STR("size", preflight_size_text(f->size, size))));
    else if (f->n_head && memchr(f->head, 0, f->n_head))
        preflight_say(ps, f->field, "reward_not_text", MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
}

static void judge_plain(const struct preflight_file *f, struct problems *ps)
{
    if (!f->is_file) {
        preflight_say(ps, f->field, f->is_dir ? "file_is_directory" : "file_not_plain",
                      MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
        return;
    }
    if (f->size == 0) {
        preflight_say(ps, f->field, "file_empty", MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
        return;
    }
    if (f->kind == PREFLIGHT_DATA)
        judge_data(f, ps);
    else if (f->kind == PREFLIGHT_REWARD)
        judge_reward(f, ps);
    else if (f->kind == PREFLIGHT_PROGRAM && !f->may_run)
        preflight_say(ps, f->field, "file_not_executable",
                      MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
    else if (f->kind == PREFLIGHT_TREE && f->broken)
        preflight_say(ps, f->field, "file_not_parsed",
                      MESSAGE_ARGS(MESSAGE_STR("path", f->path), MESSAGE_KEPT("why", f->broken)));
}

/* A venv's python leads out of it, and may. */
static bool leads_away(const struct preflight_file *f,
                       const char *real_root,
                       const struct preflight_where *where,
                       struct problems *ps)
{
    return f->kind != PREFLIGHT_PROGRAM && f->real && real_root &&
           preflight_judge_real(f->field, f->path, f->real, real_root, where, ps);
}

static bool is_dir_wanted(enum preflight_kind kind)
{
    return kind == PREFLIGHT_DIR || kind == PREFLIGHT_CHECKPOINT;
}

void preflight_judge_files(const struct preflight_where *where,
                           const struct preflight_facts *facts,
                           struct problems *ps)
{
    for (size_t i = 0; i < facts->n_files; i++) {
        const struct preflight_file *f = &facts->files[i];
        if (f->is_elsewhere || leads_away(f, facts->real_root, where, ps))
            continue;
        if (f->error)
            say_error(f, ps);
        else if (is_dir_wanted(f->kind) && !f->is_dir)
            preflight_say(ps, f->field, "not_directory",
                          MESSAGE_ARGS(MESSAGE_STR("path", f->path)));
        else if (!is_dir_wanted(f->kind))
            judge_plain(f, ps);
    }
}

/* ---- all ---- */

/* Told while its user looks on, and not when the gang is there. */
static void judge_version(const struct spec *s, const struct verl_version *v, struct problems *ps)
{
    const char *field;
    struct err err = {0};
    if (cmdline_check_version(s, v, &field, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, field, 0, 0, &err);
}

void preflight_judge(const struct spec *s,
                     const struct verl_version *v,
                     const struct preflight_where *where,
                     const struct preflight_facts *f,
                     struct problems *ps)
{
    preflight_judge_files(where, f, ps);
    if (f->model) {
        struct spec held;
        unsigned replaced; /* it is in the facts */
        preflight_judge_model(spec_final(s, &held, &replaced), where, f->real_root, f->model, ps);
        spec_release(&held);
    }
    if (v) {
        judge_version(s, v, ps);
        preflight_judge_sizes(s, v, ps);
    }
    preflight_judge_space(s, f, ps);
    if (f->keys)
        preflight_judge_keys(s, f->keys, ps);
}
