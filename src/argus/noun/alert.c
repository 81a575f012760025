/* SPDX-License-Identifier: Apache-2.0 */
/* alert.c - alerts, silences, rules and receivers: what is wrong, and who is told. */
#include "argus/noun/noun.h"

#include <stdio.h>

#include "argus/show/member.h"

static const char *const STATES[] = {"open", "silenced", "past", "all", NULL};
static const char *const SEVERITIES[] = {"", "info", "warning", "critical", NULL};

static const struct opt LS_OPTS[] = {
    {.name = "state",
     .type = OPT_CHOICE,
     .arg = "STATE",
     .doc = "open (if not given), silenced, past or all",
     .choices = STATES,
     .to = "query:state"},
    {.name = "severity",
     .type = OPT_CHOICE,
     .arg = "SEVERITY",
     .doc = "info, warning or critical",
     .choices = SEVERITIES,
     .to = "query:severity"},
    LISTING_OPTS,
};
static const struct opt LISTS[] = {LISTING_OPTS};
static const struct opt ACK_OPTS[] = {
    {.name = "note", .type = OPT_TEXT, .arg = "TEXT", .doc = "what is done", .to = "body:note"},
};
static const struct opt SILENCE_OPTS[] = {
    {.name = "for",
     .type = OPT_TEXT,
     .arg = "SPAN",
     .doc = "how long: 30m, 2h, 1d",
     .to = "body:for",
     .need = "say for how long: --for 2h"},
    {.name = "note", .type = OPT_TEXT, .arg = "TEXT", .doc = "why", .to = "body:note"},
};
static const struct opt RULE_OPTS[] = {
    {.name = "of",
     .type = OPT_TEXT,
     .arg = "KIND",
     .doc = "job, node, gpu, cluster, root, queue, quota or argusd",
     .to = "body:of",
     .need = "say what it is about: --of node"},
    {.name = "when",
     .type = OPT_TEXT,
     .arg = "EXPR",
     .doc = "an expression over facts: 'disk_free < 50GiB'",
     .to = "body:when",
     .need = "say when: --when 'disk_free < 50GiB'"},
    {.name = "text",
     .type = OPT_TEXT,
     .arg = "TEXT",
     .doc = "the sentence; {fact} is what it is then",
     .to = "body:text",
     .need = "say what is told: --text \"node '{name}' has {disk_free:bytes} left\""},
    {.name = "zh", .type = OPT_TEXT, .arg = "TEXT", .doc = "in Chinese", .to = "body:zh"},
    {.name = "for",
     .type = OPT_TEXT,
     .arg = "SPAN",
     .doc = "so long it must hold",
     .to = "body:for"},
    {.name = "clear", .type = OPT_TEXT, .arg = "EXPR", .doc = "what ends it", .to = "body:clear"},
    {.name = "clear-for",
     .type = OPT_TEXT,
     .arg = "SPAN",
     .doc = "so long that must hold",
     .to = "body:clear_for"},
    {.name = "severity",
     .type = OPT_CHOICE,
     .arg = "SEVERITY",
     .doc = "info, warning (if not given) or critical",
     .choices = SEVERITIES,
     .to = "body:severity"},
    {.name = "fix", .type = OPT_TEXT, .arg = "TEXT", .doc = "what to do", .to = "body:fix"},
    {.name = "off", .type = OPT_FLAG, .doc = "it is not asked", .to = "body:off"},
};

static const struct column ALERTS[] = {
    {.title = MSG_ID, .key = "id", .style = STYLE_BOLD},
    {.title = MSG_SEVERITY, .key = "severity"},
    {.title = MSG_RULE, .flags = COLUMN_FLEX, .least = 8, .rank = 2, .key = "rule"},
    {.title = MSG_INCIDENT, .rank = 1, .key = "incident"},
    {.title = MSG_SINCE, .key = "since", .as = CELL_TIME},
    {.title = MSG_ACKED, .flags = COLUMN_FLEX, .least = 6, .rank = 3, .key = "acked_by"},
    {.title = MSG_TEXT, .flags = COLUMN_ROOM, .key = "text"},
};
static const struct column RULES[] = {
    {.title = MSG_NAME, .flags = COLUMN_FLEX, .least = 12, .key = "name", .style = STYLE_BOLD},
    {.title = MSG_KIND, .key = "of"},
    {.title = MSG_SEVERITY, .key = "severity"},
    {.title = MSG_FROM, .rank = 1, .key = "from"},
    {.title = MSG_WHEN, .flags = COLUMN_ROOM, .key = "when"},
};
static const struct column RECEIVERS[] = {
    {.title = MSG_NAME, .flags = COLUMN_FLEX, .least = 12, .key = "name", .style = STYLE_BOLD},
    {.title = MSG_KIND, .key = "kind"},
    {.title = MSG_WAITING, .flags = COLUMN_RIGHT, .key = "waiting", .as = CELL_NUMBER},
    {.title = MSG_LAST_USE, .key = "taken_at", .as = CELL_TIME},
    {.title = MSG_REASON, .flags = COLUMN_ROOM, .key = "trouble"},
};

static const struct column SILENCES[] = {
    {.title = MSG_ID, .key = "id", .style = STYLE_BOLD},
    {.title = MSG_USER, .flags = COLUMN_FLEX, .least = 6, .key = "by"},
    {.title = MSG_UNTIL, .key = "until", .as = CELL_TIME},
    {.title = MSG_ALERT, .rank = 1, .key = "alert"},
    {.title = MSG_NAME,
     .flags = COLUMN_FLEX,
     .least = 8,
     .rank = 2,
     .key = "names",
     .as = CELL_LIST},
    {.title = MSG_RULE,
     .flags = COLUMN_FLEX,
     .least = 8,
     .rank = 2,
     .key = "rules",
     .as = CELL_LIST},
    {.title = MSG_NOTE, .flags = COLUMN_ROOM, .key = "note"},
};

static void alert_print(struct cli *cli, const json_t *alert, const struct seen *seen)
{
    static const char *const keys[] = {
        "id",   "rule", "severity", "kind",     "name",     "user",     "project",  "incident",
        "text", "fix",  "since",    "ended_at", "acked_by", "acked_at", "ack_note", "silenced_by"};
    (void)seen;
    for (size_t i = 0; i < array_len(keys); i++)
        if (*json_get_str(alert, keys[i], ""))
            (void)fprintf(cli->out, "%-12s %s\n", keys[i], member_str(alert, keys[i]));
}

#define ONE(words) .args = (words), .least = 1, .most = 1
static const struct command ALERT_COMMANDS[] = {
    {.name = "alert ls",
     .args = "",
     .summary = "list alerts",
     .text = "Those of your own jobs and projects, and of machines, cluster, queue and argusd. An "
             "alert is one rule about one thing while it holds; what has one cause is one "
             "incident: see 'argus incident ls'.",
     OPTS(LS_OPTS),
     .ask = {.path = "/v1/alerts", .table = {.key = "alerts", COLUMNS(ALERTS)}}},
    {.name = "alert show",
     ONE("ID"),
     .summary = "show one alert",
     .text = "What it is about, since when, what to do, who acknowledged it.",
     .ask = {.path = "/v1/alerts/{}", .print = alert_print}},
    {.name = "alert ack",
     ONE("ID"),
     .summary = "acknowledge an alert: somebody cares",
     .text = "Nothing is escalated then; the alert stays open until its cause is gone.",
     OPTS(ACK_OPTS),
     .ask = {.method = "POST",
             .path = "/v1/alerts/{}:ack",
             .done = MSG_DONE_CHANGED,
             .subject = "alert {id}"}},
    {.name = "alert silence",
     ONE("ID"),
     .summary = "tell nobody of an alert for a while",
     .text = "The alert stays in 'argus alert ls --state silenced'.",
     .example = "argus alert silence a17 --for 2h --note 'disk is being replaced'",
     OPTS(SILENCE_OPTS),
     .ask = {.method = "POST",
             .path = "/v1/alerts/{}:silence",
             .done = MSG_DONE_CHANGED,
             .subject = "alert {id}"}},
    {.name = "alert silences",
     .args = "",
     .summary = "list silences",
     .text = "Also those that are over, for a day.",
     OPTS(LISTS),
     .ask = {.path = "/v1/silences", .table = {.key = "silences", COLUMNS(SILENCES)}}},
    {.name = "alert unsilence",
     ONE("SILENCE"),
     .summary = "end a silence",
     .text = "For admins.",
     .ask = {.method = "DELETE",
             .path = "/v1/silences/{}",
             .done = MSG_DONE_REMOVED,
             .subject = "silence {id}"}},
    {.name = "alert rules",
     .args = "",
     .summary = "list the rules that are in force",
     .text = "Shipped ones, those of argus.yaml, and those that were added here.",
     OPTS(LISTS),
     .ask = {.path = "/v1/alert_rules", .table = {.key = "rules", COLUMNS(RULES)}}},
    {.name = "alert rule",
     ONE("NAME"),
     .summary = "add a rule, or take the place of one",
     .text = "For admins. The facts of each kind are listed in docs/alerts.md. A rule of the name "
             "of a shipped one takes its place as a whole, until it is removed.",
     .example = "argus alert rule disk_tight --of node --when 'disk_free < 50GiB' --for 5m "
                "--text \"node '{name}' has {disk_free:bytes} left\"",
     OPTS(RULE_OPTS),
     .ask = {.method = "PUT",
             .path = "/v1/alert_rules/{}",
             .done = MSG_DONE_STORED,
             .subject = "rule {name}"}},
    {.name = "alert rule-rm",
     ONE("NAME"),
     .summary = "remove a rule that was added",
     .text = "For admins. What argus.yaml or Argus itself says of that name holds again.",
     .ask = {.method = "DELETE",
             .path = "/v1/alert_rules/{}",
             .done = MSG_DONE_REMOVED,
             .subject = "rule {name}"}},
    {.name = "alert receivers",
     .args = "",
     .summary = "list who is told of alerts, and how that goes",
     .text = "Receivers stand in argus.yaml under alerts.receivers. Neither addresses nor keys "
             "are shown.",
     OPTS(LISTS),
     .ask = {.path = "/v1/receivers", .table = {.key = "receivers", COLUMNS(RECEIVERS)}}},
    {.name = "alert test",
     ONE("RECEIVER"),
     .summary = "send a receiver a test message",
     .text = "For admins. 'argus alert receivers' says whether it was taken.",
     .ask = {.method = "POST",
             .path = "/v1/receivers/{}:test",
             .done = MSG_DONE_CHANGED,
             .subject = "receiver {name}"}},
};

NOUN(alert, ALERT_COMMANDS);
