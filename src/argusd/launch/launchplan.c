/* SPDX-License-Identifier: Apache-2.0 */
/* launchplan.c - from a job's spec to its directory and Ray's payload; see launchplan.h.
 *
 * Environment values under secret names go to the shepherd's 0600 file only: never
 * into Ray's runtime_env, which anybody who reaches Ray can read. */
#include "argusd/launch/launchplan.h"

#include "argusd/content/code.h"
#include "argusd/launch/mark.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argusd/ground/jobspec.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/spec.h"
#include "core/spec/spec_secret.h"
#include "core/verl/cmdline.h"
#include "fsroot/attempt/attempt.h"
#include "fsroot/attempt/install.h"
#include "fsroot/attempt/jobdir.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/mask.h"
#include "fsroot/attempt/secrets.h"
#include "fsroot/look/verlversion.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/root.h"
#include "fsroot/tree/rootfile.h"

static const char LEASE_ENV[] = "ARGUS_LEASE";
/* For the hook: {"code": code_path, "expect": its verl and no other is to be imported, "verl": its
 * version, "working_dir": …, "reward": a file or a dotted module, "snapshot": …, "hash": …} */
static const char PROOF_ENV[] = "ARGUS_PROOF";
/* Only the driver and the processes below it have it: Ray's workers do not. */
static const char DRIVER_NODE_ENV[] = "ARGUS_DRIVER_NODE";

void launchplan_release(struct launchplan *p)
{
    char *texts[] = {p->spec,          p->id,         p->user,   p->instance,  p->driver_resource,
                     p->status_text,   p->entrypoint, p->ray_id, p->argv,      p->verl,
                     p->py_executable, p->lease,      p->inputs, p->snapshots, p->proof,
                     p->driver_node,   p->model_path};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    strv_release(&p->tracker_texts);
    strv_release(&p->moved);
    problems_release(&p->warnings);
    pairs_release(&p->env);
    pairs_wipe(&p->secrets);
    pairs_release(&p->metadata);
    ray_amounts_release(&p->resources);
    ckpt_list_release(&p->known);
}

const char *launchplan_verl_path(const struct spec *spec)
{
    return spec->code_path ? spec->code_path : spec->py_executable;
}

/* ---- environment of argus.yaml ---- */

struct roots {
    const char *shared, *user;
};

static const char *look_up_root(const char *name, void *arg)
{
    const struct roots *r = arg;
    if (!strcasecmp(name, "SHARED_ROOT"))
        return r->shared;
    return !strcasecmp(name, "USER_ROOT") ? r->user : NULL;
}

static int launchplan_expand(const char *text, struct roots *roots, char **ret, struct err *err)
{
    struct buf out = BUF_INIT(64 << 10);
    int r = text ? str_expand(&out, text, look_up_root, roots, err) : 0;
    if (r == 0 && text)
        *ret = buf_take(&out);
    buf_release(&out);
    return r;
}

static int expand_env(const struct settings *s,
                      const struct strv *moved,
                      struct roots *roots,
                      struct pairs *ret,
                      struct err *err)
{
    for (size_t i = 0; i < s->env_vars.n; i++) {
        _cleanup_(freep) char *value = NULL;
        if (strv_has(moved, s->env_vars.v[i].key))
            continue;
        int r = launchplan_expand(s->env_vars.v[i].value, roots, &value, err);
        if (r < 0)
            return err_prefix(err, "argus.yaml: runtime_env.env_vars.%s", s->env_vars.v[i].key);
        pairs_set(ret, s->env_vars.v[i].key, value);
    }
    return 0;
}

char *launchplan_env(const struct settings *settings,
                     const struct spec *spec,
                     const char *user,
                     const char *name)
{
    const char *own = pairs_find(&spec->env, name), *ours = pairs_find(&settings->env_vars, name);
    if (own || !ours)
        return xstrdup(own);
    _cleanup_(freep) char *uroot = jobspec_user_root(settings, user);
    struct roots roots = {settings->shared_root, uroot};
    char *value = NULL;
    return launchplan_expand(ours, &roots, &value, NULL) < 0 ? NULL : value;
}

/* ---- the command line ---- */

struct made {
    struct spec spec;
    struct cmdline cmd;
    struct pairs config_env;
    char *job_dir, *attempt_dir, *hook_dir, *uroot, *user_code, *script;
    struct strv hidden; /* of its arguments, what looks like a key */
    bool has_verl;      /* its version was found, and is no guess */
};

static void made_release(struct made *m)
{
    spec_release(&m->spec);
    cmdline_release(&m->cmd);
    pairs_release(&m->config_env);
    strv_release(&m->hidden);
    char *texts[] = {m->job_dir, m->attempt_dir, m->hook_dir, m->uroot, m->user_code, m->script};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
}

/* *ret stays NULL for what is no verl. */
static int find_verl(struct launchplan *p,
                     struct made *m,
                     const struct verl_version **ret,
                     struct err *err)
{
    const struct spec *spec = &m->spec;
    if (!workload_is_verl((enum workload)spec->workload))
        return 0;
    const char *path = launchplan_verl_path(spec);
    int r = path ? fsroot_verl_version(p->settings->shared_root, path, &p->verl, err) : 0;
    if (r < 0) /* a guess instead would give another release's command */
        return r;
    *ret = verl_version_find(str_or(p->verl, ""), NULL);
    m->has_verl = p->verl != NULL;
    if (!p->verl)
        p->verl = xstrdup((*ret)->name);
    return 0;
}

/* A code_path without a verl holds a job of verl's own programs to it all the same. */
static int proof_text(const struct launchplan *p,
                      const struct spec *spec,
                      char **ret,
                      struct err *err)
{
    struct buf out = BUF_INIT(64 << 10);
    struct jout j = jout_begin(&out);
    bool is_verl = workload_is_verl((enum workload)spec->workload); /* then p->verl is set */
    _cleanup_(freep) char *found = NULL;
    int r = spec->code_path && !is_verl
                ? fsroot_verl_version(p->settings->shared_root, spec->code_path, &found, err)
                : 0;
    if (r < 0)
        return r;
    jout_open(&j, NULL, '{');
    jout_str(&j, "code", spec->code_path);
    jout_bool(&j, "expect", spec->code_path && (found || is_verl));
    jout_str(&j, "verl", found ? found : p->verl);
    jout_str(&j, "working_dir", spec->working_dir);
    code_put_proof(p->snapshots, &j);
    jout_str(&j, "reward", spec->reward_module ? spec->reward_module : spec->reward_file);
    jout_close(&j, '}');
    if (out.failed)
        buf_reset(&out); /* paths beyond any that a file system takes */
    *ret = buf_take(&out);
    return 0;
}

/* Registered inputs and snapshots are their paths from here on. */
static int launchplan_read_spec(const struct launchplan *p, struct made *m, struct err *err)
{
    struct problems ps = {0};
    int r = jobspec_read(p->settings, p->spec, strlen(p->spec), p->user, false, &m->spec, &ps);
    if (r < 0)
        r = problems_to_err(&ps, "spec", ERR_BAD_SPEC, err);
    problems_release(&ps);
    if (r < 0)
        return r;
    code_apply(p->snapshots, &m->spec);
    spec_list_secrets(&m->spec, &m->hidden);
    r = spec_put_inputs(&m->spec, p->inputs, err);
    if (r == 0 && p->model_path)
        set_str(&m->spec.model_id, p->model_path);
    return r;
}

static int make_cmdline(struct launchplan *p, struct made *m, struct err *err)
{
    const struct settings *s = p->settings;
    struct problems ps = {0};
    struct roots roots = {s->shared_root, m->uroot};
    int r = expand_env(s, &p->moved, &roots, &m->config_env, err);
    if (r == 0)
        r = launchplan_expand(s->user_code_path, &roots, &m->user_code, err);
    const struct verl_version *version = NULL;
    if (r == 0)
        r = find_verl(p, m, &version, err);
    struct cmdline_in in = {.spec = &m->spec,
                            .version = version,
                            .id = p->id,
                            .attempt = p->k,
                            .shared_root = s->shared_root,
                            .user_root = m->uroot,
                            .job_dir = m->job_dir,
                            .attempt_dir = m->attempt_dir,
                            .hook_dir = m->hook_dir,
                            .user_code_path = m->user_code,
                            .env = &m->config_env,
                            .train_rows = p->train_rows,
                            .node_cpus = p->node_cpus,
                            .resume_step = p->other_step,
                            .own_step = p->resume_step,
                            .trackers = p->trackers,
                            .n_trackers = p->n_trackers};
    if (r == 0)
        r = cmdline_build(&in, &m->cmd, &ps, err);
    problems_release(&p->warnings);
    p->warnings = ps;
    return r;
}

/* ---- Ray's payload ---- */

static void split_env(struct launchplan *p, const struct made *m)
{
    char wait[32];
    struct mask mask = {0};
    struct pairs secret = {0};
    mask_env(&mask, &m->cmd.env, &p->secrets, &p->env, &secret);
    if (secret.n) {
        _cleanup_(freep) char *path = fsroot_secrets_path(p->settings->shared_root, p->ray_id);
        pairs_set(&p->env, SECRETS_ENV, path);
    }
    pairs_wipe(&secret);
    mask_release(&mask);
    /* Ray kills the shepherd this long after its SIGTERM: it needs the grace, its rounds of
     * SIGKILL and the exit file. */
    text_printf(wait, "%llu", (unsigned long long)(m->spec.stop_grace / USEC_SEC + 45));
    pairs_set(&p->env, "RAY_JOB_STOP_WAIT_TIME_S", wait);
    if (p->lease)
        pairs_set(&p->env, LEASE_ENV, p->lease);
    pairs_set(&p->env, PROOF_ENV, p->proof);
}

static void fill_resources(struct launchplan *p, const struct made *m)
{
    const struct pairs *lists[] = {&p->settings->entrypoint_resources,
                                   &m->spec.entrypoint_resources};
    for (size_t i = 0; i < array_len(lists); i++)
        for (size_t k = 0; k < lists[i]->n; k++) {
            double v = 0;
            if (str_to_real(lists[i]->v[k].value, &v, NULL) == 0 && v > 0)
                ray_amounts_set(&p->resources, lists[i]->v[k].key, v);
        }
    if (p->driver_resource)
        ray_amounts_set(&p->resources, p->driver_resource, p->driver_amount);
}

static void put_pairs(struct jout *j, const char *key, const struct pairs *p)
{
    jout_open(j, key, '{');
    for (size_t i = 0; i < p->n; i++)
        jout_str(j, p->v[i].key, p->v[i].value);
    jout_close(j, '}');
}

static char *payload_text(const struct launchplan *p)
{
    struct buf out = BUF_INIT(1 << 20);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "submission_id", p->ray_id);
    jout_str(&j, "entrypoint", p->entrypoint);
    jout_open(&j, "runtime_env", '{');
    put_pairs(&j, "env_vars", &p->env);
    if (p->py_executable)
        jout_str(&j, "py_executable", p->py_executable);
    jout_close(&j, '}');
    put_pairs(&j, "metadata", &p->metadata);
    jout_real(&j, "entrypoint_num_cpus", p->demand.driver_cpus);
    jout_real(&j, "entrypoint_num_gpus", p->demand.driver_gpus);
    jout_open(&j, "entrypoint_resources", '{');
    for (size_t i = 0; i < p->resources.n; i++)
        jout_real(&j, p->resources.v[i].name, p->resources.v[i].amount);
    jout_close(&j, '}');
    jout_close(&j, '}');
    return buf_take(&out);
}

/* The argv and the script hide what the environment says to be secret. Without such a value
 * they stay as they are: words such as data.prompt_key=… only look like a secret's. */
static void learn_secrets(const struct launchplan *p, const struct made *m, struct mask *ret)
{
    struct pairs open = {0}, secret = {0};
    for (size_t i = 0; i < m->hidden.n; i++)
        mask_add(ret, m->hidden.v[i]);
    mask_env(ret, &m->cmd.env, &p->secrets, &open, &secret);
    pairs_release(&open);
    pairs_wipe(&secret);
}

static char *argv_text(const struct launchplan *p, const struct made *m)
{
    struct buf out = BUF_INIT(1 << 19);
    struct jout j = jout_begin(&out);
    struct mask mask = {0};
    struct strv argv = {0};
    learn_secrets(p, m, &mask);
    if (mask.values.n)
        mask_argv(&mask, &m->cmd.argv, &argv);
    const struct strv *shown = mask.values.n ? &argv : &m->cmd.argv;
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < shown->n; i++)
        jout_str(&j, NULL, shown->v[i]);
    jout_close(&j, ']');
    strv_release(&argv);
    mask_release(&mask);
    return buf_take(&out);
}

static char *command_text(const struct launchplan *p, const struct made *m)
{
    struct pairs resources = {0};
    char amount[32];
    for (size_t i = 0; i < p->resources.n; i++) {
        text_printf(amount, "%g", p->resources.v[i].amount);
        pairs_set(&resources, p->resources.v[i].name, amount);
    }
    struct cmdline_submit how = {.address = p->settings->ray_address,
                                 .ray_id = p->ray_id,
                                 .cpus = p->demand.driver_cpus,
                                 .gpus = p->demand.driver_gpus,
                                 .resources = &resources,
                                 .py_executable = m->spec.py_executable,
                                 .script = m->script};
    struct buf out = BUF_INIT(1 << 20);
    if (cmdline_submit_text(&m->cmd, &how, &out) < 0)
        buf_reset(&out); /* too long to be typed: the payload file says the same */
    (void)buf_addc(&out, '\n');
    pairs_release(&resources);
    return buf_take(&out);
}

/* ---- the directory ---- */

static const char PYTHONPATH_TAIL[] = ":${PYTHONPATH}";

/* What goes in front of the worker's own PYTHONPATH; taken out of env. */
static char *pythonpath_prefix(const struct pairs *env)
{
    const char *value = pairs_find(env, "PYTHONPATH");
    if (!value)
        return NULL;
    size_t n = strlen(value), tail = strlen(PYTHONPATH_TAIL);
    return xstrndup(value, str_ends(value, PYTHONPATH_TAIL) ? n - tail : n);
}

static int make_links(const char *root, const struct cmdline *c, struct err *err)
{
    int r = 0;
    for (size_t i = 0; i < c->dirs.n && r == 0; i++)
        r = rootfile_mkdirs(root, c->dirs.v[i], 0777, err);
    for (size_t i = 0; i < c->files.n && r == 0; i++)
        r = rootfile_write(root, c->files.v[i].key, 0, c->files.v[i].value,
                           strlen(c->files.v[i].value), 0644, 0, err);
    for (size_t i = 0; i < c->links.n && r == 0; i++)
        r = rootfile_symlink(root, c->links.v[i].key, 0777, c->links.v[i].value, err);
    return r;
}

/* What submit_cmd.txt names where a command line cannot be typed: the argv as a script. */
static int write_script(const struct launchplan *p, const struct made *m, struct err *err)
{
    struct buf out = BUF_INIT(1 << 20), shown = BUF_INIT(2 << 20);
    struct mask mask = {0};
    int r = cmdline_script_text(&m->cmd, m->attempt_dir, &out);
    learn_secrets(p, m, &mask);
    if (r == 0 && mask.values.n)
        mask_text(&mask, buf_str(&out), &shown);
    else if (r == 0)
        (void)buf_add(&shown, out.data, out.len); /* it is larger */
    r = r < 0 || shown.failed
            ? message_refuse(err, ERR_BAD_SPEC, "command_line_long", MESSAGE_NO_ARGS)
            : rootfile_write(p->settings->shared_root, m->script, 0, shown.data, shown.len, 0755, 0,
                             err);
    mask_release(&mask);
    buf_release(&shown);
    buf_release(&out);
    return r;
}

static int write_dir(const struct launchplan *p, const struct made *m, struct err *err)
{
    _cleanup_(freep) char *payload = payload_text(p);
    _cleanup_(freep) char *command = command_text(p, m);
    _cleanup_(freep) char *prefix = pythonpath_prefix(&m->cmd.env);
    struct pairs env = {0};
    for (size_t i = 0; i < m->cmd.env.n; i++)
        if (strcmp(m->cmd.env.v[i].key, "PYTHONPATH") != 0)
            pairs_set(&env, m->cmd.env.v[i].key, m->cmd.env.v[i].value);
    if (p->lease) /* of this attempt alone: submit_cmd.txt does not have it */
        pairs_set(&env, LEASE_ENV, p->lease);
    pairs_set(&env, PROOF_ENV, p->proof);
    if (p->driver_node)
        pairs_set(&env, DRIVER_NODE_ENV, p->driver_node);
    struct fsroot_attempt a = {.root = p->settings->shared_root,
                               .job = p->id,
                               .attempt = p->k,
                               .argv = &m->cmd.argv,
                               .cwd = m->cmd.cwd ? m->cmd.cwd : m->attempt_dir,
                               .env = &env,
                               .secrets = &p->secrets,
                               .hidden = &m->hidden,
                               .ray_id = p->ray_id,
                               .pythonpath_prefix = prefix,
                               .stop_grace = m->spec.stop_grace,
                               .logs = &p->settings->logs,
                               .ray_config = p->settings->text,
                               .jobspec = p->spec,
                               .submit_cmd = command,
                               .submit_payload = payload};
    int r = fsroot_attempt_write(&a, err);
    pairs_release(&env);
    if (r == 0)
        r = write_script(p, m, err);
    if (r == 0)
        r = make_links(p->settings->shared_root, &m->cmd, err);
    if (r == 0)
        r = fsroot_debug_write(p->settings->shared_root, p->id, p->k, "ray_status_pre.txt",
                               str_or(p->status_text, ""), err);
    return r;
}

static struct made launchplan_begin(const struct launchplan *p)
{
    struct made m = {.job_dir = fsroot_job_dir(p->settings->shared_root, p->id),
                     .attempt_dir = fsroot_attempt_dir(p->settings->shared_root, p->id, p->k, NULL),
                     .hook_dir = fsroot_hook_dir(p->settings->shared_root),
                     .uroot = jobspec_user_root(p->settings, p->user)};
    m.script = xasprintf("%s/run.sh", m.attempt_dir);
    return m;
}

int launchplan_preview(struct launchplan *p, struct err *err)
{
    struct made m = launchplan_begin(p);
    freep(&p->argv);
    freep(&p->verl);
    int r = launchplan_read_spec(p, &m, err);
    if (r == 0)
        r = make_cmdline(p, &m, err);
    if (r == 0)
        p->argv = argv_text(p, &m);
    made_release(&m);
    return r;
}

/* The newest checkpoint that can be read whole. Not once the attempt has begun: it writes there. */
static int find_own_checkpoint(struct launchplan *p, const struct made *m, struct err *err)
{
    _cleanup_(freep) char *log = xasprintf("%s/logs/driver.log", m->attempt_dir);
    bool has_begun = true;
    bool resumes = p->k > 1 && workload_trains((enum workload)m->spec.workload) &&
                   m->spec.resume_mode != SPEC_RESUME_NEVER && !m->spec.checkpoint_none;
    int r = resumes ? rootfile_look_for(p->settings->shared_root, log, &has_begun, err) : 0;
    if (r < 0 || has_begun)
        return r;
    return ckpt_settle(p->settings->shared_root, p->id, &p->known, &p->resume_step, &p->torn, err);
}

int launchplan_make(struct launchplan *p, struct err *err)
{
    struct made m = launchplan_begin(p);
    int r = fsroot_user_prepare(p->settings->shared_root, p->user, err);
    if (r == 0) {
        r = code_verify(p->settings->shared_root, p->snapshots, err);
        p->code_changed = r == ERR_REFUSED;
    }
    if (r == 0)
        r = launchplan_read_spec(p, &m, err);
    if (r == 0)
        r = find_own_checkpoint(p, &m, err);
    if (r == 0)
        r = make_cmdline(p, &m, err);
    if (r == 0)
        r = proof_text(p, &m.spec, &p->proof, err);
    if (r == 0) {
        struct buf entry = BUF_INIT(16 << 10);
        fsroot_entrypoint(&entry, p->settings->shared_root, p->id, p->k);
        p->entrypoint = buf_take(&entry);
        p->ray_id = job_ray_id(p->id, p->k);
        split_env(p, &m);
        fill_resources(p, &m);
        p->py_executable = xstrdup(m.spec.py_executable);
        mark_put(&p->metadata, p->instance, p->id, p->k, p->user);
        p->argv = argv_text(p, &m);
        if (p->is_new)
            r = fsroot_job_make(p->settings->shared_root, p->id, err);
        p->made = r == 0;
    }
    if (r == 0)
        r = write_dir(p, &m, err);
    made_release(&m);
    return r;
}

int launchplan_for_trial(const struct launchplan *job,
                         launchplan_trial_f make,
                         void *arg,
                         struct err *err)
{
    struct launchplan p = {.settings = job->settings,
                           .spec = xstrdup(job->spec),
                           .id = xstrdup("trial"),
                           .user = xstrdup(job->user),
                           .inputs = xstrdup(job->inputs),
                           .snapshots = xstrdup(job->snapshots),
                           .other_step = 1, /* any step composes as the one that it will be */
                           .k = 1};
    struct made m = launchplan_begin(&p);
    int r = launchplan_read_spec(&p, &m, err);
    if (r == 0)
        r = make_cmdline(&p, &m, err);
    if (r == 0) {
        struct mask mask = {0};
        struct pairs open = {0}, secret = {0};
        struct strv argv = {0};
        for (size_t i = 0; i < m.hidden.n; i++)
            mask_add(&mask, m.hidden.v[i]);
        mask_env(&mask, &m.cmd.env, &job->secrets, &open, &secret);
        mask_argv(&mask, &m.cmd.argv, &argv);
        struct launchplan_trial t = {.spec = &m.spec,
                                     .verl = m.has_verl ? p.verl : NULL,
                                     .argv = &argv,
                                     .env = &open,
                                     .secret = &secret};
        r = make(&t, arg, err);
        strv_release(&argv);
        pairs_wipe(&secret);
        pairs_release(&open);
        mask_release(&mask);
    }
    made_release(&m);
    launchplan_release(&p);
    return r;
}
