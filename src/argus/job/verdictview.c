/* SPDX-License-Identifier: Apache-2.0 */
/* verdictview.c - see verdictview.h. The page of a job in the browser shows the same samples: the
 * best ones where the reward itself is in doubt, else the worst. */
#include "argus/job/verdictview.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { LOOK_AT = 5 };

int64_t verdictview_step(const json_t *steps, int64_t since)
{
    int64_t after = -1, before = -1;
    size_t i;
    const json_t *one;
    json_array_foreach (steps, i, one) {
        int64_t step = json_get_int(one, "step", -1);
        if (step >= since && (after < 0 || step < after))
            after = step;
        if (step < since && step > before)
            before = step;
    }
    return after >= 0 ? after : before;
}

/* Yours to free(). NULL: it has no samples, or the server does not tell. */
static char *verdictview_look(struct cli *cli, const char *job, const json_t *item)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = cli_job_path(job, "/samples?kind=rollout&limit=1&text=1");
    if (!cli->client || client_get(cli->client, path, &answer, NULL) < 0)
        return NULL;
    int64_t since = json_get_int(item, "step", 0);
    int64_t step = verdictview_step(json_get_array(answer, "steps"), since);
    bool is_reward = strstr(json_get_str(item, "kind", ""), "reward") != NULL;
    return step < 0 ? NULL
                    : xasprintf("argus samples %s --step %" PRId64 " --%s %d --full", job, step,
                                is_reward ? "best" : "worst", LOOK_AT);
}

/* All that stands but the first. */
static void verdictview_others(const json_t *items, verdictview_line_f *line, void *page)
{
    size_t i;
    const json_t *one;
    json_array_foreach (items, i, one)
        if (i && json_is_true(json_object_get(one, "stands")))
            line(page, i == 1 ? "say_l_beside" : NULL, STYLE_PLAIN, json_get_str(one, "text", ""));
}

void verdictview_print(struct cli *cli,
                       const char *job,
                       const json_t *verdict,
                       verdictview_line_f *line,
                       void *page)
{
    const char *state = json_get_str(verdict, "state", "");
    const json_t *items = json_get_array(verdict, "items");
    enum style style = str_eq(state, "bad")    ? STYLE_RED
                       : str_eq(state, "fine") ? STYLE_GREEN
                                               : STYLE_PLAIN;
    line(page, "say_l_verdict", style, json_get_str(verdict, "text", ""));
    if (!json_get_str(verdict, "kind", NULL))
        return;
    _cleanup_(freep) char *look = verdictview_look(cli, job, json_array_get(items, 0));
    line(page, "say_l_advice", STYLE_PLAIN, json_get_str(verdict, "fix", ""));
    line(page, "say_l_look", STYLE_PLAIN, look);
    verdictview_others(items, line, page);
}
