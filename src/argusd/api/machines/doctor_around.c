/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_around.c - checks of what stands between argusd and others: its certificate, the trackers
 * that argus.yaml names, and the Prometheus that takes its metrics; see doctor_run.h.
 *
 * Two certificates are looked at: the one that clients are shown, which was read when argusd
 * started, and the file as it is now. A file that was renewed helps nobody until argusd starts
 * anew. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/machines/doctor_run.h"
#include "argusd/trackers/trackers.h"
#include "base/str.h"
#include "base/text.h"

enum { DOCTOR_CERTIFICATE_DAYS = 21, DOCTOR_READ_MINUTES = 10, DOCTOR_HOST_MAX = 256 };

/* ---- the certificate ---- */

void doctor_look_at_tls(struct doctor_tls *t)
{
    if (!t->cert || http_check_tls(t->cert, t->key, &t->err) < 0 ||
        http_read_certificate(t->cert, &t->file, &t->err) < 0)
        return; /* err says it */
    t->err = (struct err){0};
}

/* The host of "host:port" or "[address]:port", without brackets; what does not fit is "". */
static const char *doctor_host(const char *text, char ret[static DOCTOR_HOST_MAX])
{
    const char *from = *text == '[' ? text + 1 : text;
    size_t n = strcspn(from, *text == '[' ? "]" : ":/");
    ret[0] = '\0';
    if (n < DOCTOR_HOST_MAX) {
        memcpy(ret, from, n);
        ret[n] = '\0';
    }
    return ret;
}

/* A tunnel, or a server in front that rewrote the name: who comes so is not told by the name. */
static bool doctor_is_near(const char *host)
{
    return !*host || str_eq(host, "localhost") || str_eq(host, "::1") || str_starts(host, "127.");
}

/* A name by which people come and for which the certificate is not; NULL: none. */
static const char *doctor_wrong_name(const struct doctor_sight *s,
                                     char host[static DOCTOR_HOST_MAX])
{
    static const char https[] = "https://";
    const struct certificate *c = &s->look->tls.file;
    const char *url = s->a->settings->notebooks_url;
    /* A door on loopback is behind a server that has a certificate of its own. */
    if (url && str_starts(url, https) &&
        !doctor_is_near(doctor_host(s->a->settings->notebooks_listen, host)) &&
        !certificate_is_for(c, doctor_host(url + sizeof(https) - 1, host)))
        return host;
    if (s->host && !doctor_is_near(doctor_host(s->host, host)) && !certificate_is_for(c, host))
        return host;
    return NULL;
}

static void doctor_say_end(struct doctor_sight *s, usec_t served)
{
    const struct doctor_tls *t = &s->look->tls;
    char at[CLOCK_TEXT_MAX], later[CLOCK_TEXT_MAX];
    bool is_over = served <= s->now;
    bool is_soon = !is_over && served - s->now <= DOCTOR_CERTIFICATE_DAYS * USEC_DAY;
    if (!is_over && !is_soon)
        doctor_say(s, "certificate", DOCTOR_WELL, "doctor_certificate",
                   MESSAGE_ARGS(MESSAGE_STR("file", t->cert),
                                MESSAGE_STR("at", clock_to_string(served, at))));
    else if (t->file.ends > served)
        doctor_say(s, "certificate", is_over ? DOCTOR_ILL : DOCTOR_SOON,
                   "doctor_certificate_renewed",
                   MESSAGE_ARGS(MESSAGE_STR("file", t->cert),
                                MESSAGE_STR("at", clock_to_string(served, at)),
                                MESSAGE_STR("later", clock_to_string(t->file.ends, later))));
    else if (is_over)
        doctor_say(s, "certificate", DOCTOR_ILL, "doctor_certificate_over",
                   MESSAGE_ARGS(MESSAGE_STR("file", t->cert),
                                MESSAGE_STR("at", clock_to_string(served, at))));
    else
        doctor_say(s, "certificate", DOCTOR_SOON, "doctor_certificate_soon",
                   MESSAGE_ARGS(MESSAGE_STR("file", t->cert),
                                MESSAGE_STR("at", clock_to_string(served, at)),
                                MESSAGE_NUM("days", (served - s->now) / USEC_DAY)));
}

void doctor_see_certificate(struct doctor_sight *s)
{
    const struct doctor_look *k = s->look;
    usec_t served = http_server_cert_ends(s->a->http);
    char host[DOCTOR_HOST_MAX];
    const char *wrong;
    bool is_near = doctor_is_near(doctor_host(s->a->settings->listen, host));
    if (!s->a->settings->tls_cert) /* beyond loopback argusd starts with a warning, too */
        doctor_say(s, "certificate", is_near ? DOCTOR_WELL : DOCTOR_SOON,
                   is_near ? "doctor_certificate_none" : "doctor_certificate_clear",
                   MESSAGE_ARGS(MESSAGE_STR("listen", s->a->settings->listen)));
    else if (!k->is_over)
        doctor_say(s, "certificate", DOCTOR_UNKNOWN, "doctor_certificate_unseen", MESSAGE_NO_ARGS);
    else if (k->tls.err.code)
        doctor_say(s, "certificate", DOCTOR_ILL, "doctor_certificate_ill",
                   MESSAGE_ARGS(MESSAGE_ERR("why", &k->tls.err)));
    else if (served > s->now && (wrong = doctor_wrong_name(s, host)))
        doctor_say(s, "certificate", DOCTOR_ILL, "doctor_certificate_name",
                   MESSAGE_ARGS(MESSAGE_STR("host", wrong), MESSAGE_STR("file", k->tls.cert)));
    else
        doctor_say_end(s, served ? served : k->tls.file.ends);
}

/* ---- trackers ---- */

static void doctor_say_tracker(struct doctor_sight *s, const struct tracker_sight *t)
{
    if (t->status)
        doctor_say(s, "trackers", DOCTOR_ILL, "doctor_trackers_status",
                   MESSAGE_ARGS(MESSAGE_STR("name", t->name), MESSAGE_STR("url", t->url),
                                MESSAGE_NUM("status", t->status)));
    else
        doctor_say(s, "trackers", DOCTOR_ILL, "doctor_trackers_ill",
                   MESSAGE_ARGS(MESSAGE_STR("name", t->name), MESSAGE_STR("url", t->url),
                                MESSAGE_ERR("why", &t->err)));
}

void doctor_see_trackers(struct doctor_sight *s)
{
    const struct settings *set = s->a->settings;
    const struct tracker_sight *ill = NULL;
    _cleanup_(strv_release) struct strv names = {0};
    size_t n, unseen = 0;
    const struct tracker_sight *v = trackers_seen(s->a->trackers, &n);
    for (size_t i = 0; i < n; i++) {
        unseen += !v[i].is_known;
        if (v[i].is_known && !v[i].answers && !ill)
            ill = &v[i];
        strv_add(&names, v[i].name);
    }
    _cleanup_(freep) char *all = n ? strv_join(&names, ", ") : NULL;
    if (!set->tracker_wandb && !set->tracker_mlflow && !set->tracker_swanlab)
        doctor_say(s, "trackers", DOCTOR_WELL, "doctor_trackers_none", MESSAGE_NO_ARGS);
    else if (ill)
        doctor_say_tracker(s, ill);
    else if (unseen || !n)
        doctor_say(s, "trackers", DOCTOR_UNKNOWN, "doctor_trackers_unseen", MESSAGE_NO_ARGS);
    else
        doctor_say(s, "trackers", DOCTOR_WELL, "doctor_trackers",
                   MESSAGE_ARGS(MESSAGE_STR("names", all)));
}

/* ---- Prometheus ---- */

void doctor_see_prometheus(struct doctor_sight *s)
{
    const struct metrics_takers *m = &s->a->metrics_takers;
    char at[CLOCK_TEXT_MAX];
    usec_t long_ago = s->now - DOCTOR_READ_MINUTES * USEC_MIN;
    if (m->failing_since)
        doctor_say(s, "prometheus", DOCTOR_ILL, "doctor_push_ill",
                   MESSAGE_ARGS(MESSAGE_STR("since", clock_to_string(m->failing_since, at)),
                                MESSAGE_STR("why", m->why)));
    else if (m->pushed_at)
        doctor_say(s, "prometheus", DOCTOR_WELL, "doctor_push",
                   MESSAGE_ARGS(MESSAGE_STR("at", clock_to_string(m->pushed_at, at))));
    else if (s->a->settings->write_url)
        doctor_say(s, "prometheus", DOCTOR_UNKNOWN, "doctor_push_unseen", MESSAGE_NO_ARGS);
    else if (m->read_at > long_ago)
        doctor_say(s, "prometheus", DOCTOR_WELL, "doctor_scrape",
                   MESSAGE_ARGS(MESSAGE_STR("at", clock_to_string(m->read_at, at))));
    else
        doctor_say(s, "prometheus", DOCTOR_UNKNOWN, "doctor_scrape_unseen",
                   MESSAGE_ARGS(MESSAGE_NUM("minutes", DOCTOR_READ_MINUTES)));
}
