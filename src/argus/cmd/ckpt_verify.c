/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_verify.c - read a checkpoint to its last byte. */
#include "argus/cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argus/datacall.h"
#include "argus/jobview.h"
#include "base/str.h"

struct verify_opts {
    int output;
};

static const struct opt OPTS[] = {OPT_OUTPUT(struct verify_opts)};

/* The newest of a list; 0: none. */
static int64_t newest(const json_t *answer)
{
    const json_t *all = json_get_array(answer, "checkpoints");
    return json_get_int(json_array_get(all, json_array_size(all) - 1), "step", 0);
}

static int find_step(struct cli *cli, const char *id, int64_t *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = cli_job_path(id, "/checkpoints");
    int r = client_get(cli->client, path, &answer, err);
    if (r < 0)
        return r;
    *ret = newest(answer);
    return *ret ? 0 : err_set(err, ERR_NOT_FOUND, "job '%s' has no checkpoint", id);
}

static int verify(struct cli *cli, const char *id, int64_t step, int output, struct err *err)
{
    char rest[64], size[DATACALL_SIZE_MAX];
    _cleanup_(json_unrefp) json_t *c = NULL;
    (void)snprintf(rest, sizeof(rest), "/checkpoints/%lld:verify", (long long)step); /* fits */
    _cleanup_(freep) char *path = cli_job_path(id, rest);
    struct request request = {.method = "POST", .path = path};
    int r = client_json(cli->client, &request, &c, err);
    if (r < 0)
        return r;
    if (output >= OUTPUT_JSON)
        cli_emit(cli, c, output);
    else
        (void)fprintf(cli->out, "step %lld %s, %s%s%s\n", (long long)step, jobview_str(c, "state"),
                      datacall_size(json_get_int(c, "bytes", 0), size),
                      json_get_str(c, "why", NULL) ? ": " : "", json_get_str(c, "why", ""));
    return json_get_bool(c, "verified", false)
               ? 0
               : err_set(err, ERR_REFUSED, "the checkpoint of step %lld cannot be gone on from",
                         (long long)step);
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct verify_opts *o = opts;
    const char *colon = strrchr(args->v[0], ':');
    _cleanup_(freep) char *id =
        xstrndup(args->v[0], colon ? (size_t)(colon - args->v[0]) : strlen(args->v[0]));
    int64_t step = 0;
    int r = 0;
    if (colon && str_to_int(colon + 1, 1, INT32_MAX, &step, NULL) < 0)
        return err_set(err, ERR_USAGE, "'%.60s' is no step: give ID or ID:STEP", colon + 1);
    r = cli_open(cli, err);
    if (r >= 0 && !colon)
        r = find_step(cli, id, &step, err);
    return r < 0 ? r : verify(cli, id, step, o->output, err);
}

const struct command cmd_ckpt_verify = {
    .name = "ckpt verify",
    .args = "ID[:STEP]",
    .least = 1,
    .most = 1,
    .summary = "read a checkpoint to its last byte",
    .text = "Every byte of every shard is read and held against its CRC; without STEP those of the "
            "newest. What is read by itself, before each use, is a shard's directory and its small "
            "members: that tells a torn one, but not a byte that was changed within a tensor.",
    .example = "argus ckpt verify grpo-7:200",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct verify_opts),
    .run = run,
};
