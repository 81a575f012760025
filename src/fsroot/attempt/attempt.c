/* SPDX-License-Identifier: Apache-2.0 */
/* attempt.c - writes the directory of a job and of one attempt of it; see attempt.h.
 *
 * Everything is made before Ray hears of the attempt, and everything is written by
 * rename, so doing it again after a crash gives the same files. Once the shepherd
 * has opened its log nothing here touches the attempt any more.
 *
 * Secrets: what masking would change (an environment value, the arguments) goes
 * into the 0600 file and not into launch.json. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/attempt.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/mask.h"
#include "fsroot/attempt/secrets.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum { TEXT_MAX = 64 << 20, ATTEMPT_MAX = 1000000 };

/* What is sorted out before anything is written. */
struct plan {
    const struct fsroot_attempt *a;
    char *job_dir, *dir;
    struct mask mask;
    struct pairs open_env, secret_env; /* together: what the command gets */
    struct strv argv;                  /* masked */
    bool argv_is_secret;
};

static void attempt_plan_release(struct plan *p)
{
    freep(&p->job_dir);
    freep(&p->dir);
    mask_release(&p->mask);
    pairs_release(&p->open_env);
    pairs_release(&p->secret_env);
    strv_release(&p->argv);
}

static int attempt_check_names(const char *job, int attempt, struct err *err)
{
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "bad_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    if (attempt < 1 || attempt > ATTEMPT_MAX)
        return message_refuse(err, -EINVAL, "bad_attempt",
                              MESSAGE_ARGS(MESSAGE_NUM("attempt", attempt)));
    return 0;
}

static void plan_argv(struct plan *p)
{
    mask_argv(&p->mask, p->a->argv, &p->argv);
    for (size_t i = 0; i < p->argv.n; i++)
        if (!str_eq(p->argv.v[i], p->a->argv->v[i]))
            p->argv_is_secret = true;
}

/* ---- files of the attempt ---- */

static int write_in(const struct plan *p,
                    const char *dir,
                    const char *name,
                    const struct buf *text,
                    mode_t mode,
                    unsigned flags,
                    struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", dir, name);
    if (text->failed)
        return message_refuse(
            err, -EMSGSIZE, "file_would_be_large",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_NUM("most", text->max)));
    return rootfile_write(p->a->root, path, 0, buf_str(text), text->len, mode, flags, err);
}

static int write_masked(const struct plan *p,
                        const char *dir,
                        const char *name,
                        const char *text,
                        struct err *err)
{
    if (!text)
        return 0;
    _cleanup_(buf_release) struct buf out = BUF_INIT(TEXT_MAX);
    mask_text(&p->mask, text, &out);
    return write_in(p, dir, name, &out, 0644, 0, err);
}

static int write_argv(const struct plan *p, struct err *err)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(LAUNCH_MAX_BYTES);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < p->argv.n; i++)
        launch_jout_bytes(&j, NULL, p->argv.v[i]);
    jout_close(&j, ']');
    (void)buf_addc(&out, '\n'); /* overflow: out.failed */
    return write_in(p, p->dir, "argv.json", &out, 0644, 0, err);
}

/* Secret ones are there by name, so that a reader sees that they were set. */
static int write_env(const struct plan *p, struct err *err)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(LAUNCH_MAX_BYTES);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (size_t i = 0; i < p->open_env.n; i++)
        if (!pairs_find(&p->secret_env, p->open_env.v[i].key))
            launch_jout_bytes(&j, p->open_env.v[i].key, p->open_env.v[i].value);
    for (size_t i = 0; i < p->secret_env.n; i++)
        jout_str(&j, p->secret_env.v[i].key, MASK_STARS);
    if (p->a->pythonpath_prefix && !pairs_find(&p->open_env, "PYTHONPATH")) {
        _cleanup_(freep) char *value = xasprintf("%s:${PYTHONPATH}", p->a->pythonpath_prefix);
        launch_jout_bytes(&j, "PYTHONPATH", value);
    }
    jout_close(&j, '}');
    (void)buf_addc(&out, '\n'); /* overflow: out.failed */
    return write_in(p, p->dir, "env.json", &out, 0644, 0, err);
}

static int write_secrets(const struct plan *p, bool *ret_any, struct err *err)
{
    bool any = p->secret_env.n || p->argv_is_secret;
    *ret_any = any;
    /* A file of secrets from an earlier try may hold another spec's values or be torn. */
    int r = p->a->ray_id ? fsroot_secrets_remove(p->a->root, p->a->ray_id, err) : 0;
    if (r < 0)
        return r;
    if (!any)
        return 0;
    _cleanup_(buf_release) struct buf out = BUF_INIT(LAUNCH_MAX_BYTES);
    _cleanup_(strv_release) struct strv hidden = {0};
    launch_hidden_add(&p->argv, p->a->argv, &hidden);
    /* The workers' first: it is what the sweep finds, and with it the other one. */
    if (p->a->ray_id)
        r = fsroot_secrets_write_hidden(p->a->root, p->a->ray_id, &p->secret_env,
                                        p->argv_is_secret ? &hidden : NULL, err);
    if (r == 0)
        r = launch_secrets_to_json(&p->secret_env, p->argv_is_secret ? p->a->argv : NULL, &out,
                                   err);
    if (r == 0)
        r = write_in(p, p->dir, ATTEMPT_SECRETS, &out, 0600, 0, err);
    if (out.data)
        explicit_bzero(out.data, out.len);
    return r;
}

static int write_launch(const struct plan *p, bool has_secrets, struct err *err)
{
    const struct fsroot_attempt *a = p->a;
    _cleanup_(launch_release) struct launch l = {
        .job = xstrdup(a->job),
        .attempt = a->attempt,
        .cwd = xstrdup(a->cwd),
        .pythonpath_prefix = xstrdup(a->pythonpath_prefix),
        .stop_grace = a->stop_grace,
        .beat = a->beat ? a->beat : 5 * USEC_SEC,
        .logs = a->logs ? *a->logs : launch_logs_default(),
        .secrets = has_secrets ? xstrdup(ATTEMPT_SECRETS) : NULL,
        .worker_secrets = has_secrets && a->ray_id ? fsroot_secrets_path(a->root, a->ray_id) : NULL,
    };
    strv_copy(&l.argv, &p->argv);
    pairs_copy(&l.env, &p->open_env);
    _cleanup_(buf_release) struct buf out = BUF_INIT(LAUNCH_MAX_BYTES);
    int r = launch_to_json(&l, &out, err);
    return r < 0 ? r : write_in(p, p->dir, ATTEMPT_LAUNCH, &out, 0644, FILE_SYNC, err);
}

/* launch.json is last: with it the attempt can run. */
static int write_files(const struct plan *p, struct err *err)
{
    const struct fsroot_attempt *a = p->a;
    bool has_secrets = false;
    int r = write_masked(p, p->job_dir, "config/ray_config.yaml", a->ray_config, err);
    if (r == 0)
        r = write_masked(p, p->job_dir, "config/jobspec.yaml", a->jobspec, err);
    if (r == 0)
        r = write_masked(p, p->job_dir, "config/submit_cmd.txt", a->submit_cmd, err);
    if (r == 0)
        r = write_masked(p, p->dir, "submit_payload.json", a->submit_payload, err);
    if (r == 0)
        r = write_argv(p, err);
    if (r == 0)
        r = write_env(p, err);
    if (r == 0)
        r = write_secrets(p, &has_secrets, err);
    return r < 0 ? r : write_launch(p, has_secrets, err);
}

/* ---- directories and links ---- */

static int make_directories(const struct plan *p, struct err *err)
{
    static const char *const of_job[] = {"config", "logs", "debug", "metrics", "checkpoints"};
    static const char *const of_attempt[] = {"logs", "debug", "proof", "scene"};
    int r = 0;
    for (size_t i = 0; i < array_len(of_job) && r == 0; i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", p->job_dir, of_job[i]);
        r = rootfile_mkdirs(p->a->root, path, 0755, err);
    }
    for (size_t i = 0; i < array_len(of_attempt) && r == 0; i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", p->dir, of_attempt[i]);
        r = rootfile_mkdirs(p->a->root, path, 0755, err);
    }
    return r;
}

static int attempt_link_newest(const struct plan *p,
                               const char *name,
                               const char *target,
                               struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", p->job_dir, name);
    _cleanup_(freep) char *to = xasprintf("../attempts/%d/%s", p->a->attempt, target);
    return rootfile_symlink(p->a->root, path, 0, to, err);
}

static int attempt_make_links(const struct plan *p, struct err *err)
{
    static const struct {
        const char *name, *target;
    } links[] = {
        {"config/submit_payload.json", "submit_payload.json"},
        {"config/argv.json", "argv.json"},
        {"config/env.json", "env.json"},
        {"logs/driver.log", ATTEMPT_LOG},
        {"debug/ray_status_pre.txt", "debug/ray_status_pre.txt"},
        {"debug/ray_job_list_post.txt", "debug/ray_job_list_post.txt"},
    };
    int r = 0;
    for (size_t i = 0; i < array_len(links) && r == 0; i++)
        r = attempt_link_newest(p, links[i].name, links[i].target, err);
    return r;
}

static int check_not_started(const struct plan *p, struct err *err)
{
    static const char *const signs[] = {ATTEMPT_LOG, ATTEMPT_EXIT};
    for (size_t i = 0; i < array_len(signs); i++) {
        _cleanup_(freep) char *path = xasprintf("%s/%s", p->dir, signs[i]);
        bool is_there = false;
        int r = rootfile_look_for(p->a->root, path, &is_there, err);
        if (r < 0) /* it may have started: nothing is written, and who asked tries again later */
            return r;
        if (is_there)
            return message_refuse(err, -EEXIST, "attempt_started",
                                  MESSAGE_ARGS(MESSAGE_NUM("attempt", p->a->attempt),
                                               MESSAGE_STR("job", p->a->job),
                                               MESSAGE_STR("path", path)));
    }
    return 0;
}

int fsroot_attempt_write(const struct fsroot_attempt *a, struct err *err)
{
    int r = attempt_check_names(a->job, a->attempt, err);
    if (r == 0 && (!a->argv || !a->argv->n))
        r = message_refuse(err, -EINVAL, "job_no_command",
                           MESSAGE_ARGS(MESSAGE_STR("job", a->job)));
    if (r < 0)
        return r;
    _cleanup_(attempt_plan_release) struct plan p = {
        .a = a,
        .job_dir = fsroot_job_dir(a->root, a->job),
        .dir = fsroot_attempt_dir(a->root, a->job, a->attempt, NULL),
    };
    r = check_not_started(&p, err);
    if (r < 0)
        return r;
    for (size_t i = 0; a->hidden && i < a->hidden->n; i++)
        mask_add(&p.mask, a->hidden->v[i]);
    mask_env(&p.mask, a->env, a->secrets, &p.open_env, &p.secret_env);
    plan_argv(&p);
    r = make_directories(&p, err);
    if (r == 0)
        r = write_files(&p, err);
    return r < 0 ? r : attempt_make_links(&p, err);
}

/* ---- what argusd adds later ---- */

/* dir: of this job and attempt, whose names are checked before anything is written. */
static int attempt_add_file(const char *root,
                            const char *job,
                            int attempt,
                            const char *dir,
                            const char *name,
                            const char *text,
                            struct err *err)
{
    int r = attempt_check_names(job, attempt, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = xasprintf("%s/%s", dir, name);
    return rootfile_write(root, path, 0, text, strlen(text), 0644, 0, err);
}

int fsroot_meta_write(const char *root, const char *job, const char *text, struct err *err)
{
    _cleanup_(freep) char *dir = fsroot_job_dir(root, job);
    return attempt_add_file(root, job, 1, dir, "meta.json", text, err);
}

int fsroot_debug_write(const char *root,
                       const char *job,
                       int attempt,
                       const char *name,
                       const char *text,
                       struct err *err)
{
    if (!fsroot_is_name(name))
        return message_refuse(err, -EINVAL, "bad_debug_file",
                              MESSAGE_ARGS(MESSAGE_STR("name", name)));
    _cleanup_(freep) char *dir = fsroot_attempt_dir(root, job, attempt, "debug");
    _cleanup_(freep) char *link = xasprintf("%s/jobs/%s/debug/%s", root, job, name);
    _cleanup_(freep) char *to = xasprintf("../attempts/%d/debug/%s", attempt, name);
    int r = attempt_add_file(root, job, attempt, dir, name, text, err);
    return r < 0 ? r : rootfile_symlink(root, link, 0, to, err);
}

int fsroot_finding_write(const char *root,
                         const char *job,
                         int attempt,
                         const char *text,
                         struct err *err)
{
    _cleanup_(freep) char *dir = attempt ? fsroot_attempt_dir(root, job, attempt, NULL)
                                         : xasprintf("%s/jobs/%s/trial", root, job);
    return attempt_add_file(root, job, attempt ? attempt : 1, dir, ATTEMPT_FINDING, text, err);
}

int fsroot_scene_write(const char *root,
                       const char *job,
                       int attempt,
                       const char *name,
                       const char *text,
                       struct err *err)
{
    int r = attempt_check_names(job, attempt, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *dir = fsroot_attempt_dir(root, job, attempt, ATTEMPT_SCENE);
    r = rootfile_mkdirs(root, dir, 0755, err);
    return r < 0 ? r : attempt_add_file(root, job, attempt, dir, name, text, err);
}

int fsroot_submit_out_add(const char *root, const char *job, const char *text, struct err *err)
{
    int r = attempt_check_names(job, 1, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = xasprintf("%s/jobs/%s/logs/submit.out", root, job);
    return rootfile_append(root, path, text, strlen(text), err);
}

int fsroot_stop_write(const char *root,
                      const char *job,
                      int attempt,
                      const char *reason,
                      struct err *err)
{
    int r = attempt_check_names(job, attempt, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = fsroot_attempt_dir(root, job, attempt, ATTEMPT_STOP);
    bool is_there = false;
    r = rootfile_look_for(root, path, &is_there, err);
    if (r < 0 || is_there)
        return r;
    return rootfile_write(root, path, 0, reason, strlen(reason), 0644, FILE_SYNC, err);
}
