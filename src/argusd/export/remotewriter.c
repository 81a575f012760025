/* SPDX-License-Identifier: Apache-2.0 */
/* remotewriter.c - see remotewriter.h. A tick makes the page, and keeps it until its answer: what
 * was taken is what the next one is compared with. A tick that finds one on its way makes none.
 *
 * Each page is later than all that the receiver may have, whatever the wall clock says. One that
 * was refused does not count: its time may have been wrong, as that of a clock that ran ahead. */
#include "argusd/export/remotewriter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argusd/api/metrics.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"
#include "core/figure/remote_write.h"
#include "http/expo.h"
#include "ray/wire.h"

enum {
    WRITER_BODY_MAX = 2 * METRICS_PAGE_MAX,
    WRITER_REPLY_MAX = 16 << 10, /* a sentence about what was refused, which nobody reads */
};
static const usec_t WRITER_CONNECT = 5 * USEC_SEC, WRITER_TIMEOUT = 10 * USEC_SEC;

struct remotewriter {
    struct api *a;
    struct wire *wire; /* NULL: nothing is pushed */
    uv_timer_t timer;
    bool has_timer, closing;
    char *page;       /* on its way; NULL: none is */
    char *taken;      /* the newest one that was taken; NULL: none yet */
    int64_t at_ms;    /* time of the page on its way */
    int64_t taken_ms; /* time of the one that was taken; 0: none yet */
    int64_t last_ms;  /* time of the newest one that was not refused: it may be without answer */
    uint64_t taken_count, failures;
    bool is_failing;
    char host[256];
};

static void writer_fail(struct remotewriter *rw, const char *why)
{
    if (!rw->is_failing) {
        log_warn("export", "metrics could not be pushed: %s", why);
        rw->a->metrics_takers.failing_since = clock_wall();
    }
    text_copy(rw->a->metrics_takers.why, why);
    rw->is_failing = true;
    rw->failures++;
    free(rw->page);
    rw->page = NULL;
}

/* A receiver's own words are not logged: they are as long as it likes. */
static void writer_on_reply(const struct wire_reply *reply, void *arg)
{
    struct remotewriter *rw = arg;
    char why[80];
    if (rw->closing)
        return;
    rw->last_ms = reply->status >= 300 && reply->status < 500 ? rw->taken_ms : rw->at_ms;
    if (!reply->status) {
        writer_fail(rw, reply->err.text);
    } else if (reply->status / 100 != 2) {
        text_printf(why, "the receiver answered with status %d", reply->status);
        writer_fail(rw, why);
    } else {
        if (rw->is_failing)
            log_info("export", "metrics are pushed again");
        rw->is_failing = false;
        rw->a->metrics_takers.failing_since = 0;
        rw->a->metrics_takers.pushed_at = clock_wall();
        rw->taken_count++;
        rw->taken_ms = rw->at_ms;
        free(rw->taken);
        rw->taken = rw->page;
        rw->page = NULL;
    }
}

static void writer_send(struct remotewriter *rw, const struct buf *body)
{
    const struct settings *set = rw->a->settings;
    struct strv headers = {0};
    strv_add(&headers, "Content-Encoding: snappy");
    strv_add(&headers, "X-Prometheus-Remote-Write-Version: 0.1.0");
    if (!secrets_add_bearer(rw->a->secrets, set->write_secrets_of, set->write_token, &headers)) {
        writer_fail(rw, "the secret remote_write.token is not there: argus secret set");
    } else {
        const struct wire_order order = {.method = "POST",
                                         .url = set->write_url,
                                         .body = buf_str(body),
                                         .body_len = body->len,
                                         .timeout = WRITER_TIMEOUT,
                                         .max_bytes = WRITER_REPLY_MAX,
                                         .headers = &headers,
                                         .type = "application/x-protobuf",
                                         .said = "remote_write.url"};
        (void)wire_send(rw->wire, &order, writer_on_reply, rw); /* wire_free() ends it */
    }
    for (size_t i = 0; i < headers.n; i++)
        explicit_bzero(headers.v[i], strlen(headers.v[i]));
    strv_release(&headers);
}

/* Its page, as an admin sees it: argus.yaml says who is told. */
static bool writer_make_page(struct remotewriter *rw)
{
    static const struct access_who everything = {
        .user = "argusd", .role = ACCESS_ADMIN, .sees_all = true};
    struct buf page = BUF_INIT(METRICS_PAGE_MAX);
    metrics_page(rw->a, &everything, &page);
    rw->page = buf_take_whole(&page);
    return rw->page != NULL;
}

static void writer_push(struct remotewriter *rw)
{
    const struct settings *set = rw->a->settings;
    const struct remote_write_label labels[] = {
        {"job", "argusd"}, {"instance", str_or(set->write_instance, rw->host)}};
    struct buf body = BUF_INIT(WRITER_BODY_MAX);
    struct err err = {0};
    if (rw->page)
        return;
    if (!writer_make_page(rw)) {
        writer_fail(rw, "the page is too large");
        return;
    }
    rw->at_ms = remote_write_time((int64_t)(clock_wall() / USEC_MS), rw->last_ms);
    const struct remote_write of = {.page = rw->page,
                                    .before = rw->taken,
                                    .at_ms = rw->at_ms,
                                    .labels = labels,
                                    .n_labels = array_len(labels)};
    if (remote_write_body(&of, &body, &err) < 0)
        writer_fail(rw, err.text);
    else
        writer_send(rw, &body);
    buf_release(&body);
}

static void writer_on_tick(uv_timer_t *timer)
{
    writer_push(timer->data);
}

/* ---- life ---- */

struct remotewriter *remotewriter_new(struct api *a)
{
    struct remotewriter *rw = xcalloc(1, sizeof(*rw));
    const struct settings *set = a->settings;
    const struct wire_options opt = {.loop = a->loop,
                                     .user_agent = "argus/" ARGUS_VERSION,
                                     .ca_file = set->write_ca_file,
                                     .connect_timeout = WRITER_CONNECT,
                                     .parallel_max = 1,
                                     .reach = REACH_NAMED,
                                     .networks = &set->call_networks};
    struct err err = {0};
    rw->a = a;
    if (gethostname(rw->host, sizeof(rw->host) - 1) < 0)
        text_copy(rw->host, "argusd");
    if (set->write_url && wire_new(&opt, &rw->wire, &err) < 0)
        log_err("export", "metrics cannot be pushed: %s", err.text);
    return rw;
}

void remotewriter_start(struct remotewriter *rw)
{
    if (!rw->wire)
        return;
    uint64_t every = rw->a->settings->write_every / USEC_MS;
    uv_timer_init(rw->a->loop, &rw->timer);
    rw->timer.data = rw;
    rw->has_timer = true;
    uv_timer_start(&rw->timer, writer_on_tick, every, every);
}

void remotewriter_close(struct remotewriter *rw)
{
    if (!rw || rw->closing)
        return;
    rw->closing = true;
    if (rw->has_timer)
        uv_close((uv_handle_t *)&rw->timer, NULL);
    wire_free(rw->wire);
    rw->wire = NULL;
}

void remotewriter_free(struct remotewriter *rw)
{
    if (!rw)
        return;
    free(rw->page);
    free(rw->taken);
    free(rw);
}

void remotewriter_put_metrics(const struct remotewriter *rw, struct expo *e)
{
    expo_one(e, EXPO_COUNTER, "remote_write_pages_total",
             "Pages of metrics that a Prometheus elsewhere has taken.", (double)rw->taken_count);
    expo_one(e, EXPO_COUNTER, "remote_write_failures_total",
             "Pages of metrics that could not be pushed.", (double)rw->failures);
}
