/* SPDX-License-Identifier: Apache-2.0 */
/* alert_route.c - see alert_route.h.
 *
 * Receivers, routes and rules are read key by key with their places; what is wrong is told at once,
 * all of it. */
#include "core/alert/alert_route.h"

#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"
#include "core/job/access.h"

const char *const alert_kind_names[] = {
#define X(e, word, most) [ALERT_KIND_##e] = (word),
    ALERT_KIND_TABLE(X)
#undef X
        NULL};
static const int64_t kind_most[] = {
#define X(e, word, most) [ALERT_KIND_##e] = (most),
    ALERT_KIND_TABLE(X)
#undef X
};
static const char *const language_names[] =
    {[MESSAGE_ENGLISH] = "en", [MESSAGE_CHINESE] = "zh", NULL};

enum { RECEIVERS_MAX = 100, ROUTES_MAX = 100, DAY_MINUTES = 24 * 60 };

#define RECEIVER(key, ftype, member, ...) FIELD_AT(alert_receiver, key, ftype, member, __VA_ARGS__)
static const struct field receiver_rows[] = {
    RECEIVER("kind", FIELD_ENUM, kind, .names = alert_kind_names, .flags = FIELD_REQUIRED),
    RECEIVER("url", FIELD_STR, url),
    RECEIVER("url_secret", FIELD_STR, url_secret),
    RECEIVER("secret", FIELD_STR, secret),
    RECEIVER("user", FIELD_STR, user),
    RECEIVER("password", FIELD_STR, password),
    RECEIVER("from", FIELD_STR, from),
    RECEIVER("to", FIELD_STRV, to),
    RECEIVER("ca_file", FIELD_STR, ca_file),
    RECEIVER("language", FIELD_ENUM, language, "en", .names = language_names),
    RECEIVER("per_minute", FIELD_INT, per_minute, .max = 6000),
    RECEIVER("resolved", FIELD_BOOL, resolved, "true"),
};
static const struct field_table receiver_table = FIELD_TABLE(NULL, receiver_rows, alert_receiver);

#define MATCH(of, key, ftype, member, ...) FIELD_AT(of, key, ftype, member, __VA_ARGS__)
#define MATCH_ROWS(of, flag)                                                                       \
    MATCH(of, "least", FIELD_ENUM, match.least, "info", .names = alert_severity_names,             \
          .flags = (flag), .doc = "of this severity and above"),                                   \
        MATCH(of, "rules", FIELD_STRV, match.rules, .flags = (flag), .doc = "patterns: node_*"),   \
        MATCH(of, "kinds", FIELD_STRV, match.kinds, .flags = (flag), .doc = "job, node, gpu …"),   \
        MATCH(of, "projects", FIELD_STRV, match.projects, .flags = (flag)),                        \
        MATCH(of, "users", FIELD_STRV, match.users, .flags = (flag)),                              \
        MATCH(of, "names", FIELD_STRV, match.names, .flags = (flag),                               \
              .doc = "patterns of what it is about: w1, job-*")
static const struct field route_rows[] = {
    MATCH_ROWS(alert_routing, 0u),
    FIELD_AT(alert_routing, "to", FIELD_STRV, to, .flags = FIELD_REQUIRED),
};
static const struct field_table route_table = FIELD_TABLE(NULL, route_rows, alert_routing);

enum { SILENCE_GIVEN = FIELD_STORED | FIELD_SHOWN | FIELD_ASKED };
#define SILENCE(key, ftype, member, ...) FIELD_AT(alert_silence, key, ftype, member, __VA_ARGS__)
static const struct field silence_rows[] = {
    SILENCE("id", FIELD_TEXT, id, .size = ALERT_ID_MAX, .flags = FIELD_STORED | FIELD_SHOWN),
    MATCH_ROWS(alert_silence, SILENCE_GIVEN),
    SILENCE("alert",
            FIELD_STR,
            alert,
            .flags = FIELD_STORED | FIELD_SHOWN,
            .doc = "what this one is about alone, by its id, also when that comes back as another"),
    SILENCE("rule", FIELD_STR, rule, .flags = FIELD_STORED),
    SILENCE("kind", FIELD_STR, kind, .flags = FIELD_STORED),
    SILENCE("name", FIELD_STR, name, .flags = FIELD_STORED),
    SILENCE("from", FIELD_TIME, from, .flags = FIELD_STORED | FIELD_SHOWN),
    SILENCE("until", FIELD_TIME, until, .flags = FIELD_STORED | FIELD_SHOWN),
    SILENCE("by", FIELD_STR, by, .flags = FIELD_STORED | FIELD_SHOWN | FIELD_ALWAYS),
    SILENCE("note", FIELD_STR, note, .flags = SILENCE_GIVEN, .doc = "why"),
};
const struct field_table alert_silence_table = FIELD_TABLE("Silence", silence_rows, alert_silence);

/* ---- argus.yaml ---- */

struct config_keys {
    const struct node *rules, *receivers, *routes;
};
#define CONFIG(key, ftype, member, ...) FIELD_AT(alert_config, key, ftype, member, __VA_ARGS__)
static const struct field config_rows[] = {
    CONFIG("secrets_of", FIELD_STR, secrets_of),
    CONFIG("wait", FIELD_SPAN, wait, "5s", .max = 600),
    CONFIG("settle", FIELD_SPAN, settle, "30s", .max = 3600),
    CONFIG("every", FIELD_SPAN, every, "2s", .min = 1, .max = 60),
    CONFIG("quiet.from", FIELD_STR, quiet_from),
    CONFIG("quiet.to", FIELD_STR, quiet_to),
    CONFIG("quiet.zone", FIELD_STR, zone, "+00:00"),
    CONFIG("quiet.below", FIELD_ENUM, quiet_below, "critical", .names = alert_severity_names),
    CONFIG("escalate.after", FIELD_SPAN, escalate_after, .max = 7 * 86400.0),
    CONFIG("escalate.least", FIELD_ENUM, escalate_least, "critical", .names = alert_severity_names),
    CONFIG("escalate.to", FIELD_STRV, escalate_to),
};
static const struct field_table config_table = FIELD_TABLE(NULL, config_rows, alert_config);

static void config_complain(const struct node *n,
                            const char *field,
                            struct problems *ps,
                            const char *code,
                            const struct message_arg *args)
{
    problems_add(ps, PROBLEM_ERROR, field, n ? n->line : 0, n ? n->column : 0, code, args);
}

static bool has_scheme(const char *url, const char *a, const char *b)
{
    return str_starts(url, a) || str_starts(url, b);
}

static void receiver_check_url(const struct alert_receiver *r,
                               const struct node *map,
                               struct problems *ps)
{
    bool mail = r->kind == ALERT_KIND_MAIL;
    const struct node *at = node_find(map, "url");
    if (r->kind == ALERT_KIND_LOG)
        return;
    if (!r->url == !r->url_secret)
        config_complain(map, "url", ps, "alert_url_one", MESSAGE_NO_ARGS);
    else if (r->url && mail && !has_scheme(r->url, "smtp://", "smtps://"))
        config_complain(at, "url", ps, "alert_url_mail", MESSAGE_NO_ARGS);
    else if (r->url && !mail && !has_scheme(r->url, "http://", "https://"))
        config_complain(at, "url", ps, "alert_url_http", MESSAGE_NO_ARGS);
    else if (r->url && strpbrk(r->url, " \r\n\t"))
        config_complain(at, "url", ps, "alert_url_blank", MESSAGE_NO_ARGS);
}

static bool mail_address_is_good(const char *a)
{
    const char *at = strchr(a, '@');
    return at && at != a && at[1] && !strpbrk(a, " \t\r\n<>,;\"");
}

static void receiver_check_mail(const struct alert_receiver *r,
                                const struct node *map,
                                struct problems *ps)
{
    if (r->kind != ALERT_KIND_MAIL)
        return;
    bool good = r->from && r->to.n > 0 && mail_address_is_good(r->from);
    for (size_t i = 0; good && i < r->to.n; i++)
        good = mail_address_is_good(r->to.v[i]);
    if (!good)
        config_complain(map, "to", ps, "alert_mail_addresses", MESSAGE_NO_ARGS);
    if (!r->user != !r->password)
        config_complain(map, "password", ps, "alert_mail_password", MESSAGE_NO_ARGS);
}

static void config_read_receiver(const struct node *map,
                                 struct alert_config *c,
                                 struct problems *ps)
{
    struct err err = {0};
    c->receivers = xrealloc(c->receivers, c->n_receivers + 1, sizeof(*c->receivers));
    struct alert_receiver *r = &c->receivers[c->n_receivers++];
    *r = (struct alert_receiver){0};
    conf_read_table(&receiver_table, FIELD_ALL, false, map, r, ps);
    r->name = xstrdup(map->key);
    if (access_check_name("receiver", r->name, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, "receivers", map->line, map->column, &err);
    if (!r->per_minute)
        r->per_minute = kind_most[r->kind];
    if ((r->secret || r->url_secret || r->password) && !c->secrets_of)
        config_complain(map, "secrets_of", ps, "alert_secrets_of", MESSAGE_NO_ARGS);
    receiver_check_url(r, map, ps);
    receiver_check_mail(r, map, ps);
}

static void config_check_names(const struct alert_config *c,
                               const struct strv *to,
                               const struct node *map,
                               struct problems *ps)
{
    for (size_t i = 0; i < to->n; i++)
        if (!alert_config_find(c, to->v[i]))
            problems_add(ps, PROBLEM_ERROR, "to", map ? map->line : 0, map ? map->column : 0,
                         "alert_no_receiver", MESSAGE_ARGS(MESSAGE_STR("receiver", to->v[i])));
}

static void config_read_route(const struct node *map, struct alert_config *c, struct problems *ps)
{
    c->routes = xrealloc(c->routes, c->n_routes + 1, sizeof(*c->routes));
    struct alert_routing *r = &c->routes[c->n_routes++];
    *r = (struct alert_routing){0};
    conf_read_table(&route_table, FIELD_ALL, false, map, r, ps);
    config_check_names(c, &r->to, map, ps);
}

/* "22:00": minutes; -1: it is none. */
static int64_t clock_minutes(const char *text)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    int64_t hours, minutes;
    if (!colon || strlen(colon) != 3)
        return -1;
    _cleanup_(freep) char *before = xstrndup(text, (size_t)(colon - text));
    if (str_to_int(before, 0, 23, &hours, NULL) < 0 ||
        str_to_int(colon + 1, 0, 59, &minutes, NULL) < 0)
        return -1;
    return hours * 60 + minutes;
}

static void config_read_quiet(const struct node *map, struct alert_config *c, struct problems *ps)
{
    bool west = c->zone && *c->zone == '-';
    int64_t zone = c->zone && strchr("+-", *c->zone) ? clock_minutes(c->zone + 1) : -1;
    c->quiet_first = clock_minutes(c->quiet_from);
    c->quiet_last = clock_minutes(c->quiet_to);
    c->offset = west ? -zone : zone;
    const struct node *quiet = node_find(map, "quiet");
    if (zone < 0)
        config_complain(quiet, "quiet.zone", ps, "alert_zone", MESSAGE_NO_ARGS);
    if ((c->quiet_from || c->quiet_to) && (c->quiet_first < 0 || c->quiet_last < 0))
        config_complain(quiet, "quiet", ps, "alert_quiet", MESSAGE_NO_ARGS);
}

/* The scalar keys apart from the three that are lists of things. */
static void config_read_keys(const struct node *map, struct alert_config *c, struct problems *ps)
{
    static const char *const lists[] = {"rules", "receivers", "routes"};
    struct field rows[array_len(config_rows) + array_len(lists)];
    struct {
        struct alert_config c;
        const struct node *node[array_len(lists)];
    } both = {0};
    memcpy(rows, config_rows, sizeof(config_rows));
    for (size_t i = 0; i < array_len(lists); i++)
        rows[array_len(config_rows) + i] =
            (struct field){.name = lists[i],
                           .type = FIELD_NODE,
                           .offset = (size_t)((char *)&both.node[i] - (char *)&both)};
    conf_read(rows, array_len(rows), map, &both, ps);
    *c = both.c;
}

void alert_config_read(const struct node *map, struct alert_config *ret, struct problems *ps)
{
    struct problems own = {0};
    if (map && node_is_null(map))
        map = NULL;
    config_read_keys(map, ret, ps);
    alert_rules_add_shipped(&ret->rules);
    if (alert_rules_read(node_find(map, "rules"), "argus.yaml", &ret->rules, &own) < 0)
        for (size_t i = 0; i < own.n; i++)
            problems_add_copy(ps, &own.v[i], own.v[i].field, own.v[i].line, own.v[i].column);
    problems_release(&own);
    const struct node *receivers = node_find(map, "receivers"), *routes = node_find(map, "routes");
    for (const struct node *n = receivers ? receivers->first : NULL;
         n && n->key && ret->n_receivers < RECEIVERS_MAX; n = n->next)
        config_read_receiver(n, ret, ps);
    for (const struct node *n = routes ? routes->first : NULL;
         n && !n->key && ret->n_routes < ROUTES_MAX; n = n->next)
        config_read_route(n, ret, ps);
    config_check_names(ret, &ret->escalate_to, node_find(map, "escalate"), ps);
    config_read_quiet(map, ret, ps);
}

void alert_config_release(struct alert_config *c)
{
    alert_rules_release(&c->rules);
    for (size_t i = 0; i < c->n_receivers; i++) {
        free(c->receivers[i].name);
        field_release(&receiver_table, &c->receivers[i]);
    }
    for (size_t i = 0; i < c->n_routes; i++)
        field_release(&route_table, &c->routes[i]);
    free(c->receivers);
    free(c->routes);
    field_release(&config_table, c);
    *c = (struct alert_config){0};
}

const struct alert_receiver *alert_config_find(const struct alert_config *c, const char *name)
{
    for (size_t i = 0; i < c->n_receivers; i++)
        if (str_eq(c->receivers[i].name, name))
            return &c->receivers[i];
    return NULL;
}

/* ---- notify ---- */

static const char notify_words[] = "succeeded,failed,stopped,timeout,interrupted,unknown,"
                                   "hung,verdict,metric";
static const char notify_usual[] = "failed,timeout,interrupted,unknown,hung,verdict,metric";

int alert_notify_check(const struct alert_config *c, const char *item, struct err *err)
{
    size_t n = strcspn(item, ":");
    _cleanup_(freep) char *name = xstrndup(item, n);
    if (!alert_config_find(c, name))
        return message_refuse(err, ERR_BAD_SPEC, "notify_no_receiver",
                              MESSAGE_ARGS(MESSAGE_STR("receiver", name)));
    if (item[n] && (!item[n + 1] || !str_list_has_all(notify_words, item + n + 1)))
        return message_refuse(
            err, ERR_BAD_SPEC, "notify_words",
            MESSAGE_ARGS(MESSAGE_STR("text", item + n + 1), MESSAGE_STR("words", notify_words)));
    return 0;
}

bool alert_notify_wants(const char *item, const char *word, struct strv *ret)
{
    size_t n = strcspn(item, ":");
    _cleanup_(freep) char *name = xstrndup(item, n);
    if (!str_list_has(item[n] ? item + n + 1 : notify_usual, word))
        return false;
    if (!strv_has(ret, name))
        strv_add(ret, name);
    return true;
}

/* ---- matching ---- */

static bool match_list(const struct strv *patterns, const char *text)
{
    bool found = patterns->n == 0;
    for (size_t i = 0; i < patterns->n && !found; i++)
        found = str_glob(patterns->v[i], str_or(text, ""));
    return found;
}

bool alert_match_is_open(const struct alert_match *m)
{
    return m->least == ALERT_INFO && !m->rules.n && !m->kinds.n && !m->projects.n && !m->users.n &&
           !m->names.n;
}

bool alert_matches(const struct alert_match *m, const struct alert *a)
{
    return a->severity >= m->least && match_list(&m->rules, a->rule) &&
           match_list(&m->kinds, alert_of_names[a->of]) && match_list(&m->projects, a->project) &&
           match_list(&m->users, a->owner) && match_list(&m->names, a->name);
}

void alert_silence_cover(struct alert_silence *s, const struct alert *a)
{
    if (!s->alert)
        s->alert = xstrdup(a->id);
    set_str(&s->rule, a->rule);
    set_str(&s->kind, alert_of_names[a->of]);
    set_str(&s->name, a->name);
}

/* Does it cover this alert: by its id, or by what it is about? */
static bool silence_has(const struct alert_silence *s,
                        const char *id,
                        const char *rule,
                        const char *kind,
                        const char *name)
{
    return str_eq(s->alert, id) ||
           (s->rule && str_eq(s->rule, rule) && str_eq(s->kind, kind) && str_eq(s->name, name));
}

bool alert_silence_is_again(const struct alert_silence *s, const struct alert_silence *other)
{
    return s->alert && other->alert &&
           silence_has(s, other->alert, other->rule, other->kind, other->name);
}

static bool silence_is_about(const struct alert_silence *s, const struct alert *a)
{
    return !s->alert || silence_has(s, a->id, a->rule, alert_of_names[a->of], a->name);
}

bool alert_silence_holds(const struct alert_silence *s, const struct alert *a, usec_t now)
{
    return now >= s->from && now < s->until && silence_is_about(s, a) &&
           alert_matches(&s->match, a);
}

bool alert_is_silenced(const struct alert_silence *silences,
                       size_t n,
                       const struct alert *a,
                       usec_t now)
{
    bool silent = false;
    for (size_t i = 0; i < n && !silent; i++)
        silent = alert_silence_holds(&silences[i], a, now);
    return silent;
}

static void route_add(struct strv *ret, const struct strv *to)
{
    for (size_t i = 0; i < to->n; i++)
        if (!strv_has(ret, to->v[i]))
            strv_add(ret, to->v[i]);
}

/* Without routes everybody hears of warnings and above. */
void alert_route(const struct alert_config *c, const struct alert *a, struct strv *ret)
{
    for (size_t i = 0; i < c->n_routes; i++)
        if (alert_matches(&c->routes[i].match, a))
            route_add(ret, &c->routes[i].to);
    for (size_t i = 0; !c->n_routes && a->severity >= ALERT_WARNING && i < c->n_receivers; i++)
        if (!strv_has(ret, c->receivers[i].name))
            strv_add(ret, c->receivers[i].name);
    route_add(ret, &a->notify);
}

bool alert_is_quiet(const struct alert_config *c, int severity, usec_t now)
{
    if (c->quiet_first < 0 || severity >= c->quiet_below)
        return false;
    int64_t minute = ((int64_t)(now / USEC_MIN) + c->offset) % DAY_MINUTES;
    bool over_midnight = c->quiet_first > c->quiet_last;
    bool after = minute >= c->quiet_first, before = minute < c->quiet_last;
    return over_midnight ? after || before : after && before;
}
