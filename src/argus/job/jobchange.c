/* SPDX-License-Identifier: Apache-2.0 */
/* jobchange.c - a name or a prefix becomes an id first, so that what is changed is what was
 * meant when the command began. Asking twice is once: a lost answer is asked for again. */
#include "argus/job/jobchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argus/job/jobview.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { TRIES = 3 };

int jobchange_one(struct cli *cli, const char *id, const struct jobchange *what, struct err *err)
{
    _cleanup_(json_unrefp) json_t *found = NULL, *job = NULL;
    char priority[32];
    int r = cli_get_job(cli, id, &found, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = cli_job_path(json_get_str(found, "id", id), what->verb);
    struct request request = {.method = "POST",
                              .path = path,
                              .content_type = what->body ? "application/json" : NULL,
                              .body = what->body,
                              .body_len = what->body ? strlen(what->body) : 0,
                              .tries = TRIES};
    r = client_json(cli->client, &request, &job, err);
    if (r < 0)
        return r;
    char *state = jobview_state(job);
    (void)fprintf(cli->out, "%s %s\n", json_get_str(job, "id", id), state);
    free(state);
    text_printf(priority, "%lld", (long long)json_get_int(job, "priority", 0));
    if (what->done)
        cli_say(cli, what->done, json_get_str(job, "id", id), priority, "");
    return 0;
}

static void jobchange_tell(struct cli *cli, const char *id, const struct err *why)
{
    _cleanup_(freep) char *said = cli_err_text(cli, why);
    cli_talk(cli, "argus: '%s': %s", id, said);
}

int jobchange_each(struct cli *cli,
                   const struct strv *ids,
                   const char *word,
                   jobchange_fn fn,
                   const void *ctx,
                   struct err *err)
{
    int result = 0;
    for (size_t i = 0; i < ids->n; i++) {
        struct err e = {0};
        int r = fn(cli, ids->v[i], ctx, &e);
        if (r < 0 && result < 0)
            jobchange_tell(cli, ids->v[i], &e);
        else if (r < 0)
            result =
                message_refuse(err, r, "cli_cannot_one",
                               MESSAGE_ARGS(MESSAGE_STR("verb", word), MESSAGE_STR("id", ids->v[i]),
                                            MESSAGE_ERR("why", &e)));
        if (r == -EINTR)
            break; /* the rest would be told the same */
    }
    return result;
}

static int jobchange_send(struct cli *cli, const char *id, const void *ctx, struct err *err)
{
    return jobchange_one(cli, id, ctx, err);
}

int jobchange_all(struct cli *cli,
                  const struct strv *ids,
                  const struct jobchange *what,
                  struct err *err)
{
    return jobchange_each(cli, ids, what->word, jobchange_send, what, err);
}
