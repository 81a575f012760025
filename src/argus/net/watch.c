/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - the long-poll of watch.h. A server that answers at once although
 * nothing changed (it knows no ?wait=) is asked once a second and no faster. */
#include "argus/net/watch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/text.h"

struct watch {
    struct client *client;
    char *path;
    char etag[128];
    struct transfer *transfer;
    usec_t not_before; /* mono */
    char trouble[512];
};

struct watch *watch_new(struct client *c, const char *path)
{
    struct watch *w = xcalloc(1, sizeof(*w));
    w->client = c;
    w->path = xstrdup(path);
    return w;
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    transfer_free(w->transfer);
    free(w->path);
    free(w);
}

const char *watch_trouble(const struct watch *w)
{
    return *w->trouble ? w->trouble : NULL;
}

static void watch_start(struct watch *w)
{
    char *path = xasprintf("%s%s", w->path, *w->etag ? "?wait=30s" : "");
    struct request request = {.path = path, .etag = *w->etag ? w->etag : NULL};
    w->transfer = transfer_start(w->client, &request, NULL, NULL);
    w->not_before = clock_mono() + USEC_SEC;
    free(path);
}

static int watch_finish(struct watch *w, json_t **ret_job, struct err *err)
{
    struct response *response = transfer_response(w->transfer);
    struct err e = {0};
    int r = transfer_result(w->transfer, &e);
    if (r == 0 && response->status >= 500)
        r = response_error(response, &e);
    text_copy(w->trouble, r < 0 ? e.text : "");
    if (r < 0 || response->status == 304)
        return 0;
    r = response_error(response, err);
    if (r < 0)
        return r;
    r = json_parse(buf_str(&response->body), response->body.len, CLIENT_BODY_MAX, ret_job, err);
    if (r < 0)
        return r;
    client_say(w->client, *ret_job);
    text_copy(w->etag, response->etag);
    return 1;
}

int watch_step(struct watch *w, json_t **ret_job, struct err *err)
{
    if (!w->transfer) {
        if (clock_mono() >= w->not_before)
            watch_start(w);
        return 0;
    }
    if (!transfer_is_done(w->transfer))
        return 0;
    int r = watch_finish(w, ret_job, err);
    transfer_free(w->transfer);
    w->transfer = NULL;
    return r;
}
