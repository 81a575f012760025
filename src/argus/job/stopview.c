/* SPDX-License-Identifier: Apache-2.0 */
/* stopview.c - see stopview.h. A name or a prefix becomes an id first, as where it is stopped. */
#include "argus/job/stopview.h"

#include <inttypes.h>

#include "argus/job/jobchange.h"
#include "argus/show/member.h"
#include "argus/show/msg.h"
#include "base/str.h"
#include "base/text.h"

/* One line of data: a sentence with these texts. */
static void stopview_line(struct cli *cli, const char *code, const char *const texts[3])
{
    char line[1024];
    (void)fprintf(cli->out, "%s\n", msg_fill(cli->term.lang, code, texts, line, sizeof(line)));
}

static void stopview_print(struct cli *cli, const json_t *plan)
{
    char gpus[32], risk[32], step[32], hidden[32];
    int64_t saved = json_get_int(plan, "saved_step", 0), more = json_get_int(plan, "hidden", 0);
    const json_t *one;
    size_t i;
    text_printf(gpus, "%g", json_get_real(plan, "gpus", 0));
    text_printf(risk, "%.1f", json_get_real(plan, "at_risk_gpu_hours", 0));
    stopview_line(cli, "say_stop_plan", (const char *[]){member_str(plan, "job"), gpus, risk});
    text_printf(step, "%" PRId64, saved);
    if (saved > 0)
        stopview_line(cli, "say_stop_saved", (const char *[]){step, "", ""});
    json_array_foreach (json_get_array(plan, "jobs"), i, one)
        stopview_line(cli, "say_stop_job",
                      (const char *[]){member_str(one, "job"), member_str(one, "user"), ""});
    json_array_foreach (json_get_array(plan, "steps"), i, one)
        stopview_line(cli,
                      str_eq(member_str(one, "fate"), "skipped") ? "say_stop_skipped"
                                                                 : "say_stop_cancelled",
                      (const char *[]){member_str(one, "step"), member_str(one, "run"), ""});
    text_printf(hidden, "%" PRId64, more);
    if (more > 0)
        stopview_line(cli, "say_stop_hidden", (const char *[]){hidden, "", ""});
}

static int stopview_one(struct cli *cli, const char *id, const void *ctx, struct err *err)
{
    const int *output = ctx;
    _cleanup_(json_unrefp) json_t *found = NULL, *plan = NULL;
    int r = cli_get_job(cli, id, &found, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = cli_job_path(json_get_str(found, "id", id), ":stop?dry_run=1");
    const struct request request = {.method = "POST", .path = path};
    r = client_json(cli->client, &request, &plan, err);
    if (r >= 0 && *output >= OUTPUT_JSON)
        cli_emit(cli, plan, *output);
    else if (r >= 0)
        stopview_print(cli, plan);
    return r;
}

int stopview_run(struct cli *cli, const struct strv *ids, int output, struct err *err)
{
    return jobchange_each(cli, ids, "stop", stopview_one, &output, err);
}
