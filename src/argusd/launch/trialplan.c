/* SPDX-License-Identifier: Apache-2.0 */
/* trialplan.c - see trialplan.h.
 *
 * The command line is made for a job called "trial", so that two jobs that ask the same ask
 * in the same words: the hash of the question, with what the files look like, names the
 * answer in the cache. Only passes are kept there, and not for long: what is installed on the
 * workers is not in the hash. */
#define _GNU_SOURCE
#include "argusd/launch/trialplan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/catalogue/message_rows.h"
#include "base/digest/hash.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/install.h"
#include "fsroot/attempt/jobdir.h"
#include "fsroot/attempt/secrets.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/root.h"
#include "fsroot/tree/rootfile.h"

enum {
    ASK_MAX = 1 << 20,
    TRIAL_SECONDS = 120,
    REWARD_SECONDS = 15,
    CACHE_DAYS = 1,
    CACHE_MAX = 20000,
    MASKED_MIN = 8 /* as in the shepherd's veil */
};
static const int64_t REWARD_BYTES = (int64_t)8 << 30;

static char *trial_dir(const struct trialplan *p)
{
    _cleanup_(freep) char *job = fsroot_job_dir(p->settings->shared_root, p->id);
    return p->dir ? xstrdup(p->dir) : xasprintf("%s/" JOBDIR_TRIAL, job);
}

static char *cache_path(const struct trialplan *p)
{
    return xasprintf("%s/trials/%s.json", p->settings->state_dir, p->hash);
}

void trialplan_release(struct trialplan *p)
{
    char *texts[] = {p->spec, p->id,         p->user,          p->inputs, p->snapshots,
                     p->dir,  p->entrypoint, p->py_executable, p->ray_id};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    pairs_release(&p->env);
    pairs_wipe(&p->secrets);
    mask_release(&p->mask);
    trial_result_release(&p->result);
}

/* ---- the question ---- */

static void trialplan_put_list(struct jout *j, const char *key, const struct strv *v)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < v->n; i++)
        jout_str(j, NULL, v->v[i]);
    jout_close(j, ']');
}

static void put_reward(struct jout *j, const struct spec *s)
{
    if (!s->reward_fn_path) {
        jout_null(j, "reward");
        return;
    }
    jout_open(j, "reward", '{');
    jout_str(j, "file", s->reward_file);
    jout_str(j, "module", s->reward_module);
    jout_str(j, "function", s->reward_function);
    jout_close(j, '}');
}

static void put_question(struct jout *j, const struct launchplan_trial *t)
{
    const struct spec *s = t->spec;
    jout_str(j, "workload", workload_to_string((enum workload)s->workload));
    jout_str(j, "code_path", s->code_path);
    jout_str(j, "verl", t->verl);
    trialplan_put_list(j, "argv", t->argv);
    trialplan_put_list(j, "train_file", &s->train_file);
    trialplan_put_list(j, "val_file", &s->val_file);
    put_reward(j, s);
    jout_int(j, "seconds", TRIAL_SECONDS);
    jout_int(j, "reward_seconds", REWARD_SECONDS);
    jout_int(j, "reward_bytes", REWARD_BYTES);
}

/* ---- its hash ---- */

/* A descriptor for what a path of the spec names on the root. */
static int open_named(const struct rootdir *top, const char *path, int open_flags)
{
    const char *below = top->path ? rootdir_below(top->path, path) : NULL;
    return below ? rootdir_open_followed(top, below, open_flags, NULL) : -ENOENT;
}

static void add_look(struct hash_running *h, const struct rootdir *top, const char *path)
{
    struct stat st;
    int64_t look[3] = {-1};
    if (!path)
        return;
    _cleanup_(closep) int fd = open_named(top, path, O_PATH);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        look[0] = st.st_size;
        look[1] = (int64_t)st.st_mtim.tv_sec;
        look[2] = st.st_mtim.tv_nsec;
    }
    hash_add(h, path, strlen(path) + 1);
    hash_add(h, look, sizeof(look));
}

static void add_content(struct hash_running *h, const struct rootdir *top, const char *path)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(8 << 20);
    add_look(h, top, path);
    _cleanup_(closep) int fd = path ? open_named(top, path, O_RDONLY) : -1;
    if (fd >= 0 && file_read_open(fd, path, &text, NULL) == 0)
        hash_add(h, text.data, text.len);
}

static void add_looks(struct hash_running *h, const struct rootdir *top, const struct strv *paths)
{
    for (size_t i = 0; i < paths->n; i++)
        add_look(h, top, paths->v[i]);
}

/* So that a result is that of these values and of this user, and no value can be guessed from a
 * hash that others see. */
static void add_secrets(struct hash_running *h,
                        const struct trialplan *p,
                        const struct pairs *secret)
{
    unsigned char bytes[HASH_BYTES];
    struct hash_running own;
    if (!secret->n)
        return;
    hash_begin(&own);
    hash_add(&own, p->key, sizeof(p->key));
    hash_add(&own, p->user, strlen(p->user) + 1);
    for (size_t i = 0; i < secret->n; i++) {
        hash_add(&own, secret->v[i].key, strlen(secret->v[i].key) + 1);
        hash_add(&own, secret->v[i].value, strlen(secret->v[i].value) + 1);
    }
    hash_end(&own, bytes);
    hash_add(h, bytes, sizeof(bytes));
}

static void make_hash(struct trialplan *p, const char *question, const struct launchplan_trial *t)
{
    unsigned char bytes[HASH_BYTES];
    struct hash_running h;
    const struct spec *s = t->spec;
    hash_begin(&h);
    hash_add(&h, question, strlen(question) + 1);
    hash_add(&h, p->user, strlen(p->user) + 1); /* what one's jobs write speaks for no other user */
    for (size_t i = 0; i < p->env.n; i++) {
        hash_add(&h, p->env.v[i].key, strlen(p->env.v[i].key) + 1);
        hash_add(&h, p->env.v[i].value, strlen(p->env.v[i].value) + 1);
    }
    add_secrets(&h, p, t->secret);
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    (void)!rootdir_open(p->settings->shared_root, "", 0, &top, NULL); /* then nothing is there */
    add_looks(&h, &top, &s->train_file);
    add_looks(&h, &top, &s->val_file);
    add_content(&h, &top, s->reward_file);
    _cleanup_(freep) char *verl = s->code_path ? xasprintf("%s/verl", s->code_path) : NULL;
    add_look(&h, &top, verl);
    add_look(&h, &top, s->working_dir);
    add_looks(&h, &top, &s->extra_pythonpath);
    add_look(&h, &top, s->py_executable);
    hash_end(&h, bytes);
    (void)str_hex(bytes, sizeof(bytes), p->hash);
}

/* ---- making ---- */

static void keep_env(struct trialplan *p, const struct pairs *env)
{
    for (size_t i = 0; i < env->n; i++)
        if (!str_starts(env->v[i].key, "ARGUS_"))
            pairs_set(&p->env, env->v[i].key, env->v[i].value);
}

static void make_entrypoint(struct trialplan *p, const char *dir)
{
    struct buf out = BUF_INIT(16 << 10);
    _cleanup_(freep) char *lib = fsroot_lib_dir(p->settings->shared_root);
    _cleanup_(freep) char *program = xasprintf("%s/argus_trial.py", lib);
    const char *words[] = {str_or(p->py_executable, "python3"), program, dir};
    (void)buf_adds(&out, "exec"); /* paths: they fit */
    for (size_t i = 0; i < array_len(words); i++) {
        (void)buf_addc(&out, ' ');
        (void)str_shell_quote(&out, words[i]);
    }
    p->entrypoint = buf_take(&out);
}

/* What its program writes into its log: the catalogue's sentences in English, by code. */
static void put_says(struct jout *j)
{
    const struct message_row *row = message_trial.rows, *end = row + message_trial.n;
    jout_open(j, "says", '{');
    while (row < end) {
        const char *code = row->code;
        jout_open(j, code, '[');
        for (; row < end && str_eq(row->code, code); row++)
            jout_str(j, NULL, row->said[MESSAGE_ENGLISH]);
        jout_close(j, ']');
    }
    jout_close(j, '}');
}

/* The beginning of the ask that is no question: whose it is, where its secrets are, and the words
 * for what is found. */
static char *ask_head(const struct trialplan *p, const struct pairs *secret)
{
    struct buf out = BUF_INIT(32 << 10);
    struct jout j = jout_begin(&out);
    _cleanup_(freep) char *path = fsroot_secrets_path(p->settings->shared_root, p->ray_id);
    jout_open(&j, NULL, '{');
    jout_str(&j, "hash", p->hash);
    if (secret->n)
        jout_str(&j, "secrets", path);
    put_says(&j);
    return buf_take(&out); /* a path: it fits */
}

/* One that is there already as well: the job's user may be another one. */
static int open_trial_dir(const char *root, const char *path, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    int r = rootdir_open(root, path, 0777, &dir, err);
    if (r == 0 && fchmod(dir.fd, 0777) < 0)
        r = err_set(err, -errno, "'%s' cannot be opened to its user: %s", path, strerror(errno));
    return r;
}

static int write_ask(struct trialplan *p,
                     const char *question,
                     const char *dir,
                     const struct pairs *secret,
                     struct err *err)
{
    const char *root = p->settings->shared_root;
    _cleanup_(freep) char *path = xasprintf("%s/ask.json", dir);
    _cleanup_(freep) char *head = ask_head(p, secret);
    _cleanup_(freep) char *text = xasprintf("%s,%s", head, question + 1);
    int r = fsroot_check_mounted(root, err);
    if (r == 0 && p->is_new) {
        r = fsroot_job_make(root, p->id, err);
        p->made = r == 0;
    }
    if (r == 0)
        r = open_trial_dir(root, dir, err);
    if (r == 0 && secret->n)
        r = fsroot_secrets_write(root, p->ray_id, secret, err);
    return r < 0 ? r : rootfile_write(root, path, 0, text, strlen(text), 0644, 0, err);
}

/* Its program masks; this is for what a reward writes in its place. What was read is told masked,
 * and lies there masked from now on. */
static int mask_result(const struct trialplan *p,
                       const char *path,
                       struct buf *text,
                       struct err *err)
{
    struct buf shown = BUF_INIT(2 * TRIAL_RESULT_MAX);
    if (!p->mask.values.n)
        return 0;
    mask_json(&p->mask, buf_str(text), &shown);
    bool same = shown.len == text->len && !memcmp(shown.data, text->data, text->len);
    int r = same           ? 0
            : shown.failed ? err_set(err, -EMSGSIZE, "the trial's result is too large")
                           : rootfile_write(p->settings->shared_root, path, 0, shown.data,
                                            shown.len, 0644, 0, err);
    if (!same && r == 0) {
        buf_release(text);
        *text = shown;
        return 0;
    }
    buf_release(&shown);
    return r;
}

static int trialplan_read_result(struct trialplan *p,
                                 const char *path,
                                 struct buf *text,
                                 struct err *err)
{
    int r = rootfile_read(p->settings->shared_root, path, text, err);
    if (r == -ENOENT)
        return 0;
    if (r == 0)
        r = mask_result(p, path, text, err);
    if (r == 0)
        r = trial_read(buf_str(text), text->len, p->hash, &p->result, err);
    return r < 0 ? r : 1;
}

static usec_t age_of(const struct stat *st)
{
    usec_t now = clock_wall(), at = (usec_t)st->st_mtim.tv_sec * USEC_SEC;
    return now > at ? now - at : 0;
}

static bool passed_before(struct trialplan *p)
{
    const char *own = p->settings->state_dir;
    _cleanup_(freep) char *path = cache_path(p);
    _cleanup_(buf_release) struct buf text = BUF_INIT(TRIAL_RESULT_MAX);
    struct stat st;
    if (rootfile_look(own, path, &st) < 0 || age_of(&st) > CACHE_DAYS * USEC_DAY ||
        rootfile_read(own, path, &text, NULL) < 0)
        return false;
    if (trial_read(buf_str(&text), text.len, p->hash, &p->result, NULL) == 0 && p->result.ok)
        return true;
    trial_result_release(&p->result);
    return false;
}

/* A shorter one stands in any text. */
static void learn(struct trialplan *p, const struct pairs *secret)
{
    for (size_t i = 0; i < secret->n; i++)
        if (strlen(secret->v[i].value) >= MASKED_MIN)
            mask_add(&p->mask, secret->v[i].value);
}

/* Makes the plan of a spec that holds what the job will really read, see spec_final(). */
static int trialplan_make_final(struct trialplan *p,
                                const struct launchplan_trial *t,
                                struct err *err)
{
    struct buf out = BUF_INIT(ASK_MAX);
    struct jout j = jout_begin(&out);
    _cleanup_(freep) char *dir = trial_dir(p);
    keep_env(p, t->env);
    learn(p, t->secret);
    p->py_executable = xstrdup(t->spec->py_executable);
    jout_open(&j, NULL, '{');
    put_question(&j, t);
    jout_close(&j, '}');
    int r =
        out.failed ? message_refuse(err, ERR_BAD_SPEC, "command_line_long", MESSAGE_NO_ARGS) : 0;
    if (r == 0) {
        make_hash(p, buf_str(&out), t);
        make_entrypoint(p, dir);
        p->is_over = passed_before(p) || (!p->is_new && trialplan_look(p, err) > 0);
        if (!p->is_over)
            r = write_ask(p, buf_str(&out), dir, t->secret, err);
    }
    buf_release(&out);
    return r;
}

/* Called by launchplan with what only it can make. */
static int make(const struct launchplan_trial *t, void *arg, struct err *err)
{
    struct spec held;
    unsigned replaced; /* all of it is tried alike */
    struct launchplan_trial own = *t;
    own.spec = spec_final(t->spec, &held, &replaced);
    int r = trialplan_make_final(arg, &own, err);
    spec_release(&held);
    return r;
}

int trialplan_make(struct trialplan *p, struct err *err)
{
    struct launchplan job = {.settings = p->settings,
                             .spec = p->spec,
                             .user = p->user,
                             .inputs = p->inputs,
                             .snapshots = p->snapshots,
                             .secrets = p->secrets}; /* lent */
    return launchplan_for_trial(&job, make, p, err);
}

/* ---- the answer ---- */

/* A directory is of a dry run that a crash cut short. What fails the next one tries again. */
static void remove_one(const struct rootdir *dir, const char *name)
{
    struct err err = {0};
    if (dirtree_remove_at(dir->fd, name, &err) < 0)
        log_debug("trial", "%s", err.text);
}

static void remove_old(const struct rootdir *dir)
{
    DIR *d = NULL;
    if (rootdir_list(dir, &d, NULL) < 0)
        return;
    struct dirent *e;
    for (int n = 0; n < CACHE_MAX && (e = readdir(d)); n++) {
        struct stat st;
        if (e->d_name[0] != '.' && rootdir_look(dir, e->d_name, &st) == 0 &&
            age_of(&st) > CACHE_DAYS * USEC_DAY)
            remove_one(dir, e->d_name);
    }
    (void)closedir(d); /* it was only read */
}

/* A cache: whatever fails here costs one more trial. It holds what was judged, and lies where no
 * job can write. */
static void trialplan_remember(const struct trialplan *p, const struct buf *text)
{
    _cleanup_(freep) char *to = xasprintf("%s.json", p->hash);
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE, dry = ROOTDIR_NONE;
    struct err err = {0};
    bool is_known = true;
    if (rootdir_open(p->settings->shared_root, "argus/trials", 0, &dry, NULL) == 0)
        remove_old(&dry);
    if (rootdir_open(p->settings->state_dir, "trials", 0700, &dir, NULL) < 0 ||
        rootdir_look_for(&dir, to, &is_known, NULL) < 0 || is_known)
        return;
    remove_old(&dir);
    if (rootdir_write(&dir, to, text->data, text->len, 0600, 0, &err) < 0)
        log_debug("trial", "%s", err.text);
}

int trialplan_look(struct trialplan *p, struct err *err)
{
    _cleanup_(freep) char *dir = trial_dir(p);
    _cleanup_(freep) char *path = xasprintf("%s/result.json", dir);
    _cleanup_(buf_release) struct buf text = BUF_INIT(TRIAL_RESULT_MAX);
    int r = trialplan_read_result(p, path, &text, err);
    if (r > 0 && p->result.ok)
        trialplan_remember(p, &text);
    return r;
}

void trialplan_mask(const struct trialplan *p, const char *text, char *ret, size_t size)
{
    _cleanup_(buf_release) struct buf shown = BUF_INIT(TRIAL_RESULT_MAX);
    mask_text(&p->mask, text, &shown);
    text_copy_to(ret, size, shown.failed ? MASK_STARS : buf_str(&shown));
}
