/* SPDX-License-Identifier: Apache-2.0 */
/* courier.c - see courier.h. Secrets are read when a message is sent, and wiped after.
 *
 * A mail is one transaction per address: of several recipients in one, SMTP and libcurl do not tell
 * which was refused, and one bad address would be the end of the mail for all. */
#include "argusd/courier/courier.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/seal.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"
#include "ray/wire.h"

enum { REPLY_MAX = 64 << 10 };
static const usec_t SEND_TIMEOUT = 15 * USEC_SEC, CONNECT_TIMEOUT = 5 * USEC_SEC;
static const usec_t BACKOFF_FIRST = 2 * USEC_SEC, BACKOFF_MOST = 5 * USEC_MIN;

struct courier {
    struct courier_parts p;
    struct wire *wire;
    struct wire_request *running;
    courier_f cb;
    void *arg;
    usec_t after;                   /* monotonic: not before */
    int fails;                      /* in a row */
    usec_t failing_since, taken_at; /* monotonic, wall */
    char trouble[300];
    /* the mail that runs: its text, the key, who is asked now, and how the others answered */
    struct alert_letter letter;
    char *password;
    struct strv *having;
    void (*had)(void *arg);
    size_t asked;
    struct strv asking; /* one address */
    bool again;
    char refused[300], waits[300];
};

int courier_new(const struct courier_parts *parts, struct courier **ret, struct err *err)
{
    struct courier *c = xcalloc(1, sizeof(*c));
    struct wire_options opt = {.loop = parts->loop,
                               .user_agent = "argus/" ARGUS_VERSION,
                               .ca_file = parts->to->ca_file,
                               .connect_timeout = CONNECT_TIMEOUT,
                               .parallel_max = 1,
                               .reach = parts->to->url_secret ? REACH_OUTSIDE : REACH_NAMED,
                               .networks = parts->networks};
    c->p = *parts;
    int r = wire_new(&opt, &c->wire, err);
    if (r < 0) {
        free(c);
        return r;
    }
    *ret = c;
    return 0;
}

static void mail_release(struct courier *c)
{
    if (c->password)
        seal_forget(c->password, strlen(c->password));
    free(c->password);
    c->password = NULL;
    c->having = NULL;
    c->had = NULL;
    alert_letter_release(&c->letter);
    strv_release(&c->asking);
}

void courier_free(struct courier *c)
{
    if (!c)
        return;
    wire_free(c->wire);
    mail_release(c);
    free(c);
}

bool courier_is_ready(const struct courier *c, usec_t mono)
{
    return !c->running && mono >= c->after;
}

/* ---- how it went ---- */

void courier_failed(struct courier *c, const char *why, usec_t mono)
{
    usec_t wait = BACKOFF_FIRST;
    for (int i = 0; i < c->fails && wait < BACKOFF_MOST; i++)
        wait *= 2;
    c->after = mono + (wait < BACKOFF_MOST ? wait : BACKOFF_MOST);
    if (!c->fails++)
        log_warn(c->p.log, "%s takes no message: %s; it is tried again", c->p.said, why);
    if (!c->failing_since)
        c->failing_since = mono;
    text_copy(c->trouble, why);
}

void courier_settled(struct courier *c, const char *why_not)
{
    if (c->fails)
        log_info(c->p.log, "%s takes messages again", c->p.said);
    c->fails = 0;
    c->failing_since = 0;
    c->after = 0;
    text_copy(c->trouble, str_or(why_not, ""));
    if (!why_not)
        c->taken_at = clock_wall();
}

void courier_state(const struct courier *c, struct courier_state *ret)
{
    usec_t span = clock_mono() - c->failing_since;
    *ret = (struct courier_state){.taken_at = c->taken_at,
                                  .failing_for = c->failing_since ? (span ? span : 1) : 0,
                                  .trouble = c->trouble};
}

static enum alert_verdict courier_judge(const struct courier *c,
                                        const struct wire_reply *reply,
                                        struct err *err)
{
    *err = reply->err;
    return reply->status ? alert_judge((enum alert_kind)c->p.to->kind, reply->status, reply->body,
                                       reply->len, err)
                         : ALERT_AGAIN;
}

static void courier_on_reply(const struct wire_reply *reply, void *arg)
{
    struct courier *c = arg;
    struct err err;
    enum alert_verdict v = courier_judge(c, reply, &err);
    c->running = NULL;
    c->cb(v, v == ALERT_TAKEN ? "" : err.text, c->arg);
}

/* ---- a mail ---- */

static void mail_on_reply(const struct wire_reply *reply, void *arg);

/* False: nobody is left to be asked. */
static bool mail_ask_next(struct courier *c)
{
    const struct alert_receiver *to = c->p.to;
    while (c->asked < to->to.n && c->having && strv_has(c->having, to->to.v[c->asked]))
        c->asked++;
    if (c->asked == to->to.n)
        return false;
    strv_release(&c->asking);
    strv_add(&c->asking, to->to.v[c->asked++]);
    struct wire_order w = {.method = "POST",
                           .url = c->letter.url,
                           .body = buf_str(&c->letter.body),
                           .timeout = SEND_TIMEOUT,
                           .max_bytes = REPLY_MAX,
                           .is_fresh = true,
                           .said = c->p.said,
                           .mail_from = to->from,
                           .mail_to = &c->asking,
                           .user = to->user,
                           .password = c->password};
    c->running = wire_send(c->wire, &w, mail_on_reply, c);
    return true;
}

static void mail_note(char to[static 300], const char *address, const char *why)
{
    _cleanup_(freep) char *before = xstrdup(to);
    text_printf_to(to, 300, "%s%s%.100s: %.120s", before, *before ? "; " : "", address, why);
}

static void mail_end(struct courier *c)
{
    bool any = c->having && c->having->n > 0;
    enum alert_verdict v = c->again ? ALERT_AGAIN : any ? ALERT_TAKEN : ALERT_REFUSED;
    char why[300];
    text_copy(why, c->again ? c->waits : c->refused);
    mail_release(c);
    c->cb(v, why, c->arg);
}

static void mail_on_reply(const struct wire_reply *reply, void *arg)
{
    struct courier *c = arg;
    struct err err;
    enum alert_verdict v = courier_judge(c, reply, &err);
    c->running = NULL;
    if (v == ALERT_TAKEN && c->having)
        strv_add(c->having, c->asking.v[0]);
    if (v == ALERT_TAKEN && c->had)
        c->had(c->arg);
    if (v == ALERT_REFUSED)
        mail_note(c->refused, c->asking.v[0], err.text);
    if (v == ALERT_AGAIN) {
        c->again = true;
        mail_note(c->waits, c->asking.v[0], err.text);
    }
    if (!reply->status || !mail_ask_next(c)) /* no server: it has none for the others either */
        mail_end(c);
}

/* ---- sending ---- */

static void courier_take_keys(const struct courier *c, struct pairs *ret)
{
    const struct alert_receiver *r = c->p.to;
    const char *const wanted[] = {r->url_secret, r->secret, r->password};
    struct strv names = {0};
    for (size_t i = 0; i < array_len(wanted); i++)
        if (wanted[i] && !strv_has(&names, wanted[i]))
            strv_add(&names, wanted[i]);
    secrets_reveal_of(c->p.secrets, c->p.secrets_of, &names, ret);
    strv_release(&names);
}

static const char *key_find(const struct pairs *keys, const char *name, const char **ret_missing)
{
    const char *value = name ? pairs_find(keys, name) : NULL;
    if (name && !value)
        *ret_missing = name;
    return value;
}

static bool url_is_of_kind(const struct alert_receiver *r, const char *url)
{
    return r->kind == ALERT_KIND_MAIL ? str_starts(url, "smtp://") || str_starts(url, "smtps://")
                                      : str_starts(url, "http://") || str_starts(url, "https://");
}

static void mail_begin(struct courier *c,
                       const struct courier_message *m,
                       struct alert_letter *taken,
                       const char *password)
{
    mail_release(c);
    c->letter = *taken;
    *taken = (struct alert_letter){0};
    c->password = xstrdup(password);
    c->having = m->having;
    c->had = m->had;
    c->asked = 0;
    c->again = false;
    *c->refused = *c->waits = 0;
    if (!mail_ask_next(c)) /* all have it: the caller's fault */
        mail_release(c);
}

static void courier_post(struct courier *c,
                         const struct courier_message *m,
                         const struct alert_order *order,
                         const char *password,
                         usec_t mono)
{
    struct alert_letter letter = {0};
    struct err err = {0};
    if (alert_form(order, &letter, &err) < 0) {
        courier_failed(c, err.text, mono);
    } else if (c->p.to->kind == ALERT_KIND_MAIL) {
        mail_begin(c, m, &letter, password);
    } else {
        struct wire_order w = {.method = "POST",
                               .url = letter.url,
                               .body = buf_str(&letter.body),
                               .timeout = SEND_TIMEOUT,
                               .max_bytes = REPLY_MAX,
                               .is_fresh = true,
                               .headers = &letter.headers,
                               .said = c->p.said};
        c->running = wire_send(c->wire, &w, courier_on_reply, c);
    }
    alert_letter_release(&letter);
}

/* Fills in what only now may be known, and sends. */
bool courier_send(struct courier *c,
                  const struct courier_message *m,
                  courier_f cb,
                  void *arg,
                  usec_t mono)
{
    const struct alert_receiver *r = c->p.to;
    const char *missing = NULL;
    char why[200];
    struct pairs keys = {0};
    c->cb = cb;
    c->arg = arg;
    courier_take_keys(c, &keys);
    const char *url = r->url_secret ? key_find(&keys, r->url_secret, &missing) : r->url;
    const char *secret = key_find(&keys, r->secret, &missing);
    const char *password = key_find(&keys, r->password, &missing);
    struct alert_order order = {.to = r,
                                .url = url,
                                .secret = secret,
                                .id = m->id,
                                .payloads = m->payloads,
                                .n = m->n,
                                .body = m->body,
                                .now = clock_wall()};
    if (missing) {
        text_printf(why, "there is no secret '%.60s' of %.60s: store it with 'argus secret set'",
                    missing, str_or(c->p.secrets_of, "anybody"));
        courier_failed(c, why, mono);
    } else if (!url || !url_is_of_kind(r, url)) {
        text_printf(why, "the secret '%.60s' is not a valid URL for its kind",
                    str_or(r->url_secret, ""));
        courier_failed(c, why, mono);
    } else {
        courier_post(c, m, &order, password, mono);
    }
    pairs_wipe(&keys);
    return c->running != NULL;
}
