/* SPDX-License-Identifier: Apache-2.0 */
/* incident.c - incidents: alerts with one cause. */
#include "argus/noun/noun.h"

#include <stdio.h>

#include "argus/show/member.h"

static const struct opt LS_OPTS[] = {
    {.letter = 'a',
     .name = "all",
     .type = OPT_FLAG,
     .doc = "those that are over, too",
     .to = "query:all"},
    OPT_OUTPUT(struct listing_opts),
    OPT_UTC(struct listing_opts),
};
static const struct column INCIDENTS[] = {
    {.title = MSG_ID, .key = "id", .style = STYLE_BOLD},
    {.title = MSG_SEVERITY, .key = "severity"},
    {.title = MSG_SINCE, .key = "opened_at", .as = CELL_TIME},
    {.title = MSG_UNTIL, .rank = 2, .key = "closed_at", .as = CELL_TIME},
    {.title = MSG_JOBS, .flags = COLUMN_RIGHT, .rank = 1, .key = "jobs", .as = CELL_NUMBER},
    {.title = MSG_TEXT, .flags = COLUMN_ROOM, .key = "title"},
};

static void incident_print(struct cli *cli, const json_t *incident, const struct seen *seen)
{
    const json_t *a;
    size_t i;
    (void)seen;
    (void)fprintf(cli->out, "%s\n", member_str(incident, "title"));
    (void)fprintf(cli->out, "since %s, %s%s, %.2f GPU-hours\n", member_str(incident, "opened_at"),
                  json_get_bool(incident, "open", false) ? "open" : "over since ",
                  json_get_str(incident, "closed_at", ""), json_get_real(incident, "gpu_hours", 0));
    json_array_foreach (json_get_array(incident, "alerts"), i, a)
        (void)fprintf(cli->out, "%-6s %s %-9s %s\n", member_str(a, "id"), member_str(a, "since"),
                      member_str(a, "severity"), member_str(a, "text"));
}

static const struct command INCIDENT_COMMANDS[] = {
    {.name = "incident ls",
     .args = "",
     .summary = "list incidents",
     .text = "Alerts that have one cause are one incident: a lost node with 8 jobs is one.",
     OPTS(LS_OPTS),
     .ask = {.path = "/v1/incidents", .table = {.key = "incidents", COLUMNS(INCIDENTS)}}},
    {.name = "incident show",
     .args = "ID",
     .least = 1,
     .most = 1,
     .summary = "show one incident with its alerts",
     .text = "What you may see of it. GET /v1/incidents/ID/report is its report.",
     .ask = {.path = "/v1/incidents/{}", .print = incident_print}},
};

NOUN(incident, INCIDENT_COMMANDS);
