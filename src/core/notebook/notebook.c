/* SPDX-License-Identifier: Apache-2.0 */
/* notebook.c - the JobSpec of a lease, and the record of its program read; see notebook.h. */
#include "core/notebook/notebook.h"

#include <errno.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/job/access.h"

enum { GPUS_MOST = 8, QUIET_MOST_S = 365 * 86400 };

enum {
    OWN = FIELD_STORED | FIELD_SHOWN,
    ASKED = FIELD_ASKED | FIELD_STORED | FIELD_SHOWN,
    LISTED = FIELD_LISTED
};
#define ROW(key, ftype, ...) FIELD_AT(notebook, #key, ftype, key, __VA_ARGS__)
static const struct field notebook_rows[] = {
    ROW(name,
        FIELD_STR,
        .dflt = "main",
        .flags = ASKED | LISTED | FIELD_ALWAYS,
        .doc = "name of the notebook among its owner's"),
    ROW(owner,
        FIELD_STR,
        .flags = OWN | LISTED | FIELD_ALWAYS,
        .doc = "user who alone may open it"),
    ROW(project,
        FIELD_STR,
        .dflt = ACCESS_DEFAULT_PROJECT,
        .flags = ASKED | LISTED | FIELD_ALWAYS,
        .doc = "project whose quota it counts for"),
    ROW(snapshot,
        FIELD_STR,
        .flags = ASKED | LISTED,
        .doc = "NAME@VERSION, importable in its kernels"),
    ROW(python,
        FIELD_STR,
        .flags = ASKED,
        .doc = "an interpreter that has JupyterLab; the machine's own if absent"),
    ROW(gpus,
        FIELD_REAL,
        .min = 0,
        .max = GPUS_MOST,
        .flags = ASKED | LISTED,
        .doc = "0, whole ones, or a part of one where the node shares its GPUs"),
    ROW(cpus, FIELD_REAL, .dflt = "1", .min = 0.1, .max = 1024, .flags = ASKED | LISTED),
    FIELD_AT(notebook,
             "memory",
             FIELD_SIZE,
             memory_bytes,
             .flags = ASKED,
             .doc = "memory that the queue reserves; nothing if absent"),
    ROW(pool,
        FIELD_STRV,
        .flags = ASKED | FIELD_ALWAYS,
        .doc = "pool in which it may run; any if absent"),
    ROW(secrets,
        FIELD_STRV,
        .flags = ASKED | FIELD_ALWAYS,
        .doc = "names of the owner's secrets that its kernels have in their environment"),
    ROW(priority, FIELD_INT, .dflt = "50", .min = 0, .max = 100, .flags = ASKED),
    ROW(idle,
        FIELD_SPAN,
        .dflt = "1h",
        .min = 0,
        .max = 30 * 86400.0,
        .flags = ASKED,
        .doc = "stopped after so long in which kernels, terminals and GPUs did nothing; 0: never"),
    ROW(wanted, FIELD_BOOL, .flags = FIELD_STORED),
    ROW(failed, FIELD_BOOL, .flags = FIELD_STORED),
    ROW(job, FIELD_STR, .flags = OWN | LISTED, .doc = "job that is its lease, and has its log"),
    ROW(keep_until, FIELD_TIME, .flags = OWN, .doc = "time before which it is not stopped as idle"),
    ROW(created_at, FIELD_TIME, .flags = OWN | LISTED),
    ROW(changed_at, FIELD_TIME, .flags = OWN),
    ROW(code, FIELD_STR, .flags = FIELD_STORED),
    ROW(text, FIELD_STR, .flags = FIELD_STORED),
    ROW(interrupted_code, FIELD_STR, .flags = FIELD_STORED),
    ROW(interrupted_text, FIELD_STR, .flags = FIELD_STORED),
    ROW(interrupted_at,
        FIELD_TIME,
        .flags = OWN | LISTED,
        .doc =
            "time at which its machine was lost or taken back; null: it was not since its start"),
    ROW(told_attempt, FIELD_INT, .flags = FIELD_STORED),
};
const struct field_table notebook_table = FIELD_TABLE("Notebook", notebook_rows, notebook);

#define X(e, word) [NOTEBOOK_PHASE_##e] = (word),
const char *const notebook_phase_words[NOTEBOOK_PHASES + 1] = {NOTEBOOK_PHASE_TABLE(X) NULL};
#undef X

static bool notebook_name_is_good(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n && !name[n] && n <= NOTEBOOK_NAME_MAX && *name != '-';
}

int notebook_check(const struct notebook *n, struct err *err)
{
    if (!n->name || !notebook_name_is_good(n->name))
        return message_refuse(err, ERR_BAD_SPEC, "notebook_name",
                              MESSAGE_ARGS(MESSAGE_STR("name", str_or(n->name, "")),
                                           MESSAGE_NUM("most", NOTEBOOK_NAME_MAX)));
    if (n->python && *n->python != '/')
        return message_refuse(err, ERR_BAD_SPEC, "notebook_python", MESSAGE_NO_ARGS);
    return 0;
}

char *notebook_base(const struct notebook *n)
{
    return xasprintf("/n/%s/%s", n->owner, n->name);
}

static void notebook_put_texts(struct jout *j, const char *key, const struct strv *v)
{
    if (!v->n)
        return;
    jout_open(j, key, '[');
    for (size_t i = 0; i < v->n; i++)
        jout_str(j, NULL, v->v[i]);
    jout_close(j, ']');
}

static void notebook_put_option(struct jout *j, const char *option, const char *value)
{
    if (!value)
        return;
    jout_str(j, NULL, option);
    jout_str(j, NULL, value);
}

static void notebook_put_command(const struct notebook *n,
                                 const struct notebook_place *at,
                                 struct jout *j)
{
    _cleanup_(freep) char *base = notebook_base(n);
    _cleanup_(freep) char *ports = xasprintf("%d-%d", at->ports->first, at->ports->last);
    const char *const words[] = {str_or(n->python, "python3"),
                                 at->tool,
                                 "--name",
                                 n->name,
                                 "--base",
                                 base,
                                 "--home",
                                 at->home,
                                 "--ports",
                                 ports};
    jout_open(j, "entrypoint", '[');
    for (size_t i = 0; i < array_len(words); i++)
        jout_str(j, NULL, words[i]);
    notebook_put_option(j, "--pip-index-url", at->pip_index_url);
    notebook_put_option(j, "--pip-trusted-host", at->pip_trusted_host);
    jout_close(j, ']');
}

void notebook_write_job(const struct notebook *n, const struct notebook_place *at, struct buf *out)
{
    struct jout j = jout_begin(out);
    _cleanup_(freep) char *name = xasprintf("notebook %s", n->name);
    jout_open(&j, NULL, '{');
    jout_str(&j, "workload", "notebook");
    jout_str(&j, "name", name);
    jout_str(&j, "project", n->project);
    jout_int(&j, "priority", n->priority);
    notebook_put_texts(&j, "pool", &n->pool);
    notebook_put_texts(&j, "secrets", &n->secrets);
    jout_int(&j, "nnodes", 1);
    jout_real(&j, "n_gpus_per_node", n->gpus);
    jout_real(&j, "n_cpus_per_node", n->cpus);
    if (n->memory_bytes)
        jout_int(&j, "memory_per_node", (int64_t)n->memory_bytes);
    jout_int(&j, "entrypoint_num_cpus", 0);
    if (n->snapshot)
        jout_str(&j, "working_dir", n->snapshot);
    notebook_put_command(n, at, &j);
    jout_str(&j, "stop_grace", "30s");
    jout_open(&j, "restart", '{'); /* it comes back after a preemption or a lost machine */
    jout_int(&j, "max", 1000);
    jout_str(&j, "backoff", "5s");
    jout_close(&j, '}');
    jout_close(&j, '}');
}

/* A record without the word is of one that is ready. NOTEBOOK_PHASE_NONE: its program says no such
 * word. */
static enum notebook_phase notebook_read_phase(const json_t *record)
{
    const char *word = json_get_str(record, "phase", NULL);
    if (!word)
        return NOTEBOOK_PHASE_READY;
    for (int p = NOTEBOOK_PHASE_ENVIRONMENT; p < NOTEBOOK_PHASES; p++)
        if (str_eq(word, notebook_phase_words[p]))
            return (enum notebook_phase)p;
    return NOTEBOOK_PHASE_NONE;
}

int notebook_read_report(const char *text,
                         size_t len,
                         const struct ports_range *ports,
                         struct notebook_report *ret,
                         struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (json_parse(text, len, NOTEBOOK_REPORT_MAX, &o, err) < 0)
        return -EBADMSG;
    const enum notebook_phase phase = notebook_read_phase(o);
    const bool ready = phase == NOTEBOOK_PHASE_READY;
    const struct notebook_report r = {.attempt = json_get_int(o, "attempt", 0),
                                      .phase = phase,
                                      .port = ready ? json_get_int(o, "port", 0) : 0,
                                      .seq = json_get_int(o, "seq", 0),
                                      .kernels = json_get_int(o, "kernels", 0),
                                      .terminals = json_get_int(o, "terminals", 0),
                                      .is_busy = json_is_true(json_object_get(o, "busy"))};
    double quiet = json_get_real(o, "quiet_s", 0);
    if (phase == NOTEBOOK_PHASE_NONE)
        return err_set(err, -EBADMSG, "its phase is none that a notebook's program knows");
    if (ready && (r.port < ports->first || r.port > ports->last))
        return err_set(err, -EBADMSG, "port %lld is none of a notebook's", (long long)r.port);
    *ret = r;
    ret->quiet = quiet > 0 && quiet < QUIET_MOST_S ? (usec_t)(quiet * (double)USEC_SEC) : 0;
    return 0;
}
