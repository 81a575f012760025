/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - the Ray clusters that the server knows. Going up is asked of the server once and then
 * looked at: it goes on by itself. */
#include "argus/noun/noun.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argus/job/jobview.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/message.h"

enum { TRIES = 3, PAUSE_MS = 500, TEXT_MAX_BYTES = 2048, JOBS_MAX = 10000 };
static const usec_t PATIENCE = 180 * USEC_SEC;

static const struct opt LS_OPTS[] = {LISTING_OPTS};
static const struct opt STATUS_OPTS[] = {OPT_OUTPUT(struct listing_opts)};

static void cluster_state(struct table *t, const json_t *cluster, const struct when *w)
{
    bool up = json_get_bool(cluster, "up", false);
    (void)w;
    table_add(t, up ? STYLE_GREEN : STYLE_RED, up ? "up" : "down");
}

static void cluster_head(struct table *t, const json_t *cluster, const struct when *w)
{
    const json_t *head = json_get_object(cluster, "head");
    const char *ip = json_get_str(cluster, "head_ip", NULL);
    (void)w;
    table_addf(t, STYLE_PLAIN, "%s%s", str_or(ip, json_get_str(head, "host", "-")),
               json_get_bool(head, "managed", false) ? " (managed)" : "");
}

static void cluster_nodes(struct table *t, const json_t *cluster, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%" PRId64 "/%" PRId64, json_get_int(cluster, "online", 0),
               json_get_int(cluster, "registered", 0));
}

static const struct column CLUSTERS[] = {
    {.title = "say_cluster", .flags = COLUMN_FLEX, .least = 8, .key = "name"},
    {.title = "say_state", .draw = cluster_state},
    {.title = "say_head", .flags = COLUMN_FLEX, .least = 8, .draw = cluster_head},
    {.title = "say_ray", .rank = 3, .key = "ray_version"},
    {.title = "say_nodes", .flags = COLUMN_RIGHT, .rank = 1, .draw = cluster_nodes},
    {.title = "say_total", .flags = COLUMN_RIGHT, .rank = 2, .key = "gpus", .as = CELL_NUMBER},
    {.title = "say_address", .flags = COLUMN_WIDE, .key = "address"},
    {.title = "say_reason", .flags = COLUMN_ROOM, .key = "reason.text"},
};

static const struct column FOREIGN[] = {
    {.title = "say_id", .flags = COLUMN_NAME, .least = 16, .key = "ray_id"},
    {.title = "say_state", .flags = COLUMN_FLEX, .least = 8, .key = "state"},
    {.title = "say_project", .flags = COLUMN_FLEX, .least = 8, .key = "project"},
    {.title = "say_owner", .flags = COLUMN_FLEX, .least = 8, .rank = 1, .key = "owner"},
    {.title = "say_node", .flags = COLUMN_FLEX, .least = 8, .rank = 2, .key = "node"},
    {.title = "say_since", .rank = 3, .key = "started_at", .as = CELL_TIME},
};

static const struct column ACTORS[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 12, .key = "class_name"},
    {.title = "say_state", .key = "state"},
    {.title = "say_job", .flags = COLUMN_FLEX, .least = 10, .key = "job"},
    {.title = "say_node", .flags = COLUMN_FLEX, .least = 8, .rank = 1, .key = "node"},
    {.title = "say_id", .flags = COLUMN_WIDE, .key = "actor_id"},
};

static const struct column GROUPS[] = {
    {.title = "say_id", .flags = COLUMN_FLEX, .least = 12, .key = "placement_group_id"},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 6, .rank = 1, .key = "name"},
    {.title = "say_state", .key = "state"},
    {.title = "say_job", .flags = COLUMN_FLEX, .least = 10, .key = "job"},
};

static const struct column PAIRS[] = {
    {.title = "say_node", .flags = COLUMN_FLEX, .least = 8, .key = "a"},
    {.title = "say_node", .flags = COLUMN_FLEX, .least = 8, .key = "b"},
    {.title = "say_mbps", .flags = COLUMN_RIGHT, .key = "mbps", .as = CELL_NUMBER},
    {.title = "say_percent", .flags = COLUMN_RIGHT, .key = "percent", .as = CELL_NUMBER},
    {.title = "say_at", .rank = 2, .key = "at", .as = CELL_TIME},
    {.title = "say_job", .flags = COLUMN_FLEX, .least = 10, .rank = 1, .key = "job"},
};

/* By name; without one the only one there is. *ret is a new reference. */
static int cluster_find(struct cli *cli, const char *name, json_t **ret, struct err *err)
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
        return message_refuse(err, ERR_USAGE, "cli_several_clusters", MESSAGE_NO_ARGS);
    if (!found)
        return message_refuse(err, ERR_NOT_FOUND, "cli_no_cluster",
                              MESSAGE_ARGS(MESSAGE_STR("name", str_or(name, ""))));
    *ret = json_incref(found);
    return 0;
}

static int cluster_name(struct cli *cli, char **ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *cluster = NULL;
    int r = cluster_find(cli, NULL, &cluster, err);
    if (r == 0)
        *ret = xstrdup(json_get_str(cluster, "name", ""));
    return r;
}

static const char *cluster_why_not(const json_t *cluster)
{
    return json_get_str(json_get_object(cluster, "reason"), "text", "");
}

static void cluster_print(struct cli *cli, const json_t *cluster)
{
    const json_t *head = json_get_object(cluster, "head");
    const char *ip = json_get_str(cluster, "head_ip", "");
    bool up = json_get_bool(cluster, "up", false);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(TEXT_MAX_BYTES);
    text_clean(&clean, cluster_why_not(cluster)); /* a longer one is cut */
    (void)fprintf(cli->out, "cluster '%s' is %s%s%s\n", member_str(cluster, "name"),
                  up ? "up" : "down", clean.len ? up ? "; nothing starts yet: " : ": " : "",
                  buf_str(&clean));
    (void)fprintf(cli->out, "  head %s, %s, Ray %s at %s\n", *ip ? ip : member_str(head, "host"),
                  json_get_bool(head, "managed", false) ? "started by argusd" : "not managed",
                  json_get_str(cluster, "ray_version", "-"), member_str(cluster, "address"));
    (void)fprintf(cli->out, "  %" PRId64 " of %" PRId64 " registered machines online, GPUs: %g\n",
                  json_get_int(cluster, "online", 0), json_get_int(cluster, "registered", 0),
                  json_get_real(cluster, "gpus", 0));
    (void)fflush(cli->out); /* ferror(out) tells at the end */
}

/* verb: ":down"; body is taken, NULL = none. */
static int cluster_post(struct cli *cli,
                        const json_t *cluster,
                        const char *verb,
                        json_t *body,
                        struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *named = ask_path("/v1/clusters/{}", member_str(cluster, "name"));
    _cleanup_(freep) char *path = xasprintf("%s%s", named, verb);
    int r = ask_send(cli, "POST", path, body, TRIES, &answer, err);
    return r < 0 ? r : 0;
}

/* Until Ray answers; why it does not is told on stderr. ERR_TIMEOUT. */
static int cluster_wait_up(struct cli *cli, const json_t *cluster, usec_t timeout, struct err *err)
{
    usec_t deadline = clock_mono() + timeout;
    _cleanup_(freep) char *told = NULL;
    int r = cli_catch_interrupt(cli, err);
    while (r >= 0) {
        _cleanup_(json_unrefp) json_t *now = NULL;
        r = cluster_find(cli, member_str(cluster, "name"), &now, err);
        if (r < 0)
            return r;
        if (json_get_bool(now, "up", false)) {
            cluster_print(cli, now);
            return 0;
        }
        if (*cluster_why_not(now) && !str_eq(cluster_why_not(now), told)) {
            set_str(&told, cluster_why_not(now));
            cli_talk(cli, "%s", told);
        }
        if (clock_mono() >= deadline)
            return message_refuse(err, ERR_TIMEOUT, "cli_cluster_late", MESSAGE_NO_ARGS);
        r = client_pause(cli->client, PAUSE_MS);
    }
    return r == -EINTR ? 128 + SIGINT : r;
}

static int cluster_status(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct listing_opts *o = opts;
    _cleanup_(json_unrefp) json_t *cluster = NULL;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = cluster_find(cli, args->n ? args->v[0] : NULL, &cluster, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, cluster, o->output);
    else
        cluster_print(cli, cluster);
    return json_get_bool(cluster, "up", false)
               ? 0
               : message_refuse(err, ERR_UNAVAILABLE, "cli_cluster_down",
                                MESSAGE_ARGS(MESSAGE_STR("name", member_str(cluster, "name"))));
}

static int cluster_up(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    _cleanup_(json_unrefp) json_t *cluster = NULL;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = cluster_find(cli, args->n ? args->v[0] : NULL, &cluster, err);
    if (r >= 0)
        r = cluster_post(cli, cluster, ":up", NULL, err);
    return r < 0 ? r : cluster_wait_up(cli, cluster, PATIENCE, err);
}

struct cluster_down_opts {
    bool yes, stop_foreign;
};

static const struct opt DOWN_OPTS[] = {
    {.letter = 'y',
     .name = "yes",
     .type = OPT_FLAG,
     .offset = offsetof(struct cluster_down_opts, yes),
     .doc = "stop it without asking"},
    {.name = "stop-foreign",
     .type = OPT_FLAG,
     .offset = offsetof(struct cluster_down_opts, stop_foreign),
     .doc = "stop it though jobs run that Argus did not submit: they end with it"},
};

/* Names what would end. */
static int cluster_tell_jobs(struct cli *cli, size_t *ret_n, struct err *err)
{
    _cleanup_(json_unrefp) json_t *jobs = NULL;
    bool more = false;
    size_t i;
    json_t *job;
    int r =
        jobview_list(cli, "?state=STARTING,RUNNING,STOPPING&all=1", JOBS_MAX, &jobs, &more, err);
    json_array_foreach (jobs, i, job)
        cli_talk(cli, "%s %s %s", member_str(job, "id"), member_str(job, "user"),
                 member_str(job, "state"));
    *ret_n = json_array_size(jobs);
    return r;
}

static int cluster_ask(const char *cluster, size_t jobs, struct err *err)
{
    char answer[16];
    if (!isatty(STDIN_FILENO))
        return message_refuse(err, ERR_USAGE, "cli_cluster_no_terminal",
                              MESSAGE_ARGS(MESSAGE_STR("name", cluster)));
    (void)fprintf(stderr, "stop cluster '%s' and these %zu jobs? [y/N] ", cluster, jobs);
    if (!fgets(answer, sizeof(answer), stdin) || (*answer != 'y' && *answer != 'Y'))
        return message_refuse(err, ERR_USAGE, "cli_nothing_stopped", MESSAGE_NO_ARGS);
    return 0;
}

static int cluster_down(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct cluster_down_opts *o = opts;
    _cleanup_(json_unrefp) json_t *cluster = NULL;
    size_t jobs = 0;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = cluster_find(cli, args->n ? args->v[0] : NULL, &cluster, err);
    if (r >= 0)
        r = cluster_tell_jobs(cli, &jobs, err);
    if (r >= 0 && !o->yes)
        r = cluster_ask(member_str(cluster, "name"), jobs, err);
    if (r < 0)
        return r;
    json_t *body = json_pack("{s:b}", "stop_jobs", 1);
    if (o->stop_foreign)
        (void)json_object_set_new(body, "stop_foreign", json_true()); /* fails for lack of memory */
    return cluster_post(cli, cluster, ":down", body, err);
}

/* ---- jobs that others gave to Ray ---- */

struct adopt_opts {
    int output;
    const char *project, *user, *cluster;
};

static const struct opt ADOPT_OPTS[] = {
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct adopt_opts, project),
     .arg = "NAME",
     .doc = "project that it belongs to from now on; needed"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct adopt_opts, user),
     .arg = "NAME",
     .doc = "owner of the job; you, if not given"},
    {.name = "cluster",
     .type = OPT_TEXT,
     .offset = offsetof(struct adopt_opts, cluster),
     .arg = "NAME",
     .doc = "which one, where there are several"},
    OPT_OUTPUT(struct adopt_opts),
};

static int cluster_adopt(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct adopt_opts *o = opts;
    _cleanup_(json_unrefp) json_t *cluster = NULL, *answer = NULL;
    if (!o->project)
        return message_refuse(err, ERR_USAGE, "cli_which_project", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = cluster_find(cli, o->cluster, &cluster, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *at = ask_path("/v1/clusters/{}", member_str(cluster, "name"));
    _cleanup_(freep) char *of = ask_path("/foreign/{}:adopt", args->v[0]);
    _cleanup_(freep) char *path = xasprintf("%s%s", at, of);
    json_t *body = json_pack("{s:s, s:s*}", "project", o->project, "user", o->user);
    r = ask_send(cli, "POST", path, body, TRIES, &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        (void)fprintf(cli->out, "%s is of project %s, user %s\n", member_str(answer, "ray_id"),
                      member_str(answer, "project"), member_str(answer, "owner"));
    return 0;
}

static const struct command CLUSTER_COMMANDS[] = {
    {
        .name = "cluster ls",
        .args = "",
        .summary = "list the clusters",
        .text = "One row for each Ray cluster: whether Ray answers, where its head is and "
                "whether argusd starts it, how many of the registered machines are online, "
                "and GPUs in total.",
        .example = "argus cluster ls --watch\tuntil Ctrl-C",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/clusters",
                .table = {.key = "clusters", COLUMNS(CLUSTERS), .none = "say_no_nodes"}},
    },
    {
        .name = "cluster status",
        .args = "[NAME]",
        .most = 1,
        .summary = "show whether a cluster works",
        .text = "Shows the head, the version of Ray, and how many machines are online. The "
                "exit status is 6 when the cluster is down.",
        .example = "argus cluster status\tthe only one needs no name",
        OPTS(STATUS_OPTS),
        .opts_size = sizeof(struct listing_opts),
        .run = cluster_status,
    },
    {
        .name = "cluster up",
        .args = "[NAME]",
        .most = 1,
        .summary = "start a managed cluster",
        .text = "Makes sure that the head runs (ray.head.managed in argus.yaml) and that the "
                "machines join again, and returns when Ray answers. What runs already is "
                "left as it is.",
        .example = "argus cluster up\tafter 'argus cluster down'",
        .run = cluster_up,
    },
    {
        .name = "cluster down",
        .args = "[NAME]",
        .most = 1,
        .summary = "stop a managed cluster",
        .text = "Stops exactly what argusd started: the jobs, Ray on the machines, then the head. "
                "The jobs that would end are named first, and nothing is stopped before you "
                "agree. Jobs that Argus did not submit are in the way. 'argus cluster up' "
                "brings it back.",
        .example = "argus cluster down\tasks",
        OPTS(DOWN_OPTS),
        .opts_size = sizeof(struct cluster_down_opts),
        .run = cluster_down,
    },
    {
        .name = "cluster foreign",
        .args = "[NAME]",
        .most = 1,
        .summary = "list the jobs of a cluster that others gave to Ray",
        .text = "Jobs that Argus did not submit, and the records of those that were adopted, "
                "whether Ray still knows them or not.",
        .example = "argus cluster foreign",
        OPTS(LS_OPTS),
        .ask = {.name_if_none = cluster_name,
                .path = "/v1/clusters/{}/foreign",
                .table = {.key = "foreign", COLUMNS(FOREIGN), .none = "say_no_foreign"}},
    },
    {
        .name = "cluster actors",
        .args = "[NAME]",
        .most = 1,
        .summary = "list Ray's actors, each with its job",
        .text = "Where each runs and whose it is. Actors of jobs that you may not see are listed "
                "without their job.",
        .example = "argus cluster actors",
        OPTS(LS_OPTS),
        .ask = {.name_if_none = cluster_name,
                .path = "/v1/clusters/{}/actors",
                .table = {.key = "actors", COLUMNS(ACTORS)}},
    },
    {
        .name = "cluster groups",
        .args = "[NAME]",
        .most = 1,
        .summary = "list Ray's placement groups, each with its job",
        .text = "A group that a job left behind keeps GPUs from others: its job has ended and its "
                "state is CREATED.",
        .example = "argus cluster groups -o json\twith their bundles",
        OPTS(LS_OPTS),
        .ask = {.name_if_none = cluster_name,
                .path = "/v1/clusters/{}/placement_groups",
                .table = {.key = "placement_groups", COLUMNS(GROUPS)}},
    },
    {
        .name = "cluster network",
        .args = "[NAME]",
        .most = 1,
        .summary = "list what pairs of machines reached, and how much of their baseline",
        .text = "The newest result of each pair that 'argus node check --net' measured.",
        .example = "argus cluster network",
        OPTS(LS_OPTS),
        .ask = {.name_if_none = cluster_name,
                .path = "/v1/clusters/{}/network",
                .table = {.key = "pairs", COLUMNS(PAIRS)}},
    },
    {
        .name = "adopt",
        .args = "RAY_ID",
        .least = 1,
        .most = 1,
        .summary = "give a job of others a record: its project and owner",
        .text = "The job was given to Ray by somebody else ('argus cluster foreign'). From now on "
                "its project's members see whose it is, and how it ended even when Ray has "
                "forgotten it. Argus never stops or deletes an adopted job; the job has no lease, "
                "and the GPUs that it holds do not count as free. Again with another project: it "
                "moves.",
        .example = "argus adopt raysubmit_7Hq2 --project rlhf --user alice",
        OPTS(ADOPT_OPTS),
        .opts_size = sizeof(struct adopt_opts),
        .run = cluster_adopt,
    },
};

NOUN(cluster, CLUSTER_COMMANDS);
