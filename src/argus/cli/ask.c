/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - the commands of ask.h: make the request of options and arguments, send it, show the
 * reply. */
#include "argus/cli/ask.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argus/cli/cli.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { ASK_PATH_MAX = 4096, ASK_TEXT_MAX = 8 << 10 };

struct asking {
    const struct ask *ask;
    const struct opt *opts;
    size_t n_opts;
    const void *values;
    const char *name; /* the argument of this request */
    struct listing_opts view;
    bool is_dry; /* --dry-run was given, and the command shows it */
    bool is_quiet;
};

/* ---- destinations ---- */

/* What follows "body:" in where an option goes; NULL: it goes elsewhere. */
static const char *ask_key(const char *to, const char *place)
{
    size_t n = strlen(place);
    return to && str_starts(to, place) && to[n] == ':' ? to + n + 1 : NULL;
}

static bool ask_is_same_key(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return n == strcspn(b, "=") && !strncmp(a, b, n);
}

/* "--project NAME or --user NAME": those that name what the path is of. */
static void ask_name_paths(const struct opt *opts, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++)
        if (ask_key(opts[i].to, "path"))
            (void)buf_addf(out, "%s--%s %s", out->len ? " or " : "", opts[i].name, opts[i].arg);
}

static int ask_check_paths(const struct opt *opts, size_t n, const void *values, struct err *err)
{
    _cleanup_(buf_release) struct buf names = BUF_INIT(ASK_TEXT_MAX);
    size_t given = 0;
    for (size_t i = 0; i < n; i++)
        given += ask_key(opts[i].to, "path") && opt_is_given(&opts[i], values);
    ask_name_paths(opts, n, &names);
    return given == 1 || !names.len
               ? 0
               : message_refuse(err, ERR_USAGE, "cli_give",
                                MESSAGE_ARGS(MESSAGE_STR("what", buf_str(&names))));
}

static int ask_check_given(const struct opt *opts, size_t n, const void *values, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool given = opt_is_given(&opts[i], values);
        for (size_t k = 0; given && k < i; k++)
            if (opts[i].to && opts[k].to && opt_is_given(&opts[k], values) &&
                ask_is_same_key(opts[i].to, opts[k].to))
                return message_refuse(err, ERR_USAGE, "cli_not_together",
                                      MESSAGE_ARGS(MESSAGE_STR("one", opts[k].name),
                                                   MESSAGE_STR("other", opts[i].name)));
    }
    return ask_check_paths(opts, n, values, err);
}

/* What is said of the first option that is needed and not given; NULL: all are. */
static const char *ask_lacks(const struct opt *opts, size_t n, const void *values)
{
    const char *need = NULL;
    for (size_t i = 0; i < n && !need; i++)
        need = opt_is_given(&opts[i], values) ? NULL : opts[i].need;
    return need;
}

int ask_check(const struct opt *opts, size_t n, const void *values, struct err *err)
{
    const char *need = ask_lacks(opts, n, values);
    return need ? message_refuse(err, ERR_USAGE, need, MESSAGE_NO_ARGS)
                : ask_check_given(opts, n, values, err);
}

/* ---- the request ---- */

static json_t *ask_list(const struct strv *list, bool with_commas)
{
    json_t *all = json_array();
    for (size_t i = 0; i < list->n; i++) {
        const char *at = list->v[i], *item;
        if (!with_commas)
            (void)json_array_append_new(all, json_string(at)); /* no UTF-8: it is left out */
        for (size_t n; with_commas && (item = str_item(&at, &n));)
            (void)json_array_append_new(all, json_stringn(item, n)); /* as above */
    }
    return all;
}

/* *ret stays NULL for "none". */
static int ask_limit(const char *text, json_t **ret, struct err *err)
{
    double v = 0;
    if (str_eq(text, "none") || str_eq(text, "-"))
        return 0;
    if (str_to_real(text, &v, NULL) < 0 || !(v >= 0))
        return message_refuse(err, ERR_USAGE, "cli_no_limit",
                              MESSAGE_ARGS(MESSAGE_STR("text", text)));
    bool whole = v < 1e15 && v == (double)(json_int_t)v;
    *ret = whole ? json_integer((json_int_t)v) : json_real(v);
    return 0;
}

/* The option's value as JSON; a span is text, "90s". */
static int ask_value(const struct opt *o, const void *values, json_t **ret, struct err *err)
{
    const void *at = opt_at(o, values);
    const char *fixed = strchr(o->to, '=');
    switch (o->type) {
    case OPT_FLAG:
        *ret = fixed && str_eq(fixed, "=[]") ? json_array()
                                             : json_boolean(!fixed || !str_eq(fixed, "=false"));
        return 0;
    case OPT_TEXT:
        *ret = json_string(*(const char *const *)at);
        return 0;
    case OPT_LIMIT:
        return ask_limit(*(const char *const *)at, ret, err);
    case OPT_NUMBER:
    case OPT_COUNT:
        *ret = json_integer((json_int_t) * (const int64_t *)at);
        return 0;
    case OPT_SPAN:
        *ret = json_sprintf("%" PRIu64 "s", (uint64_t)(*(const usec_t *)at / USEC_SEC));
        return 0;
    case OPT_LIST:
    case OPT_NAMES:
        *ret = ask_list(at, o->type == OPT_NAMES);
        return 0;
    case OPT_CHOICE:
        *ret = json_string(o->choices[*(const int *)at]);
        return 0;
    }
    return 0;
}

int ask_fill(const struct opt *opts, size_t n, const void *values, json_t *body, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        const char *key = ask_key(opts[i].to, "body");
        json_t *v = NULL;
        if (!key || !opt_is_given(&opts[i], values))
            continue;
        int r = ask_value(&opts[i], values, &v, err);
        if (r < 0)
            return r;
        _cleanup_(freep) char *name = xstrndup(key, strcspn(key, "="));
        if (v)
            (void)json_object_set_new(body, name, v); /* fails only for lack of memory */
        else
            (void)json_object_del(body, name); /* it may not be there */
    }
    return 0;
}

/* Append the path with names in place of {}, {1} and {of}. */
static void ask_add_path(struct buf *out, const char *path, const char *name, const char *second)
{
    for (const char *p = path; *p;) {
        if (str_starts(p, "{}")) {
            buf_add_url(out, name); /* too long: the caller looks at failed, as below */
            p += 2;
        } else if (str_starts(p, "{1}")) {
            buf_add_url(out, second);
            p += 3;
        } else {
            (void)buf_addc(out, *p++);
        }
    }
}

char *ask_path(const char *path, const char *name)
{
    struct buf out = BUF_INIT(ASK_PATH_MAX);
    ask_add_path(&out, path, name, "");
    return buf_take(&out); /* a name that does not fit is none: 404 */
}

/* "users/{}" of the one option that says what the path is of. */
static void ask_put_of(const struct asking *a, const char *path, struct buf *out)
{
    const char *of = strstr(path, "{of}");
    for (size_t i = 0; of && i < a->n_opts; i++) {
        const char *kind = ask_key(a->opts[i].to, "path");
        if (!kind || !opt_is_given(&a->opts[i], a->values))
            continue;
        (void)buf_addf(out, "%.*s%s/", (int)(of - path), path, kind); /* as above */
        buf_add_url(out, *(const char *const *)opt_at(&a->opts[i], a->values));
        (void)buf_adds(out, of + strlen("{of}"));
    }
}

/* An option as it stands in a query: the table's test holds it to one of these types. */
static const char *ask_query_text(const struct opt *o, const void *values, const char *fixed)
{
    const void *at = opt_at(o, values);
    if (o->type == OPT_FLAG)
        return fixed ? fixed + 1 : "1";
    if (o->type == OPT_CHOICE)
        return o->choices[*(const int *)at];
    return *(const char *const *)at;
}

static int ask_make_path(const struct asking *a,
                         const struct strv *args,
                         struct buf *out,
                         struct err *err)
{
    const char *path = a->ask->path;
    if (strstr(path, "{of}"))
        ask_put_of(a, path, out);
    else
        ask_add_path(out, path, str_or(a->name, ""), args->n > 1 ? args->v[1] : "");
    for (size_t i = 0; i < a->n_opts; i++) {
        const struct opt *o = &a->opts[i];
        const char *key = ask_key(o->to, "query");
        if (!key || !opt_is_given(o, a->values))
            continue;
        const char *fixed = strchr(key, '=');
        _cleanup_(freep) char *name = xstrndup(key, strcspn(key, "="));
        url_query(out, name, ask_query_text(o, a->values, fixed));
    }
    return out->failed ? message_refuse(err, ERR_USAGE, "cli_name_long",
                                        MESSAGE_ARGS(MESSAGE_STR("name", str_or(a->name, ""))))
                       : 0;
}

static bool ask_has_change(const struct asking *a)
{
    bool given = false;
    for (size_t i = 0; i < a->n_opts; i++)
        given |= ask_key(a->opts[i].to, "body") && opt_is_given(&a->opts[i], a->values);
    return given;
}

/* The body to begin with: empty, or what there is on the server. */
static int ask_begin_body(struct cli *cli,
                          const struct asking *a,
                          const char *path,
                          json_t **ret,
                          struct err *err)
{
    const char *onto = a->ask->onto;
    _cleanup_(json_unrefp) json_t *now = NULL;
    if (!onto) {
        *ret = json_object();
        return 0;
    }
    int r = client_get(cli->client, path, &now, err);
    if (r < 0)
        return r;
    *ret = json_deep_copy(json_object_get(now, onto));
    return *ret ? 0
                : message_refuse(err, ERR_UNAVAILABLE, "cli_reply_lacks",
                                 MESSAGE_ARGS(MESSAGE_STR("key", onto)));
}

/* *ret stays NULL for a request without body. */
static int ask_make_body(struct cli *cli,
                         const struct asking *a,
                         const char *path,
                         json_t **ret,
                         struct err *err)
{
    const struct ask *ask = a->ask;
    const char *key = ask_key(ask->arg_to, "body");
    _cleanup_(json_unrefp) json_t *body = NULL;
    int r = ask_begin_body(cli, a, path, &body, err);
    if (r >= 0)
        r = ask_fill(a->opts, a->n_opts, a->values, body, err);
    if (r < 0)
        return r;
    if (ask->nothing && (!ask_has_change(a) || !json_object_size(body)))
        return message_refuse(err, ERR_USAGE, ask->nothing, MESSAGE_NO_ARGS);
    if (key)
        (void)json_object_set_new(body, key, json_string(a->name)); /* lack of memory */
    if (str_eq(ask->method, "POST") || str_eq(ask->method, "PUT") || json_object_size(body))
        *ret = json_incref(body);
    return 0;
}

int ask_send(struct cli *cli,
             const char *method,
             const char *path,
             json_t *body,
             int tries,
             json_t **ret,
             struct err *err)
{
    _cleanup_(json_unrefp) json_t *taken = body;
    _cleanup_(freep) char *text = taken ? json_dumps(taken, JSON_COMPACT) : NULL;
    struct request request = {.method = method,
                              .path = path,
                              .content_type = text ? "application/json" : NULL,
                              .body = text,
                              .body_len = text ? strlen(text) : 0,
                              .tries = tries};
    return method ? client_json(cli->client, &request, ret, err)
                  : client_get(cli->client, path, ret, err);
}

/* ---- the reply ---- */

/* "user {name}" with that member of the reply, else the argument. */
static char *ask_sentence(const char *text, const json_t *answer, const char *argument)
{
    struct buf out = BUF_INIT(ASK_TEXT_MAX);
    const char *open = strchr(text, '{'), *close = open ? strchr(open, '}') : NULL;
    if (!close)
        return xstrdup(text);
    _cleanup_(freep) char *key = xstrndup(open + 1, (size_t)(close - open - 1));
    const json_t *value = json_object_get(answer, key);
    char number[24];
    text_printf(number, "%" PRId64, (int64_t)json_integer_value(value));
    (void)buf_addf(&out, "%.*s%s%s", (int)(open - text), text,
                   json_is_integer(value) ? number
                                          : json_get_str(answer, key, str_or(argument, "-")),
                   close + 1); /* cut: fine */
    return buf_take(&out);
}

static void ask_tell_done(struct cli *cli, const struct asking *a, const json_t *answer)
{
    const struct ask *ask = a->ask;
    char line[ASK_TEXT_MAX];
    _cleanup_(freep) char *subject = ask_sentence(ask->subject, answer, a->name);
    const char *texts[] = {subject};
    (void)fprintf(cli->out, "%s\n", msg_fill(cli->term.lang, ask->done, texts, line, sizeof(line)));
    if (ask->next) {
        _cleanup_(freep) char *next = ask_sentence(ask->next, answer, a->name);
        cli_talk(cli, "next: %s", next);
    }
}

static void ask_show(struct cli *cli, const struct asking *a, const json_t *answer)
{
    const struct ask *ask = a->ask;
    if (a->is_dry) {
        struct seen seen = {.when = cli_when(cli, a->view.utc)};
        ask->print_dry(cli, answer, &seen);
    } else if (a->is_quiet && a->view.output < OUTPUT_JSON) {
        (void)fprintf(cli->out, "%s\n", member_str(answer, "id"));
    } else if (ask->done) {
        ask_tell_done(cli, a, answer);
    } else if (ask->table.key || a->view.output >= OUTPUT_JSON) {
        listing_print(cli, &ask->table, answer, a->view.output, a->view.utc);
    } else {
        struct seen seen = {.when = cli_when(cli, a->view.utc),
                            .wide = a->view.output == OUTPUT_WIDE};
        ask->print(cli, answer, &seen);
    }
}

static int ask_once(struct cli *cli, void *asking, const struct strv *args, struct err *err)
{
    const struct asking *a = asking;
    const struct ask *ask = a->ask;
    _cleanup_(buf_release) struct buf path = BUF_INIT(ASK_PATH_MAX);
    _cleanup_(json_unrefp) json_t *answer = NULL;
    json_t *body = NULL;
    int r = ask_make_path(a, args, &path, err);
    if (r >= 0)
        r = ask_make_body(cli, a, buf_str(&path), &body, err);
    if (r >= 0)
        r = ask_send(cli, ask->method, buf_str(&path), body, ask->tries, &answer, err);
    if (r >= 0)
        ask_show(cli, a, answer);
    return r < 0 ? r : 0;
}

/* -o, --utc, --watch, --dry-run and --quiet, if the command has them. */
static void ask_read_view(struct asking *a)
{
    for (size_t i = 0; i < a->n_opts; i++) {
        const struct opt *o = &a->opts[i];
        const void *at = opt_at(o, a->values);
        if (str_eq(o->name, "output"))
            a->view.output = *(const int *)at;
        else if (str_eq(o->name, "utc"))
            a->view.utc = *(const bool *)at;
        else if (str_eq(o->name, "watch"))
            a->view.watch = *(const bool *)at;
        else if (str_eq(o->name, "dry-run"))
            a->is_dry = a->ask->print_dry && *(const bool *)at;
        else if (str_eq(o->name, "quiet"))
            a->is_quiet = *(const bool *)at;
    }
}

int ask_run(struct cli *cli,
            const struct ask *ask,
            const struct opt *opts,
            size_t n_opts,
            const void *values,
            const struct strv *args,
            struct err *err)
{
    const char *lacks = ask_lacks(opts, n_opts, values);
    struct ask change = *ask;
    change.method = ask->change;
    change.nothing = lacks;
    bool changes = ask->change && lacks;
    struct asking a = {
        .ask = changes ? &change : ask, .opts = opts, .n_opts = n_opts, .values = values};
    bool is_each = strstr(ask->path, "{}") && !strstr(ask->path, "{1}");
    _cleanup_(freep) char *only = NULL;
    int r =
        changes ? ask_check_given(opts, n_opts, values, err) : ask_check(opts, n_opts, values, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0 && !args->n && ask->name_if_none)
        r = ask->name_if_none(cli, &only, err);
    ask_read_view(&a);
    for (size_t i = 0; r >= 0 && (i == 0 || (is_each && i < args->n)); i++) {
        a.name = i < args->n ? args->v[i] : only;
        r = cli_page(cli, a.view.watch, ask_once, &a, args, err);
    }
    return r;
}
