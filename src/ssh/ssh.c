/* SPDX-License-Identifier: Apache-2.0 */
/* ssh.c - one call: a child, its script, its mark, its verdict; see ssh.h.
 *
 * The script is wrapped (command_script) so that a random mark stands before what it prints and,
 * with its exit status, behind. Only output with both marks is an answer: a login shell's noise
 * comes before the first one, and a broken connection leaves the second one out. Exit status
 * 255 says nothing by itself, since a script may end with it too. */
#include "ssh/ssh.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "base/text.h"
#include "ssh/command.h"
#include "ssh/keep.h"
#include "ssh/later.h"
#include "ssh/run.h"
#include "ssh/trouble.h"

enum { DEFAULT_LIMIT_S = 30, MASTER_LIMIT_S = 5 };
static_assert((int)SSH_OUT_MAX < (int)RUN_OUT_MAX, "there is room for what a login shell prints");

struct ssh_call {
    uv_loop_t *loop;
    struct ssh_target t; /* its texts are these */
    struct strv texts;
    struct run *run;
    struct later *refusal; /* of a target that cannot be used */
    struct err refused;
    char mark[SSH_MARK_MAX], pinned[SSH_KEY_MAX];
    size_t searched; /* of the output, for the mark */
    usec_t limit, heard_after;
    uint64_t called_at; /* of the loop's clock, ms */
    ssh_f cb;
    void *arg;
};

/* ---- targets that live on ---- */

static void copy_target(struct ssh_call *c, const struct ssh_target *src)
{
    c->t = *src;
    c->t.name = keep(&c->texts, src->name);
    c->t.host = keep(&c->texts, src->host);
    c->t.user = keep(&c->texts, src->user);
    c->t.identity_file = keep(&c->texts, src->identity_file);
    c->t.proxy_jump = keep(&c->texts, src->proxy_jump);
    c->t.config_file = keep(&c->texts, src->config_file);
    c->t.known_hosts = keep(&c->texts, src->known_hosts);
    c->t.control_dir = keep(&c->texts, src->control_dir);
}

static void ssh_destroy(struct ssh_call *c)
{
    strv_release(&c->texts);
    free(c);
}

/* ---- the output ---- */

/* Behind "\n<mark>\n"; NULL while it is not there. */
static const char *find_begin(const struct ssh_call *c, const struct buf *out, size_t from)
{
    char line[SSH_MARK_MAX + 3];
    int n = snprintf(line, sizeof(line), "\n%s\n", c->mark);
    const char *at =
        out->len > from ? memmem(out->data + from, out->len - from, line, (size_t)n) : NULL;
    return at ? at + n : NULL;
}

/* "\n<mark> <status>\n" at the very end. */
static bool find_end(const struct ssh_call *c,
                     const char *p,
                     size_t len,
                     size_t *ret_len,
                     int *status)
{
    char line[SSH_MARK_MAX + 3];
    int n = snprintf(line, sizeof(line), "\n%s ", c->mark);
    const char *at = memmem(p, len, line, (size_t)n);
    if (!at)
        return false;
    char number[8] = "";
    const char *digits = at + n;
    size_t left = len - (size_t)(digits - p), k = strspn(digits, "0123456789");
    int64_t value = 0;
    if (k == 0 || k >= sizeof(number) || k >= left)
        return false; /* cut off behind the mark */
    memcpy(number, digits, k);
    if (str_to_int(number, 0, 255, &value, NULL) < 0)
        return false;
    *ret_len = (size_t)(at - p);
    *status = (int)value;
    return true;
}

static void on_heard(const struct buf *out, void *arg)
{
    struct ssh_call *c = arg;
    if (c->heard_after)
        return;
    if (find_begin(c, out, c->searched)) {
        uv_update_time(c->loop);
        c->heard_after = (uv_now(c->loop) - c->called_at) * USEC_MS + 1; /* never 0 */
        if (!c->t.local)
            run_spare_group(
                c->run); /* the shared connection may live in it, with calls of others */
    }
    c->searched = out->len > sizeof(c->mark) + 2 ? out->len - sizeof(c->mark) - 2 : 0;
}

/* ---- the verdict ---- */

/* "status 1", "signal 9" */
static const char *how_ended(const struct run_end *end, char ret[static 32])
{
    text_printf_to(ret, 32, "%s %d", end->status < 0 ? "signal" : "status", abs(end->status));
    return ret;
}

static void say_late(const struct ssh_call *c, struct ssh_result *r)
{
    char span[CLOCK_TEXT_MAX];
    trouble_set(r, SSH_TIMEOUT,
                MESSAGE_ARGS(MESSAGE_STR("node", c->t.name),
                             MESSAGE_STR("limit", span_to_string(c->limit, span)),
                             MESSAGE_NUM(c->heard_after ? "begun" : "", 1)));
}

static void say_broken(const struct ssh_call *c, const struct run_end *end, struct ssh_result *r)
{
    char last[200], how[32];
    (void)trouble_last_line(buf_str(end->errs), end->errs->len, last, sizeof(last));
    if (end->status == 255 && !c->t.local)
        trouble_set(r, SSH_UNREACHABLE,
                    MESSAGE_ARGS(MESSAGE_STR("node", c->t.name), MESSAGE_STR("says", last),
                                 MESSAGE_NUM("broke", 1)));
    else
        trouble_set(r, SSH_FAILED,
                    MESSAGE_ARGS(MESSAGE_STR("node", c->t.name), MESSAGE_STR("says", last),
                                 MESSAGE_STR("end", how_ended(end, how)), MESSAGE_NUM("early", 1)));
}

static void say_never_began(const struct ssh_call *c,
                            const struct run_end *end,
                            struct ssh_result *r)
{
    char last[200], how[32];
    (void)trouble_last_line(buf_str(end->errs), end->errs->len, last, sizeof(last));
    if (end->status == 255 && !c->t.local) {
        trouble_read(buf_str(end->errs), end->errs->len, &c->t, c->pinned, r);
        return;
    }
    if (!*last) /* a login shell that refuses everyone says so on its standard output */
        (void)trouble_last_line(buf_str(end->out), end->out->len, last, sizeof(last));
    trouble_set(r, SSH_FAILED,
                MESSAGE_ARGS(MESSAGE_STR("node", c->t.name), MESSAGE_STR("says", last),
                             MESSAGE_STR("end", how_ended(end, how))));
}

/* In order of certainty; the first that holds is the verdict. */
static void ssh_judge(const struct ssh_call *c, const struct run_end *end, struct ssh_result *r)
{
    const char *begin = find_begin(c, end->out, 0);
    r->status = -1;
    r->heard_after = c->heard_after;
    r->errs = buf_str(end->errs);
    r->errs_len = end->errs->len;
    r->out = begin ? begin : "";
    r->out_len = begin ? end->out->len - (size_t)(begin - end->out->data) : 0;
    bool is_whole = begin && find_end(c, begin, r->out_len, &r->out_len, &r->status);
    if (end->err.code == -ENOENT)
        trouble_set(r, SSH_NO_CLIENT, MESSAGE_ARGS(MESSAGE_ERR("says", &end->err)));
    else if (end->err.code < 0)
        trouble_set(r, SSH_FAILED,
                    MESSAGE_ARGS(MESSAGE_ERR("says", &end->err), MESSAGE_NUM("spawn", 1)));
    else if (is_whole)
        return;
    else if (end->is_loud)
        trouble_set(
            r, SSH_FAILED,
            MESSAGE_ARGS(MESSAGE_STR("node", c->t.name), MESSAGE_NUM("bytes", SSH_OUT_MAX)));
    else if (end->is_late)
        say_late(c, r);
    else if (begin)
        say_broken(c, end, r);
    else
        say_never_began(c, end, r);
}

static void ssh_on_ended(const struct run_end *end, void *arg)
{
    struct ssh_call *c = arg;
    struct ssh_result r = {.trouble = SSH_OK};
    ssh_judge(c, end, &r);
    /* What is cut out of the middle of a buffer has no NUL of its own. */
    _cleanup_(freep) char *out = xcalloc(1, r.out_len + 1);
    if (r.out_len)
        memcpy(out, r.out, r.out_len);
    r.out = out;
    if (r.trouble == SSH_TIMEOUT && !c->heard_after)
        ssh_close_master(c->loop, &c->t); /* it may be what hangs */
    c->cb(&r, c->arg);
    ssh_destroy(c);
}

/* ---- the call ---- */

static void ssh_on_refused(void *arg)
{
    struct ssh_call *c = arg;
    struct ssh_result r = {.status = -1, .out = "", .errs = ""};
    trouble_set(&r, SSH_FAILED, MESSAGE_ARGS(MESSAGE_STR("says", c->refused.text)));
    c->cb(&r, c->arg);
    ssh_destroy(c);
}

/* Like sshd: nothing of argusd's own environment goes into what is started on its own machine. */
static void local_env(struct pairs *env)
{
    static const char *const kept[] = {"HOME",  "PATH", "USER",   "LOGNAME",
                                       "SHELL", "LANG", "LC_ALL", "TZ"};
    for (size_t i = 0; i < array_len(kept); i++)
        if (getenv(kept[i]))
            pairs_set(env, kept[i], getenv(kept[i]));
}

static int make_words(struct ssh_call *c, struct strv *words, struct err *err)
{
    if (c->t.local) {
        strv_add(words, "sh");
        strv_add(words, "-s");
        return 0;
    }
    int r = ssh_pinned_key(&c->t, c->pinned, err);
    if (r == 0)
        r = command_words(&c->t, c->pinned[0], words, err);
    if (r == 0)
        strv_add(words, "exec sh -s");
    return r;
}

static int ssh_begin(struct ssh_call *c,
                     const char *script,
                     const char *const *argv,
                     struct err *err)
{
    static const struct run_ops ops = {.heard = on_heard, .ended = ssh_on_ended};
    (void)random_hex(c->mark); /* returns its argument */
    _cleanup_(strv_release) struct strv words = {0};
    _cleanup_(buf_release) struct buf input = BUF_INIT(SSH_SCRIPT_MAX + 1024);
    int r = make_words(c, &words, err);
    if (r == 0)
        r = command_script(script, argv, c->mark, &input, err);
    if (r < 0)
        return r;
    struct pairs env = {0};
    if (c->t.local)
        local_env(&env);
    c->run = run_start(c->loop, (const char *const *)words.v, c->t.local ? &env : NULL, &input,
                       c->limit, &ops, c);
    pairs_release(&env);
    return 0;
}

struct ssh_call *ssh_run(uv_loop_t *loop,
                         const struct ssh_target *t,
                         const char *script,
                         const char *const *argv,
                         usec_t limit,
                         ssh_f cb,
                         void *arg)
{
    struct ssh_call *c = xcalloc(1, sizeof(*c));
    *c = (struct ssh_call){
        .loop = loop, .limit = limit ? limit : DEFAULT_LIMIT_S * USEC_SEC, .cb = cb, .arg = arg};
    uv_update_time(loop);
    c->called_at = uv_now(loop);
    copy_target(c, t);
    if (ssh_begin(c, script, argv, &c->refused) < 0)
        c->refusal = later_new(loop, ssh_on_refused, c);
    return c;
}

void ssh_call_free(struct ssh_call *c)
{
    if (!c)
        return;
    run_free(c->run);
    later_free(c->refusal);
    ssh_destroy(c);
}

void ssh_close_master(uv_loop_t *loop, const struct ssh_target *t)
{
    _cleanup_(strv_release) struct strv words = {0};
    struct buf nothing = BUF_INIT(0);
    if (!t->local && command_master(t, "exit", &words, NULL) == 0)
        (void)run_start(loop, (const char *const *)words.v, NULL, &nothing,
                        MASTER_LIMIT_S * USEC_SEC, NULL, NULL); /* it ends by itself */
}
