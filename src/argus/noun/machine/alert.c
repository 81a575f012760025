/* SPDX-License-Identifier: Apache-2.0 */
/* alert.c - alerts, silences, rules and receivers: what is wrong, and who is told; and incidents:
 * alerts with one cause. */
#include "argus/noun/noun.h"

#include <stdio.h>
#include <string.h>

#include "argus/cli/reported.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/text.h"

static const char *const STATES[] = {"open", "silenced", "past", "all", NULL};
static const char *const SEVERITIES[] = {"", "info", "warning", "critical", NULL};

#define LIMIT_OPT                                                                                  \
    {                                                                                              \
        .letter = 'n', .name = "limit", .type = OPT_TEXT, .arg = "N",                              \
        .doc = "how many to list at most: 200 if not given, 2000 are the most",                    \
        .to = "query:limit"                                                                        \
    }
#define CURSOR_OPT                                                                                 \
    {                                                                                              \
        .name = "cursor", .type = OPT_TEXT, .arg = "TEXT",                                         \
        .doc = "continue behind another list: its next_cursor in -o json", .to = "query:cursor"    \
    }
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
    LIMIT_OPT,
    CURSOR_OPT,
    LISTING_OPTS,
};
static const struct opt LISTS[] = {LISTING_OPTS};
static const struct opt SHOW_OPTS[] = {OPT_OUTPUT(struct listing_opts),
                                       OPT_UTC(struct listing_opts)};
static const struct opt ACK_OPTS[] = {
    {.name = "note",
     .type = OPT_TEXT,
     .arg = "TEXT",
     .doc = "what you do about it",
     .to = "body:note"},
};
#define SILENT_OPTS                                                                                \
    {.name = "for",                                                                                \
     .type = OPT_TEXT,                                                                             \
     .arg = "SPAN",                                                                                \
     .doc = "how long it is silent: 30m, 2h, 1d",                                                  \
     .to = "body:for",                                                                             \
     .need = "cli_say_long"},                                                                      \
    {                                                                                              \
        .name = "note", .type = OPT_TEXT, .arg = "TEXT", .doc = "why it is silent",                \
        .to = "body:note"                                                                          \
    }
static const struct opt SILENCE_OPTS[] = {SILENT_OPTS};
#define MATCH_OPT(word, place, words)                                                              \
    {                                                                                              \
        .name = (word), .type = OPT_LIST, .arg = "PATTERN", .doc = (words), .to = (place)          \
    }
static const struct opt SILENCE_MATCH_OPTS[] = {
    MATCH_OPT("rule",
              "body:rules",
              "alerts of such rules; * stands for anything; may be given again"),
    MATCH_OPT("project", "body:projects", "alerts of jobs of such projects"),
    MATCH_OPT("user", "body:users", "alerts of jobs of such users"),
    MATCH_OPT("kind",
              "body:kinds",
              "alerts of such things: job, node, gpu, cluster, root, queue …"),
    MATCH_OPT("name", "body:names", "alerts of things of such names: of nodes, jobs, NODE/GPU"),
    {.name = "least",
     .type = OPT_CHOICE,
     .arg = "SEVERITY",
     .doc = "alerts of this severity and above",
     .choices = SEVERITIES,
     .to = "body:least"},
    SILENT_OPTS,
};
static const struct opt RULE_OPTS[] = {
    {.name = "of",
     .type = OPT_TEXT,
     .arg = "KIND",
     .doc = "job, node, gpu, cluster, root, queue, quota or argusd",
     .to = "body:of",
     .need = "cli_say_of"},
    {.name = "when",
     .type = OPT_TEXT,
     .arg = "EXPR",
     .doc = "an expression over facts: 'disk_free < 50GiB'",
     .to = "body:when",
     .need = "cli_say_when"},
    {.name = "text",
     .type = OPT_TEXT,
     .arg = "TEXT",
     .doc = "the sentence; {fact} is what it is then",
     .to = "body:text",
     .need = "cli_say_text"},
    {.name = "zh",
     .type = OPT_TEXT,
     .arg = "TEXT",
     .doc = "the sentence in Chinese",
     .to = "body:zh"},
    {.name = "for",
     .type = OPT_TEXT,
     .arg = "SPAN",
     .doc = "how long the condition must hold before the alert opens",
     .to = "body:for"},
    {.name = "clear",
     .type = OPT_TEXT,
     .arg = "EXPR",
     .doc = "condition that ends the alert",
     .to = "body:clear"},
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
    {.name = "fix",
     .type = OPT_TEXT,
     .arg = "TEXT",
     .doc = "what a person can do about it",
     .to = "body:fix"},
    {.name = "off", .type = OPT_FLAG, .doc = "turn the rule off", .to = "body:off"},
    {.name = "on", .type = OPT_FLAG, .doc = "turn the rule on again", .to = "body:off=false"},
};

static const struct column ALERTS[] = {
    {.title = "say_id", .key = "id", .style = STYLE_BOLD},
    {.title = "say_severity", .key = "severity"},
    {.title = "say_rule", .flags = COLUMN_FLEX, .least = 8, .rank = 2, .key = "rule"},
    {.title = "say_incident", .rank = 1, .key = "incident"},
    {.title = "say_since", .key = "since", .as = CELL_TIME},
    {.title = "say_acked", .flags = COLUMN_FLEX, .least = 6, .rank = 3, .key = "acked_by"},
    {.title = "say_text", .flags = COLUMN_ROOM, .key = "text"},
};
static const struct column RULES[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 12, .key = "name", .style = STYLE_BOLD},
    {.title = "say_kind", .key = "of"},
    {.title = "say_severity", .key = "severity"},
    {.title = "say_from", .rank = 1, .key = "from"},
    {.title = "say_when", .flags = COLUMN_ROOM, .key = "when"},
};
static const struct column RECEIVERS[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 12, .key = "name", .style = STYLE_BOLD},
    {.title = "say_kind", .key = "kind"},
    {.title = "say_waiting", .flags = COLUMN_RIGHT, .key = "waiting", .as = CELL_NUMBER},
    {.title = "say_last_use", .key = "taken_at", .as = CELL_TIME},
    {.title = "say_reason", .flags = COLUMN_ROOM, .key = "trouble"},
};

static const struct column SILENCES[] = {
    {.title = "say_id", .key = "id", .style = STYLE_BOLD},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "by"},
    {.title = "say_until", .key = "until", .as = CELL_TIME},
    {.title = "say_alert", .rank = 1, .key = "alert"},
    {.title = "say_name",
     .flags = COLUMN_FLEX,
     .least = 8,
     .rank = 2,
     .key = "names",
     .as = CELL_LIST},
    {.title = "say_rule",
     .flags = COLUMN_FLEX,
     .least = 8,
     .rank = 2,
     .key = "rules",
     .as = CELL_LIST},
    {.title = "say_note", .flags = COLUMN_ROOM, .key = "note"},
};

/* One line of a page: its word, and the text; nothing where there is none. */
static void alert_line(struct cli *cli, const char *word, const char *text)
{
    if (*text && strcmp(text, "-") != 0)
        (void)fprintf(cli->out, "%s: %s\n", msg(cli->term.lang, word), text);
}

static void alert_time(struct cli *cli,
                       const char *word,
                       const json_t *o,
                       const char *key,
                       const struct seen *seen)
{
    char at[WHEN_TEXT_MAX];
    alert_line(cli, word, when_here(&seen->when, when_get(o, key), at));
}

static void alert_print(struct cli *cli, const json_t *alert, const struct seen *seen)
{
    static const struct {
        const char *word, *key;
    } rows[] = {{"say_l_fix", "fix"},
                {"say_l_rule", "rule"},
                {"say_l_severity", "severity"},
                {"say_l_kind", "kind"},
                {"say_l_name", "name"},
                {"say_l_user", "user"},
                {"say_l_project", "project"},
                {"say_l_incident", "incident"},
                {"say_l_silenced", "silenced_by"},
                {"say_l_acked", "acked_by"},
                {"say_l_note", "ack_note"}};
    (void)fprintf(cli->out, "%s  %s\n", member_str(alert, "id"), member_str(alert, "text"));
    for (size_t i = 0; i < array_len(rows); i++)
        alert_line(cli, rows[i].word, member_str(alert, rows[i].key));
    alert_time(cli, "say_l_since", alert, "since", seen);
    alert_time(cli, "say_l_until", alert, "ended_at", seen);
    alert_time(cli, "say_l_acked_at", alert, "acked_at", seen);
}

#define ONE(words) .args = (words), .least = 1, .most = 1
/* ---- incidents ---- */

static const struct opt INCIDENT_OPTS[] = {
    {.letter = 'a',
     .name = "all",
     .type = OPT_FLAG,
     .doc = "list incidents that are over, too",
     .to = "query:all"},
    LIMIT_OPT,
    CURSOR_OPT,
    OPT_OUTPUT(struct listing_opts),
    OPT_UTC(struct listing_opts),
};
static const struct column INCIDENTS[] = {
    {.title = "say_id", .key = "id", .style = STYLE_BOLD},
    {.title = "say_severity", .key = "severity"},
    {.title = "say_since", .key = "opened_at", .as = CELL_TIME},
    {.title = "say_until", .rank = 2, .key = "closed_at", .as = CELL_TIME},
    {.title = "say_jobs", .flags = COLUMN_RIGHT, .rank = 1, .key = "jobs", .as = CELL_NUMBER},
    {.title = "say_text", .flags = COLUMN_ROOM, .key = "title"},
};

static void incident_print_alert(struct cli *cli, const json_t *alert, const struct seen *seen)
{
    char at[WHEN_TEXT_MAX];
    (void)fprintf(cli->out, "%-6s %-9s %-9s %s\n", member_str(alert, "id"),
                  when_point(&seen->when, when_get(alert, "since"), at),
                  member_str(alert, "severity"), member_str(alert, "text"));
}

static void incident_print_telling(struct cli *cli, const json_t *telling)
{
    static const struct {
        const char *state, *word;
    } words[] = {{"on_the_way", "say_told_on_the_way"}, {"taken", "say_told_taken"},
                 {"refused", "say_told_refused"},       {"given_up", "say_told_given_up"},
                 {"quiet_hours", "say_told_quiet"},     {"silenced", "say_told_silenced"},
                 {"no_receiver", "say_told_not_there"}, {"line_full", "say_told_full"},
                 {"share_used", "say_told_share"}};
    const char *state = member_str(telling, "state"), *why = json_get_str(telling, "why", "");
    const char *said = state;
    for (size_t i = 0; i < array_len(words); i++)
        if (!strcmp(words[i].state, state))
            said = msg(cli->term.lang, words[i].word);
    (void)fprintf(cli->out, "%s: %s%s%s%s\n", member_str(telling, "receiver"), said,
                  *why ? " (" : "", why, *why ? ")" : "");
}

static void incident_print(struct cli *cli, const json_t *incident, const struct seen *seen)
{
    const json_t *x;
    size_t i;
    char cost[40];
    (void)fprintf(cli->out, "%s  [%s] %s\n", member_str(incident, "id"),
                  member_str(incident, "severity"), member_str(incident, "title"));
    alert_time(cli, "say_l_since", incident, "opened_at", seen);
    alert_time(cli, "say_l_until", incident, "closed_at", seen);
    text_printf(cost, "%.2f GPU-h", json_get_real(incident, "gpu_hours", 0));
    alert_line(cli, "say_l_cost", cost);
    json_array_foreach (json_get_array(incident, "alerts"), i, x)
        incident_print_alert(cli, x, seen);
    json_array_foreach (json_get_array(incident, "tellings"), i, x)
        incident_print_telling(cli, x);
}

/* ---- the report of an incident ---- */

struct incident_report_opts {
    struct reported_opts report;
};
static const struct opt INCIDENT_REPORT_OPTS[] = {
    OPT_REPORTED(struct incident_report_opts, report)};

static int incident_report_run(struct cli *cli,
                               void *opts,
                               const struct strv *args,
                               struct err *err)
{
    const struct incident_report_opts *o = opts;
    return reported_print(cli, "/v1/incidents/{}/report", args->v[0], &o->report, err);
}

static const struct command ALERT_COMMANDS[] = {
    {.name = "alert ls",
     .args = "",
     .summary = "list alerts",
     .text = "Lists the alerts of your own jobs and projects, and those of machines, cluster, "
             "queue and argusd. An alert is one rule about one thing while it holds; what has one "
             "cause is one incident: see 'argus incident ls'.",
     OPTS(LS_OPTS),
     .ask = {.path = "/v1/alerts",
             .table = {.key = "alerts", COLUMNS(ALERTS), .none = "say_no_alerts"}}},
    {.name = "alert show",
     ONE("ID"),
     .summary = "show one alert",
     .text = "Shows what the alert is about, since when it is open, what to do, and who "
             "acknowledged it.",
     OPTS(SHOW_OPTS),
     .ask = {.path = "/v1/alerts/{}", .print = alert_print}},
    {.name = "alert ack",
     ONE("ID"),
     .summary = "acknowledge an alert: somebody looks after it",
     .text = "An acknowledged alert is not escalated; it stays open until its cause is gone.",
     OPTS(ACK_OPTS),
     .ask = {.method = "POST",
             .path = "/v1/alerts/{}:ack",
             .done = "say_done_changed",
             .subject = "alert {id}"}},
    {.name = "alert silence",
     ONE("ID"),
     .summary = "send no messages of an alert for a while",
     .text =
         "The alert stays in 'argus alert ls --state silenced'. What it is about, this rule and "
         "this thing, stays silent when it ends and comes back as another alert, and a message "
         "that waits for its receiver is not sent any more.",
     .example = "argus alert silence a17 --for 2h --note 'disk is being replaced'",
     OPTS(SILENCE_OPTS),
     .ask = {.method = "POST",
             .path = "/v1/alerts/{}:silence",
             .done = "say_done_changed",
             .subject = "alert {id}"}},
    {.name = "alert silence-match",
     .args = "",
     .summary = "send no messages of all alerts that match, for a while",
     .text = "For admins. An alert is silent when it matches each kind of pattern that is given; "
             "of several patterns of a kind one is enough.",
     .example = "argus alert silence-match --kind node --name 'gpu-1*' --for 4h --note 'rack 1 is "
                "moved'\tmaintenance",
     OPTS(SILENCE_MATCH_OPTS),
     .ask = {.method = "POST",
             .path = "/v1/silences",
             .done = "say_done_made",
             .subject = "silence {id}"}},
    {.name = "alert silences",
     .args = "",
     .summary = "list silences",
     .text = "Silences that are over are listed for one more day.",
     OPTS(LISTS),
     .ask = {.path = "/v1/silences",
             .table = {.key = "silences", COLUMNS(SILENCES), .none = "say_no_silences"}}},
    {.name = "alert unsilence",
     ONE("SILENCE"),
     .summary = "end a silence",
     .text = "For admins.",
     .ask = {.method = "DELETE",
             .path = "/v1/silences/{}",
             .done = "say_done_removed",
             .subject = "silence {id}"}},
    {.name = "alert rules",
     .args = "",
     .summary = "list the rules that are in force",
     .text = "Lists the shipped rules, those of argus.yaml, and those that were added with 'argus "
             "alert rule'.",
     OPTS(LISTS),
     .ask = {.path = "/v1/alert_rules", .table = {.key = "rules", COLUMNS(RULES)}}},
    {.name = "alert rule",
     ONE("NAME"),
     .summary = "add a rule, or change one",
     .text =
         "For admins. The facts of each kind are listed in docs/alerts.md. With --of, --when and "
         "--text it is a whole rule; without one of them, the rule of that name is changed in "
         "what is given. A rule with the name of a shipped rule replaces it until it is removed.",
     .example = "argus alert rule job_interrupted --off\n"
                "argus alert rule disk_tight --of node --when 'disk_free < 50GiB' --for 5m "
                "--text \"node '{name}' has {disk_free:bytes} left\"",
     OPTS(RULE_OPTS),
     .ask = {.method = "PUT",
             .change = "PATCH",
             .path = "/v1/alert_rules/{}",
             .done = "say_done_stored",
             .subject = "rule {name}"}},
    {.name = "alert rule-rm",
     ONE("NAME"),
     .summary = "remove a rule that was added",
     .text = "For admins. The rule of that name in argus.yaml, or the shipped one, is in force "
             "again.",
     .ask = {.method = "DELETE",
             .path = "/v1/alert_rules/{}",
             .done = "say_done_removed",
             .subject = "rule {name}"}},
    {.name = "alert receivers",
     .args = "",
     .summary = "list who is told of alerts, and whether the messages arrive",
     .text = "Receivers stand in argus.yaml under alerts.receivers. Neither addresses nor keys "
             "are shown.",
     OPTS(LISTS),
     .ask = {.path = "/v1/receivers",
             .table = {.key = "receivers", COLUMNS(RECEIVERS), .none = "say_no_receivers"}}},
    {.name = "alert test",
     ONE("RECEIVER"),
     .summary = "send a receiver a test message",
     .text = "For admins. 'argus alert receivers' says whether the receiver took the message.",
     .ask = {.method = "POST",
             .path = "/v1/receivers/{}:test",
             .done = "say_done_changed",
             .subject = "receiver {name}"}},
    {.name = "incident ls",
     .args = "",
     .summary = "list incidents",
     .text = "Alerts that have one cause are one incident: a lost node with 8 jobs is one.",
     OPTS(INCIDENT_OPTS),
     .ask = {.path = "/v1/incidents",
             .table = {.key = "incidents", COLUMNS(INCIDENTS), .none = "say_no_incidents"}}},
    {.name = "incident show",
     .args = "ID",
     .least = 1,
     .most = 1,
     .summary = "show one incident: its alerts, its cost, and who was told",
     .text = "Shows the part of the incident that you may see. 'argus incident report' tells it "
             "in sentences.",
     OPTS(SHOW_OPTS),
     .ask = {.path = "/v1/incidents/{}", .print = incident_print}},
    {.name = "incident report",
     .args = "ID",
     .least = 1,
     .most = 1,
     .summary = "print the report of an incident",
     .text = "What happened and when, the evidence, what argusd and people did, who was told and "
             "who was not, and what it cost: the part that you may see, as Markdown or as a page "
             "of HTML.",
     .example = "argus incident report i4 > i4.md\tas Markdown, in your language\n"
                "argus incident report i4 --format html --language zh > i4.html\ta page in Chinese",
     OPTS(INCIDENT_REPORT_OPTS),
     .opts_size = sizeof(struct incident_report_opts),
     .run = incident_report_run},
};

NOUN(alert, ALERT_COMMANDS);
