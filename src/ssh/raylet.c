/* SPDX-License-Identifier: Apache-2.0 */
/* raylet.c - sends raylet.sh with the words for one verb; raylet_read.c understands the answers.
 * See raylet.h.
 *
 * A start and a stop are wrapped in raylet_detach.sh: they go on in a session of their own when the
 * connection breaks. A look is not: it holds no lock, and what it starts is a reader that may be
 * there twice without harm. */
#include "ssh/raylet.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "ssh/embedded.h"
#include "ssh/keep.h"
#include "ssh/later.h"
#include "ssh/raylet_names.h"

enum {
    START_LIMIT_S = 180,
    LOOK_LIMIT_S = 20,
    EXPORTER_LIMIT_S = 30,
    STOP_WAIT_S = 60,
    STOP_MORE_S = 30,
    NAME_MAX_BYTES = 64,
    LABEL_MAX = 63
};
enum { TOKEN_BYTES = 16, MARK_CHARS = 24 };

struct raylet_call {
    struct ssh_call *ssh;
    struct later *later;     /* of a spec that cannot be used */
    struct raylet_end end;   /* why */
    struct raylet_want want; /* of a look; its texts are these */
    struct strv texts, live_jobs;
    raylet_start_f start_cb; /* one of three */
    raylet_stop_f stop_cb;
    raylet_look_f look_cb;
    raylet_exporter_f exporter_cb;
    struct raylet_exporter_spec exporter; /* texts in `texts` */
    void *arg;
};

/* ---- the answer ---- */

static void raylet_tell(struct raylet_call *c, const struct ssh_result *r)
{
    union {
        struct raylet_started started;
        struct raylet_stopped stopped;
        struct raylet_look look;
        struct raylet_exporter exporter;
    } *ret = xcalloc(1, sizeof(*ret));
    bool hangs = r && r->trouble == SSH_TIMEOUT && r->heard_after && c->look_cb;
    bool is_answer = r && (r->trouble == SSH_OK || hangs);
    if (c->start_cb) {
        if (is_answer)
            raylet_read_start(r->out, r->out_len, &ret->started);
        else
            ret->started.end = c->end;
        c->start_cb(&ret->started, c->arg);
    } else if (c->stop_cb) {
        if (is_answer)
            raylet_read_stop(r->out, r->out_len, &ret->stopped);
        else
            ret->stopped.end = c->end;
        c->stop_cb(&ret->stopped, c->arg);
    } else if (c->look_cb) {
        if (is_answer)
            raylet_read_look(r->out, r->out_len, &c->want,
                             c->want.now ? c->want.now + r->heard_after : 0, &ret->look);
        else
            ret->look.end = c->end;
        c->look_cb(&ret->look, c->arg);
        free(ret->look.cards);
        free(ret->look.rdma);
    } else if (c->exporter_cb) {
        if (is_answer)
            raylet_read_exporter(r->out, r->out_len, &c->exporter, &ret->exporter);
        else
            ret->exporter.end = c->end;
        c->exporter_cb(&ret->exporter, c->arg);
    }
    free(ret);
}

static void raylet_destroy(struct raylet_call *c)
{
    strv_release(&c->texts);
    strv_release(&c->live_jobs);
    free(c);
}

static void raylet_on_answer(const struct ssh_result *r, void *arg)
{
    struct raylet_call *c = arg;
    if (r->trouble != SSH_OK) {
        c->end = (struct raylet_end){.outcome = RAYLET_SSH, .trouble = r->trouble};
        text_copy(c->end.text, r->text);
    }
    raylet_tell(c, r);
    raylet_destroy(c);
}

static void raylet_on_refused(void *arg)
{
    struct raylet_call *c = arg;
    raylet_tell(c, NULL);
    raylet_destroy(c);
}

void raylet_call_free(struct raylet_call *c)
{
    if (!c)
        return;
    ssh_call_free(c->ssh);
    later_free(c->later);
    raylet_destroy(c);
}

/* ---- words ---- */

static bool raylet_is_name(const char *s, const char *more)
{
    size_t n = strlen(str_or(s, ""));
    if (n == 0 || n > NAME_MAX_BYTES || !isalnum((unsigned char)*s))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr(more, s[i]))
            return false;
    return true;
}

int raylet_check_names(const char *owner, const char *node, struct err *err)
{
    if (!raylet_is_name(owner, "_-"))
        return message_refuse(err, -EINVAL, "raylet_owner",
                              MESSAGE_ARGS(MESSAGE_STR("mark", str_or(owner, ""))));
    if (!raylet_is_name(node, "._-"))
        return message_refuse(err, -EINVAL, "ssh_node_name",
                              MESSAGE_ARGS(MESSAGE_STR("name", str_or(node, ""))));
    return 0;
}

void raylet_add_names(struct strv *words, const char *verb, const char *owner, const char *node)
{
    char hex[HASH_HEX];
    _cleanup_(freep) char *both = xasprintf("%s\n%s", owner, node);
    (void)hash_sha256_hex(both, strlen(both), hex); /* it is hex */
    strv_add(words, verb);
    strv_add(words, owner);
    strv_add(words, node);
    strv_addf(words, "%.*s", MARK_CHARS, hex);
}

static void raylet_add_token(struct strv *words)
{
    char hex[2 * TOKEN_BYTES + 1];
    strv_add(words, random_hex(hex));
}

static void add_seconds(struct strv *words, usec_t span)
{
    strv_addf(words, "%llu", (unsigned long long)(span / USEC_SEC));
}

/* "K=V" of a name that a shell knows as one. */
static int raylet_add_env(struct strv *words, const struct pairs *env, struct err *err)
{
    for (size_t i = 0; env && i < env->n; i++) {
        const char *key = env->v[i].key;
        size_t n = 0;
        while (isalnum((unsigned char)key[n]) || key[n] == '_')
            n++;
        if (!n || key[n] || isdigit((unsigned char)*key))
            return message_refuse(err, -EINVAL, "raylet_variable",
                                  MESSAGE_ARGS(MESSAGE_STR("name", key)));
        strv_addf(words, "%s=%s", key, env->v[i].value);
    }
    return 0;
}

static void raylet_add_option(struct strv *words, const char *option, const char *value)
{
    if (value)
        strv_addf(words, "--%s=%s", option, value);
}

static void add_ray(struct strv *words, const struct raylet_spec *s)
{
    strv_add(words, s->ray_bin);
    strv_add(words, "start");
    if (s->head)
        strv_add(words, "--head");
    else
        raylet_add_option(words, "address", s->address);
    raylet_add_option(words, "node-ip-address", s->node_ip);
    if (s->cpus >= 0)
        strv_addf(words, "--num-cpus=%.0f", floor(s->cpus));
    if (s->gpus >= 0)
        strv_addf(words, "--num-gpus=%d", s->gpus);
    raylet_add_option(words, "resources", s->resources_json);
    raylet_add_option(words, "labels", s->labels);
    raylet_add_option(words, "temp-dir", s->temp_dir);
    if (s->object_store_bytes)
        strv_addf(words, "--object-store-memory=%llu", (unsigned long long)s->object_store_bytes);
    strv_add(words, "--disable-usage-stats");
    for (size_t i = 0; s->ports && i < s->ports->n; i++)
        raylet_add_option(words, s->ports->v[i].key, s->ports->v[i].value);
}

static void add_dashboard(struct strv *words, const struct raylet_spec *s)
{
    const char *port = s->ports ? pairs_find(s->ports, "dashboard-port") : NULL;
    if (s->head && s->dashboard_wait && port)
        strv_addf(words, "%s %llu", port, (unsigned long long)(s->dashboard_wait / USEC_SEC));
    else
        strv_add(words, "");
}

static int start_words(const struct raylet_spec *s,
                       usec_t limit,
                       struct strv *words,
                       struct err *err)
{
    int r = raylet_check_names(s->owner, s->node, err);
    if (r < 0)
        return r;
    if (!s->ray_bin || *s->ray_bin != '/')
        return message_refuse(err, -EINVAL, "raylet_ray_bin",
                              MESSAGE_ARGS(MESSAGE_STR("path", str_or(s->ray_bin, ""))));
    if (!s->head && !s->address)
        return message_refuse(err, -EINVAL, "raylet_no_head", MESSAGE_NO_ARGS);
    raylet_add_names(words, "start", s->owner, s->node);
    raylet_add_token(words);
    add_seconds(words, limit * 3 / 4);  /* to wait for another start, */
    add_seconds(words, limit * 9 / 10); /* and for ray start: both end before we give up */
    strv_add(words, s->head ? "1" : "0");
    strv_add(words, s->head && s->spare ? "1" : "");
    add_dashboard(words, s);
    strv_add(words, str_or(s->address, ""));
    strv_add(words, str_or(s->node_ip, ""));
    r = raylet_add_env(words, s->env, err);
    if (r == 0)
        add_ray(words, s);
    return r;
}

/* ---- the calls ---- */

static struct raylet_call *raylet_call_new(void *arg)
{
    struct raylet_call *c = xcalloc(1, sizeof(*c));
    c->arg = arg;
    return c;
}

static void raylet_refuse(struct raylet_call *c, uv_loop_t *loop, const struct err *err)
{
    c->end.outcome = RAYLET_REFUSED;
    message_write(c->end.text, sizeof(c->end.text), MESSAGE_ARGS(MESSAGE_STR("says", err->text)));
    c->later = later_new(loop, raylet_on_refused, c);
}

struct ssh_call *raylet_put_token(uv_loop_t *loop,
                                  const struct ssh_target *t,
                                  const char *const words[],
                                  usec_t limit,
                                  ssh_f cb,
                                  void *arg)
{
    return ssh_run(loop, t, (const char *)embedded_token_sh, words, limit, cb, arg);
}

/* raylet.sh as $1 of raylet_detach.sh. */
static void send_detached(struct raylet_call *c,
                          uv_loop_t *loop,
                          const struct ssh_target *t,
                          const struct strv *words,
                          usec_t limit)
{
    _cleanup_(strv_release) struct strv all = {0};
    strv_add(&all, (const char *)embedded_raylet_sh);
    for (size_t i = 0; i < words->n; i++)
        strv_add(&all, words->v[i]);
    c->ssh = ssh_run(loop, t, (const char *)embedded_raylet_detach_sh, (const char *const *)all.v,
                     limit, raylet_on_answer, c);
}

struct raylet_call *raylet_start(uv_loop_t *loop,
                                 const struct ssh_target *t,
                                 const struct raylet_spec *spec,
                                 usec_t limit,
                                 raylet_start_f cb,
                                 void *arg)
{
    struct raylet_call *c = raylet_call_new(arg);
    _cleanup_(strv_release) struct strv words = {0};
    struct err err = {0};
    c->start_cb = cb;
    if (!limit)
        limit = START_LIMIT_S * USEC_SEC;
    if (start_words(spec, limit, &words, &err) < 0)
        raylet_refuse(c, loop, &err);
    else
        send_detached(c, loop, t, &words, limit);
    return c;
}

struct raylet_call *raylet_stop(uv_loop_t *loop,
                                const struct ssh_target *t,
                                const char *owner,
                                const char *node,
                                usec_t grace,
                                raylet_stop_f cb,
                                void *arg)
{
    struct raylet_call *c = raylet_call_new(arg);
    _cleanup_(strv_release) struct strv words = {0};
    struct err err = {0};
    c->stop_cb = cb;
    if (raylet_check_names(owner, node, &err) < 0) {
        raylet_refuse(c, loop, &err);
        return c;
    }
    raylet_add_names(&words, "stop", owner, node);
    add_seconds(&words, STOP_WAIT_S * USEC_SEC);
    add_seconds(&words, grace);
    send_detached(c, loop, t, &words, grace + (STOP_WAIT_S + STOP_MORE_S) * USEC_SEC);
    return c;
}

/* Their words for where to listen; COUNTERS: the file that the script writes. */
static void add_exporter_words(struct strv *words, const struct raylet_exporter_spec *s)
{
    bool is_dcgm = !strcmp(s->program, "dcgm-exporter");
    _cleanup_(freep) char *at = str_with_port(str_or(s->address, ""), s->port);
    strv_addf(words, is_dcgm ? "--address=%s" : "--web.listen-address=%s", at);
    if (!is_dcgm)
        return;
    strv_add(words, "--collect-interval=5000");
    strv_add(words, "--collectors");
    strv_add(words, "COUNTERS");
}

struct raylet_call *raylet_exporter(uv_loop_t *loop,
                                    const struct ssh_target *t,
                                    const struct raylet_exporter_spec *spec,
                                    usec_t limit,
                                    raylet_exporter_f cb,
                                    void *arg)
{
    struct raylet_call *c = raylet_call_new(arg);
    _cleanup_(strv_release) struct strv words = {0};
    struct err err = {0};
    c->exporter_cb = cb;
    c->exporter = *spec;
    c->exporter.program = keep(&c->texts, spec->program);
    c->exporter.place = keep(&c->texts, spec->place);
    c->exporter.owner = c->exporter.node = c->exporter.address = NULL; /* not looked at any more */
    if (raylet_check_names(spec->owner, spec->node, &err) < 0) {
        raylet_refuse(c, loop, &err);
        return c;
    }
    raylet_add_names(&words, "exporter", spec->owner, spec->node);
    strv_add(&words, spec->program);
    strv_addf(&words, "%d", spec->port);
    strv_add(&words, str_or(spec->place, ""));
    add_exporter_words(&words, spec);
    send_detached(c, loop, t, &words, limit ? limit : EXPORTER_LIMIT_S * USEC_SEC);
    return c;
}

static void raylet_copy_want(struct raylet_call *c, const struct raylet_want *w)
{
    c->want = *w;
    c->want.shared_root = keep(&c->texts, w->shared_root);
    c->want.root_mark = keep(&c->texts, w->root_mark);
    c->want.temp_dir = keep(&c->texts, w->temp_dir);
    c->want.cards = keep(&c->texts, w->cards);
    c->want.owner = c->want.node = NULL; /* not looked at any more */
    for (size_t i = 0; i < w->n_live_jobs; i++)
        strv_add(&c->live_jobs, w->live_jobs[i]);
    c->want.live_jobs = (const char *const *)c->live_jobs.v;
}

struct raylet_call *raylet_look(uv_loop_t *loop,
                                const struct ssh_target *t,
                                const struct raylet_want *want,
                                usec_t limit,
                                raylet_look_f cb,
                                void *arg)
{
    struct raylet_call *c = raylet_call_new(arg);
    _cleanup_(strv_release) struct strv words = {0};
    struct err err = {0};
    c->look_cb = cb;
    raylet_copy_want(c, want);
    if (raylet_check_names(want->owner, want->node, &err) < 0) {
        raylet_refuse(c, loop, &err);
        return c;
    }
    raylet_add_names(&words, "look", want->owner, want->node);
    strv_add(&words, str_or(want->temp_dir, "/tmp"));
    strv_add(&words, str_or(want->shared_root, ""));
    strv_add(&words, str_or(want->root_mark, ""));
    strv_add(&words, str_or(want->cards, ""));
    c->ssh = ssh_run(loop, t, (const char *)embedded_raylet_sh, (const char *const *)words.v,
                     limit ? limit : LOOK_LIMIT_S * USEC_SEC, raylet_on_answer, c);
    return c;
}

/* ---- labels ---- */

static int check_label(const char *s, size_t max, struct err *err)
{
    size_t n = strlen(s);
    bool is_good =
        n > 0 && n <= max && isalnum((unsigned char)s[0]) && isalnum((unsigned char)s[n - 1]);
    for (size_t i = 0; i < n && is_good; i++)
        is_good = isalnum((unsigned char)s[i]) || strchr("._-", s[i]);
    if (is_good)
        return 0;
    return message_refuse(err, ERR_REFUSED, "raylet_label",
                          MESSAGE_ARGS(MESSAGE_STR("label", s), MESSAGE_NUM("most", max)));
}

int raylet_labels(const char *node,
                  const char *const *pools,
                  size_t n_pools,
                  struct buf *out,
                  struct err *err)
{
    static const size_t name_max = LABEL_MAX - sizeof("argus.pool.") + 1; /* as part of a key */
    int r = check_label(node, LABEL_MAX, err);
    for (size_t i = 0; i < n_pools && r == 0; i++)
        r = check_label(pools[i], name_max, err);
    if (r < 0)
        return r;
    (void)buf_addf(out, "argus.node=%s", node); /* blind appends, looked at once at the end */
    if (n_pools > 0)
        (void)buf_addf(out, ",argus.pool=%s", pools[0]);
    for (size_t i = 0; i < n_pools && n_pools > 1; i++)
        (void)buf_addf(out, ",argus.pool.%s=1", pools[i]);
    return out->failed ? message_refuse(err, ERR_TOO_LARGE, "raylet_long_labels",
                                        MESSAGE_ARGS(MESSAGE_STR("node", node)))
                       : 0;
}
