/* SPDX-License-Identifier: Apache-2.0 */
/* findingcall.c - the job is asked first, so that a name becomes an id and a refusal can say
 * why there is nothing: it still runs, or it ended well. See findingcall.h. */
#include "argus/job/findingcall.h"

#include <inttypes.h>
#include <stdlib.h>

#include "argus/cli/cli.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"

static int findingcall_refuse(const json_t *job, const char *id, int64_t attempt, struct err *err)
{
    const char *state = member_str(job, "state");
    if (attempt)
        return message_refuse(
            err, ERR_NOT_FOUND, "cli_no_finding_of",
            MESSAGE_ARGS(MESSAGE_NUM("attempt", attempt), MESSAGE_STR("job", id)));
    return message_refuse(err, ERR_NOT_FOUND, "cli_no_finding",
                          MESSAGE_ARGS(MESSAGE_STR("job", id), MESSAGE_STR("state", state)));
}

int findingcall_get(struct cli *cli,
                    const char *ref,
                    int64_t attempt,
                    json_t **ret,
                    char **ret_id,
                    struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL, *answer = NULL;
    json_t *found = NULL, *f;
    size_t i;
    int r = cli_get_job(cli, ref, &job, err);
    if (r < 0)
        return r;
    const char *id = json_get_str(job, "id", ref);
    _cleanup_(freep) char *path = cli_job_path(id, "/findings");
    r = client_get(cli->client, path, &answer, err);
    if (r < 0)
        return r;
    json_array_foreach (json_get_array(answer, "findings"), i, f)
        if (json_is_object(f) && (!attempt || json_get_int(f, "attempt", -1) == attempt))
            found = f;
    if (!found)
        return findingcall_refuse(job, id, attempt, err);
    *ret = json_incref(found);
    *ret_id = xstrdup(id);
    return 0;
}
