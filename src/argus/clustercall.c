/* SPDX-License-Identifier: Apache-2.0 */
/* clustercall.c - see clustercall.h. Going up is asked of the server once and then looked at: it
 * goes on by itself. */
#include "argus/clustercall.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "argus/jobview.h"
#include "argus/text.h"
#include "base/str.h"

enum { PATH_MAX_BYTES = 1024, TRIES = 3, PAUSE_MS = 500, TEXT_MAX_BYTES = 2048 };

int clustercall_find(struct cli *cli, const char *name, json_t **ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    size_t i;
    json_t *v, *found = NULL;
    int r = client_get(cli->client, "/v1/clusters", &answer, err);
    if (r < 0)
        return r;
    const json_t *all = json_get_array(answer, "clusters");
    json_array_foreach (all, i, v)
        if (!name || str_eq(json_get_str(v, "name", ""), name))
            found = v;
    if (!name && json_array_size(all) > 1)
        return err_set(err, ERR_USAGE,
                       "there are several clusters: name one of 'argus cluster ls'");
    if (!found)
        return err_set(err, ERR_NOT_FOUND, "there is no cluster '%.80s'", str_or(name, ""));
    *ret = json_incref(found);
    return 0;
}

static const char *why_not(const json_t *cluster)
{
    return json_get_str(json_get_object(cluster, "reason"), "text", "");
}

void clustercall_print(struct cli *cli, const json_t *cluster)
{
    const json_t *head = json_get_object(cluster, "head");
    const char *ip = json_get_str(cluster, "head_ip", "");
    bool up = json_get_bool(cluster, "up", false);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(TEXT_MAX_BYTES);
    text_clean(&clean, why_not(cluster)); /* a longer one is cut */
    (void)fprintf(cli->out, "cluster '%s' is %s%s%s\n", jobview_str(cluster, "name"),
                  up ? "up" : "down", clean.len ? up ? "; nothing starts yet: " : ": " : "",
                  buf_str(&clean));
    (void)fprintf(cli->out, "  head %s, %s, Ray %s at %s\n", *ip ? ip : jobview_str(head, "host"),
                  json_get_bool(head, "managed", false) ? "started by argusd" : "not managed",
                  json_get_str(cluster, "ray_version", "-"), jobview_str(cluster, "address"));
    (void)fprintf(cli->out, "  %" PRId64 " of %" PRId64 " registered machines online, GPUs: %g\n",
                  json_get_int(cluster, "online", 0), json_get_int(cluster, "registered", 0),
                  json_get_real(cluster, "gpus", 0));
    (void)fflush(cli->out); /* ferror(out) tells at the end */
}

int clustercall_post(struct cli *cli,
                     const json_t *cluster,
                     const char *verb,
                     json_t *body,
                     struct err *err)
{
    _cleanup_(buf_release) struct buf path = BUF_INIT(PATH_MAX_BYTES);
    _cleanup_(json_unrefp) json_t *answer = NULL, *taken = body;
    char *text = taken ? json_dumps(taken, JSON_COMPACT) : NULL;
    (void)buf_adds(&path, "/v1/clusters/"); /* a name that does not fit is none: 404 */
    url_escape(&path, jobview_str(cluster, "name"));
    (void)buf_adds(&path, verb);
    struct request request = {.method = "POST",
                              .path = buf_str(&path),
                              .content_type = text ? "application/json" : NULL,
                              .body = text,
                              .body_len = text ? strlen(text) : 0,
                              .tries = TRIES};
    int r = client_json(cli->client, &request, &answer, err);
    free(text);
    return r < 0 ? r : 0;
}

int clustercall_wait_up(struct cli *cli, const json_t *cluster, usec_t timeout, struct err *err)
{
    usec_t deadline = clock_mono() + timeout;
    _cleanup_(freep) char *told = NULL;
    int r = cli_catch_interrupt(cli, err);
    while (r >= 0) {
        _cleanup_(json_unrefp) json_t *now = NULL;
        r = clustercall_find(cli, jobview_str(cluster, "name"), &now, err);
        if (r < 0)
            return r;
        if (json_get_bool(now, "up", false)) {
            clustercall_print(cli, now);
            return 0;
        }
        if (*why_not(now) && !str_eq(why_not(now), told)) {
            set_str(&told, why_not(now));
            cli_talk(cli, "%s", told);
        }
        if (clock_mono() >= deadline)
            return err_set(err, ERR_TIMEOUT, "the cluster did not come up in time; it is tried on");
        r = client_pause(cli->client, PAUSE_MS);
    }
    return r == -EINTR ? 128 + SIGINT : r;
}
