/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - launch.json and the secrets file, both ways; see launch.h.
 *
 * Reading is strict, since what is misread here is run: a wrong type is an error
 * that names its key, and no default stands in for the command or the environment.
 * Linked into the static shepherd, so it uses base_core only. */
#define _GNU_SOURCE
#include "fsroot/attempt/launch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"

enum { LAUNCH_VERSION = 1 };
#define STARS "***" /* as mask.h has them, which is not linked into the shepherd */

void launch_release(struct launch *l)
{
    free(l->job);
    strv_release(&l->argv);
    free(l->cwd);
    pairs_release(&l->env);
    free(l->pythonpath_prefix);
    free(l->secrets);
    free(l->worker_secrets);
    strv_release(&l->secret_values);
    *l = (struct launch){0};
}

struct launch_logs launch_logs_default(void)
{
    return (struct launch_logs){.rate = 64ULL << 20,
                                .segment = 1ULL << 30,
                                .total = 8ULL << 30,
                                .spool = 1ULL << 30,
                                .patience = 15 * USEC_MIN};
}

/* ---- writing ---- */

static bool is_utf8(const char *s)
{
    json_t *v = json_string(s); /* NULL when it is not */
    bool ok = v != NULL;
    json_decref(v);
    return ok;
}

void launch_jout_bytes(struct jout *j, const char *key, const char *value)
{
    if (!value || is_utf8(value)) {
        jout_str(j, key, value);
        return;
    }
    size_t n = strlen(value);
    _cleanup_(freep) char *hex = xmalloc(2 * n + 1);
    jout_open(j, key, '{');
    jout_str(j, "hex", str_hex((const unsigned char *)value, n, hex));
    jout_close(j, '}');
}

static void add_argv(struct jout *j, const struct strv *argv)
{
    if (!argv) {
        jout_null(j, "argv");
        return;
    }
    jout_open(j, "argv", '[');
    for (size_t i = 0; i < argv->n; i++)
        launch_jout_bytes(j, NULL, argv->v[i]);
    jout_close(j, ']');
}

static int launch_add_env(struct jout *j, const struct pairs *env, struct err *err)
{
    jout_open(j, "env", '{');
    for (size_t i = 0; env && i < env->n; i++) {
        const char *key = env->v[i].key;
        if (!key[0] || strchr(key, '=') || !is_utf8(key))
            return message_refuse(err, -EINVAL, "bad_variable",
                                  MESSAGE_ARGS(MESSAGE_STR("name", key)));
        launch_jout_bytes(j, key, env->v[i].value);
    }
    jout_close(j, '}');
    return 0;
}

static void add_logs(struct jout *j, const struct launch_logs *logs)
{
    jout_open(j, "logs", '{');
    jout_int(j, "rate", (int64_t)logs->rate);
    jout_int(j, "segment", (int64_t)logs->segment);
    jout_int(j, "total", (int64_t)logs->total);
    jout_int(j, "spool", (int64_t)logs->spool);
    jout_real(j, "patience_s", (double)logs->patience / (double)USEC_SEC);
    jout_close(j, '}');
}

static int launch_done(const struct buf *out, const char *what, struct err *err)
{
    if (!out->failed)
        return 0;
    return message_refuse(err, -EMSGSIZE, "text_would_be_large",
                          MESSAGE_ARGS(MESSAGE_STR("what", what), MESSAGE_NUM("most", out->max)));
}

int launch_to_json(const struct launch *l, struct buf *out, struct err *err)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_int(&j, "version", LAUNCH_VERSION);
    jout_str(&j, "job", l->job);
    jout_int(&j, "attempt", l->attempt);
    add_argv(&j, &l->argv);
    launch_jout_bytes(&j, "cwd", l->cwd);
    int r = launch_add_env(&j, &l->env, err);
    if (r < 0)
        return r;
    launch_jout_bytes(&j, "pythonpath_prefix", l->pythonpath_prefix);
    jout_real(&j, "stop_grace_s", (double)l->stop_grace / (double)USEC_SEC);
    jout_real(&j, "beat_s", (double)l->beat / (double)USEC_SEC);
    add_logs(&j, &l->logs);
    jout_str(&j, "secrets", l->secrets);
    jout_str(&j, "worker_secrets", l->worker_secrets);
    jout_close(&j, '}');
    (void)buf_addc(out, '\n'); /* overflow: out->failed */
    return launch_done(out, "launch.json", err);
}

int launch_secrets_to_json(const struct pairs *env,
                           const struct strv *argv,
                           struct buf *out,
                           struct err *err)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    int r = launch_add_env(&j, env, err);
    if (r < 0)
        return r;
    add_argv(&j, argv);
    jout_close(&j, '}');
    return launch_done(out, "the secrets file", err);
}

/* ---- reading ---- */

static int launch_hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = c ? strchr(digits, c) : NULL;
    return p ? (int)(p - digits) : -1;
}

/* The heap string, or NULL when it is no hex text or holds a zero byte. */
static char *from_hex(const char *hex)
{
    size_t n = strlen(hex);
    _cleanup_(freep) char *out = xcalloc(n / 2 + 1, 1);
    for (size_t i = 0; i < n; i += 2) {
        int hi = launch_hex_digit(hex[i]), lo = hi < 0 ? -1 : launch_hex_digit(hex[i + 1]);
        if (lo < 0 || !(hi | lo))
            return NULL;
        out[i / 2] = (char)(hi << 4 | lo);
    }
    char *s = out;
    out = NULL;
    return s;
}

/* A string of any bytes: text, or {"hex": …}. NULL for anything else. */
static char *take_bytes(const json_t *v)
{
    if (json_is_string(v))
        return xstrdup(json_string_value(v));
    const char *hex = json_get_str(v, "hex", NULL);
    return hex && json_object_size(v) == 1 ? from_hex(hex) : NULL;
}

static int wrong(struct err *err, const char *key, const char *what)
{
    return message_refuse(err, -EINVAL, "launch_is_no",
                          MESSAGE_ARGS(MESSAGE_STR("key", key), MESSAGE_STR("shape", what)));
}

static int read_argv(const json_t *v, struct strv *argv, struct err *err)
{
    size_t i;
    json_t *item;
    json_array_foreach (v, i, item) {
        _cleanup_(freep) char *s = take_bytes(item);
        if (!s)
            return wrong(err, "argv", "an array of strings");
        strv_add(argv, s);
    }
    if (!argv->n) /* an empty program is the job's own mistake: who starts it says so */
        return wrong(err, "argv", "an array of strings that starts with a program");
    return 0;
}

/* jansson walks objects through a non-const iterator and changes nothing. */
static int read_env(json_t *v, struct pairs *env, struct err *err)
{
    const char *key;
    json_t *item;
    if (!json_is_object(v))
        return wrong(err, "env", "an object");
    json_object_foreach (v, key, item) {
        _cleanup_(freep) char *s = take_bytes(item);
        if (!s || !key[0] || strchr(key, '='))
            return wrong(err, "env", "an object of names and strings");
        pairs_set(env, key, s);
    }
    return 0;
}

/* NULL stays NULL; *ret is the caller's. */
static int read_optional(const json_t *o, const char *key, char **ret, struct err *err)
{
    const json_t *v = json_object_get(o, key);
    if (!v || json_is_null(v))
        return 0;
    *ret = take_bytes(v);
    return *ret ? 0 : wrong(err, key, "a string or null");
}

static int launch_read_seconds(const json_t *o, const char *key, usec_t *ret, struct err *err)
{
    const json_t *v = json_object_get(o, key);
    double s = json_number_value(v);
    if (!json_is_number(v) || !isfinite(s) || s < 0 || s > 366.0 * 86400)
        return wrong(err, key, "a number of seconds");
    *ret = (usec_t)(s * (double)USEC_SEC);
    return 0;
}

static int read_identity(const json_t *o, struct launch *l, struct err *err)
{
    if (json_get_int(o, "version", 0) != LAUNCH_VERSION)
        return message_refuse(err, -EINVAL, "launch_other_version",
                              MESSAGE_ARGS(MESSAGE_NUM("version", LAUNCH_VERSION)));
    const json_t *attempt = json_object_get(o, "attempt");
    json_int_t k = json_integer_value(attempt); /* 0 when it is no integer */
    if (k < 1 || k > 1000000)
        return wrong(err, "attempt", "a number from 1");
    l->attempt = (int)k;
    set_str(&l->job, json_get_str(o, "job", NULL));
    return l->job && l->job[0] ? 0 : wrong(err, "job", "the job's id");
}

static int read_secret_names(const json_t *o, struct launch *l, struct err *err)
{
    int r = read_optional(o, "secrets", &l->secrets, err);
    if (r == 0 && l->secrets && (!l->secrets[0] || strchr(l->secrets, '/')))
        return wrong(err, "secrets", "a name in the attempt's directory");
    if (r == 0)
        r = read_optional(o, "worker_secrets", &l->worker_secrets, err);
    if (r == 0 && l->worker_secrets && l->worker_secrets[0] != '/')
        return wrong(err, "worker_secrets", "an absolute path");
    return r;
}

static int read_bytes(const json_t *o, const char *key, uint64_t *ret, struct err *err)
{
    const json_t *v = json_object_get(o, key);
    json_int_t n = json_integer_value(v);
    if (!v)
        return 0;
    if (!json_is_integer(v) || n < 0 || n > (json_int_t)1 << 50)
        return wrong(err, key, "a number of bytes");
    *ret = (uint64_t)n;
    return 0;
}

static int read_logs(const json_t *o, struct launch_logs *ret, struct err *err)
{
    *ret = launch_logs_default();
    if (!o)
        return 0;
    if (!json_is_object(o))
        return wrong(err, "logs", "an object");
    int r = read_bytes(o, "rate", &ret->rate, err);
    if (r == 0)
        r = read_bytes(o, "segment", &ret->segment, err);
    if (r == 0)
        r = read_bytes(o, "total", &ret->total, err);
    if (r == 0)
        r = read_bytes(o, "spool", &ret->spool, err);
    return r < 0 || !json_object_get(o, "patience_s")
               ? r
               : launch_read_seconds(o, "patience_s", &ret->patience, err);
}

static int launch_read_members(const json_t *o, struct launch *l, struct err *err)
{
    int r = read_identity(o, l, err);
    if (r == 0)
        r = read_argv(json_object_get(o, "argv"), &l->argv, err);
    if (r == 0)
        r = read_env(json_object_get(o, "env"), &l->env, err);
    if (r == 0)
        r = read_optional(o, "cwd", &l->cwd, err);
    if (r == 0)
        r = read_optional(o, "pythonpath_prefix", &l->pythonpath_prefix, err);
    if (r == 0)
        r = launch_read_seconds(o, "stop_grace_s", &l->stop_grace, err);
    if (r == 0)
        r = launch_read_seconds(o, "beat_s", &l->beat, err);
    if (r == 0)
        r = read_logs(json_object_get(o, "logs"), &l->logs, err);
    return r < 0 ? r : read_secret_names(o, l, err);
}

static int launch_parse(const char *text, size_t len, json_t **ret, struct err *err)
{
    int r = json_parse(text, len, LAUNCH_MAX_BYTES, ret, err);
    if (r == 0 && !json_is_object(*ret))
        r = message_refuse(err, -EINVAL, "json_text_no_object", MESSAGE_NO_ARGS);
    return r;
}

int launch_from_json(const char *text, size_t len, struct launch *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    _cleanup_(launch_release) struct launch l = {0};
    int r = launch_parse(text, len, &o, err);
    if (r == 0)
        r = launch_read_members(o, &l, err);
    if (r < 0)
        return r;
    *ret = l;
    l = (struct launch){0};
    return 0;
}

/* The pieces of real that stand where shown has stars. False: shown is not made of it. */
static bool add_pieces(const char *shown, const char *real, struct strv *ret)
{
    const char *stars = strstr(shown, STARS);
    size_t n = stars ? (size_t)(stars - shown) : 0;
    if (strncmp(shown, real, n) != 0)
        return false;
    real += n;
    while (stars) { /* what stands between these and the next, or to the end */
        const char *text = stars + strlen(STARS), *at = NULL;
        stars = strstr(text, STARS);
        size_t left = strlen(real);
        n = stars ? (size_t)(stars - text) : strlen(text);
        if (stars)
            at = memmem(real, left, text, n);
        else if (left >= n && str_eq(real + left - n, text))
            at = real + left - n;
        if (!at)
            return false;
        _cleanup_(freep) char *hidden = xstrndup(real, (size_t)(at - real));
        if (*hidden)
            strv_add(ret, hidden);
        real = at + n;
    }
    return true;
}

void launch_hidden_add(const struct strv *shown, const struct strv *real, struct strv *ret)
{
    for (size_t i = 0; i < shown->n && i < real->n; i++)
        if (strstr(shown->v[i], STARS) && !add_pieces(shown->v[i], real->v[i], ret))
            strv_add(ret, real->v[i]);
}

int launch_secrets_add(struct launch *l, const char *text, size_t len, struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    _cleanup_(pairs_release) struct pairs env = {0};
    _cleanup_(strv_release) struct strv argv = {0};
    int r = launch_parse(text, len, &o, err);
    const json_t *real = json_object_get(o, "argv");
    if (r == 0)
        r = read_env(json_object_get(o, "env"), &env, err);
    if (r == 0 && real && !json_is_null(real))
        r = read_argv(real, &argv, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < env.n; i++) {
        pairs_set(&l->env, env.v[i].key, env.v[i].value);
        strv_add(&l->secret_values, env.v[i].value);
    }
    launch_hidden_add(&l->argv, &argv, &l->secret_values);
    if (argv.n)
        strv_copy(&l->argv, &argv);
    return 0;
}

char *launch_pythonpath(const char *prefix, const char *own)
{
    size_t n = strlen(prefix);
    if (!own || !own[0])
        return xstrdup(prefix);
    if (!n || (!strncmp(own, prefix, n) && (own[n] == ':' || !own[n])))
        return xstrdup(own);
    return xasprintf("%s:%s", prefix, own);
}
