/* SPDX-License-Identifier: Apache-2.0 */
/* drainview.c - see drainview.h. The jobs are data and go to stdout, the sums are talk: with -o
 * json the plan has both. */
#include "argus/machine/drainview.h"

#include "argus/cli/command.h"
#include "argus/cli/listing.h"
#include "argus/show/cell.h"
#include "base/str.h"
#include "base/text.h"

static void drainview_fate(struct table *t, const json_t *job, const struct when *w)
{
    static const struct {
        const char *word;
        const char *says;
    } fates[] = {{"ends_before", "say_fate_ends"},
                 {"stopped", "say_fate_stopped"},
                 {"restarted", "say_fate_restarted"},
                 {"waited_for", "say_fate_waited"}};
    const char *fate = json_get_str(job, "fate", "");
    for (size_t i = 0; i < array_len(fates); i++)
        if (str_eq(fates[i].word, fate))
            fate = msg(w->lang, fates[i].says);
    table_add(t, STYLE_PLAIN, fate);
}

static void drainview_risk(struct table *t, const json_t *job, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%.1f", json_get_real(job, "at_risk_gpu_hours", 0));
}

static const struct column DRAINVIEW_JOBS[] = {
    {.title = "say_job", .flags = COLUMN_FLEX, .least = 12, .key = "job"},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "user"},
    {.title = "say_gpu_use", .flags = COLUMN_RIGHT, .key = "gpus", .as = CELL_VALUE},
    {.title = "say_step", .flags = COLUMN_RIGHT, .rank = 2, .key = "step", .as = CELL_VALUE},
    {.title = "say_fate", .draw = drainview_fate},
    {.title = "say_at_risk", .flags = COLUMN_RIGHT, .draw = drainview_risk},
    {.title = "say_ends", .rank = 1, .key = "ends_at", .as = CELL_TIME},
};

static const struct listing DRAINVIEW_LISTING = {.key = "jobs",
                                                 COLUMNS(DRAINVIEW_JOBS),
                                                 .none = "say_drain_no_jobs"};

static void drainview_ray_id(struct table *t, const json_t *job, const struct when *w)
{
    const char *ray_id = json_get_str(job, "ray_id", NULL);
    table_add(t, STYLE_PLAIN, ray_id ? ray_id : msg(w->lang, "say_foreign_unknown"));
}

static const struct column DRAINVIEW_FOREIGN[] = {
    {.title = "say_foreign_job", .flags = COLUMN_FLEX, .least = 12, .draw = drainview_ray_id},
    {.title = "say_owner", .flags = COLUMN_FLEX, .least = 6, .key = "owner"},
    {.title = "say_gpu_use", .flags = COLUMN_RIGHT, .key = "gpus", .as = CELL_VALUE},
    {.title = "say_cpus", .flags = COLUMN_RIGHT, .key = "cpus", .as = CELL_VALUE},
    {.title = "say_fate", .draw = drainview_fate},
};

static const struct listing DRAINVIEW_FOREIGN_LISTING = {.key = "foreign",
                                                         COLUMNS(DRAINVIEW_FOREIGN)};

void drainview_print_jobs(struct cli *cli, const json_t *plan)
{
    listing_print(cli, &DRAINVIEW_LISTING, plan, OUTPUT_TABLE, false);
}

void drainview_print(struct cli *cli, const json_t *plan, int output)
{
    char risk[32];
    listing_print(cli, &DRAINVIEW_LISTING, plan, output, false);
    if (output >= OUTPUT_JSON)
        return;
    if (json_array_size(json_get_array(plan, "foreign")))
        listing_print(cli, &DRAINVIEW_FOREIGN_LISTING, plan, output, false);
    text_printf(risk, "%.1f", json_get_real(plan, "at_risk_gpu_hours", 0));
    cli_say(cli, "say_drain_plan", risk, json_get_str(plan, "empty_at", "?"),
            json_get_str(plan, "empty_late_at", "?"));
}
