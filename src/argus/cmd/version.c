/* SPDX-License-Identifier: Apache-2.0 */
/* version.c - our version, and the server's when there is one. */
#include "argus/cmd/cmd.h"

#include "argus/jobview.h"
#include "base/str.h"
#include "base/version.h"

struct version_opts {
    int output;
    bool client;
};

static const struct opt OPTS[] = {
    OPT_OUTPUT(struct version_opts),
    {.name = "client",
     .type = OPT_FLAG,
     .offset = offsetof(struct version_opts, client),
     .doc = "do not ask the server"},
};

static void print(struct cli *cli, const json_t *server)
{
    (void)fprintf(cli->out, "argus   %s (%s)\n", ARGUS_VERSION, ARGUS_COMMIT);
    if (!server)
        return;
    const json_t *ray = json_get_object(server, "ray");
    (void)fprintf(cli->out, "argusd  %s at %s\n", jobview_str(server, "version"),
                  cli->settings.server);
    (void)fprintf(cli->out, "Ray     %s\n",
                  json_get_str(ray, "version", json_get_str(ray, "ray_version", "-")));
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct version_opts *o = opts;
    _cleanup_(json_unrefp) json_t *server = NULL;
    (void)args;
    int r = cli_open(cli, err);
    if (r >= 0 && !o->client)
        r = client_get(cli->client, "/v1/version", &server, err);
    if (o->output < OUTPUT_JSON) {
        print(cli, server);
    } else {
        json_t *all = json_pack("{s:{s:s,s:s},s:O?}", "client", "version", ARGUS_VERSION, "commit",
                                ARGUS_COMMIT, "server", server);
        cli_emit(cli, all, o->output);
        json_decref(all);
    }
    return r < 0 ? r : 0;
}

const struct command cmd_version = {
    .name = "version",
    .args = "",
    .summary = "show the versions of client, server and Ray",
    .text = "Prints our own version even when the server cannot be reached (exit status 6).",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct version_opts),
    .run = run,
};
