/* SPDX-License-Identifier: Apache-2.0 */
/* routes_jobs.c - rows and schemas of jobs, logs, events and the server itself; see routes.h. */
#include "argusd/routes.h"

#include "argusd/api.h"

enum { SPEC_MAX = 1 << 20 };

static const struct http_param submit_params[] = {
    {"dry_run", HTTP_PARAM_BOOLEAN, "check only: the resolved spec, its demand and all problems"},
    {"require_fit", HTTP_PARAM_BOOLEAN, "422 if the gang is larger than the pool is now"},
    {"smoke", HTTP_PARAM_BOOLEAN, "the same spec with 1 GPU, 2 steps and no checkpoint"},
    {"suggest", HTTP_PARAM_BOOLEAN,
     "as a dry run without trial, and what would serve the job better: advice"},
    {"no_trial", HTTP_PARAM_BOOLEAN,
     "skip the short run on a worker that comes before a job of verl"},
    {0}};
static const struct http_param retry_params[] = {
    {"dry_run", HTTP_PARAM_BOOLEAN, "check only, as for a submit"},
    {"require_fit", HTTP_PARAM_BOOLEAN, "as for a submit"},
    {"no_trial", HTTP_PARAM_BOOLEAN, "as for a submit"},
    {0}};
static const struct http_param list_params[] = {
    {"limit", HTTP_PARAM_INTEGER, "rows of a page, 1 to 1000; 50 if not given"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before"},
    {"state", HTTP_PARAM_STRING,
     "states, comma-separated or repeated; live: all that are not over"},
    {"all", HTTP_PARAM_BOOLEAN,
     "true: all that you may see, false: only your own; if not given, your own, or all for who "
     "sees "
     "everything"},
    {"user", HTTP_PARAM_STRING, "only this user's"},
    {"project", HTTP_PARAM_STRING, "only of this project"},
    {"cluster", HTTP_PARAM_STRING, "only on this cluster"},
    {"pool", HTTP_PARAM_STRING, "only for this pool"},
    {"workload", HTTP_PARAM_STRING, "only of this workload"},
    {"since", HTTP_PARAM_STRING, "submitted at or after: a time, or a span before now (2h)"},
    {"until", HTTP_PARAM_STRING, "submitted before"},
    {"q", HTTP_PARAM_STRING, "part of the id or the name"},
    {0}};
static const struct http_param checkpoint_params[] = {
    {"project", HTTP_PARAM_STRING, "only of jobs of this project"},
    {"user", HTTP_PARAM_STRING, "only of this user's jobs"},
    {0}};
static const struct http_param wait_params[] = {
    {"wait", HTTP_PARAM_SPAN, "with If-None-Match: answer when it changes, at most 60s"},
    {0}};
static const struct http_param log_params[] = {
    {"follow", HTTP_PARAM_BOOLEAN, "an event stream: log events with offset and b64, then end"},
    {"attempt", HTTP_PARAM_INTEGER, "which attempt; the newest if not given"},
    {"offset", HTTP_PARAM_INTEGER, "byte to begin at"},
    {"since", HTTP_PARAM_STRING,
     "of the driver's log: not what was written before this, as far as known (in steps of some "
     "seconds): a time, or a span before now (10m)"},
    {"limit", HTTP_PARAM_INTEGER, "bytes at most, up to 8 MiB; 1 MiB if not given"},
    {"tail", HTTP_PARAM_INTEGER, "the last so many lines of the last limit bytes"},
    {"grep", HTTP_PARAM_STRING,
     "a regular expression (PCRE2): the lines that match, as GET /v1/logs has them"},
    {"bytes", HTTP_PARAM_BOOLEAN, "with grep: b64 in place of text, the whole line as it is"},
    {"cursor", HTTP_PARAM_STRING, "with grep: next_cursor of the page before"},
    {"source", HTTP_PARAM_STRING,
     "driver, worker or scene, with grep also all; driver if not given"},
    {"file", HTTP_PARAM_STRING,
     "with source worker or scene: which log, as GET /v1/jobs/{id}/logs/files names it"},
    {"last_event_id", HTTP_PARAM_STRING, "as the Last-Event-ID header: go on at this byte"},
    {0}};
static const struct http_param logfile_params[] = {
    {"attempt", HTTP_PARAM_INTEGER, "which attempt; the newest if not given"},
    {"source", HTTP_PARAM_STRING, "worker or scene; both if not given"},
    {"node", HTTP_PARAM_STRING, "only of this node"},
    {0}};
static const struct http_param search_params[] = {
    {"grep", HTTP_PARAM_STRING, "a regular expression (PCRE2) that a line must match"},
    {"source", HTTP_PARAM_STRING,
     "in the logs of drivers, of workers, of scenes, or of drivers and workers: driver, worker, "
     "scene "
     "or all; driver if not given"},
    {"user", HTTP_PARAM_STRING, "only in this user's jobs"},
    {"project", HTTP_PARAM_STRING, "only in jobs of this project"},
    {"workload", HTTP_PARAM_STRING, "only in jobs of this workload"},
    {"since", HTTP_PARAM_STRING,
     "only in jobs submitted at or after: a time, or a span before now (2h)"},
    {"limit", HTTP_PARAM_INTEGER, "hits of a page, 1 to 1000; 100 if not given"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before"},
    {0}};
static const struct http_param event_params[] = {
    {"follow", HTTP_PARAM_BOOLEAN, "an event stream"},
    {"since", HTTP_PARAM_INTEGER, "only events after this number"},
    {"limit", HTTP_PARAM_INTEGER, "events of a page, 1 to 1000; 200 if not given"},
    {"newest_first", HTTP_PARAM_BOOLEAN, "the newest ones, newest first"},
    {"wait", HTTP_PARAM_SPAN, "answer when there is one, at most 60s"},
    {"job", HTTP_PARAM_STRING, "only of the job with this id"},
    {"kind", HTTP_PARAM_STRING, "only of these kinds, comma-separated: stop,ended"},
    {"actor", HTTP_PARAM_STRING, "only by this user, or argusd"},
    {"object", HTTP_PARAM_STRING, "only about this: job/ID, node/NAME; node for all nodes"},
    {"last_event_id", HTTP_PARAM_STRING, "as the Last-Event-ID header"},
    {0}};

static const struct http_param metric_params[] = {
    {"keys", HTTP_PARAM_STRING,
     "names or patterns with * and ?, comma-separated; all if not given"},
    {"since_step", HTTP_PARAM_INTEGER, "only what came after this step"},
    {"points", HTTP_PARAM_INTEGER,
     "points of a curve at most, up to 512; a point keeps the smallest and greatest value of its "
     "steps"},
    {"format", HTTP_PARAM_STRING, "json or csv; Accept: text/csv does the same"},
    {0}};

#define TEXTS "{\"type\":\"array\",\"items\":" TEXT "}"

#define NUMBER_OR_NULL "{\"type\":[\"number\",\"null\"]}"
#define SUMMARY                                                                                    \
    "{\"type\":[\"object\",\"null\"],\"required\":[\"step\",\"latest\"],\"properties\":{"          \
    "\"step\":" INTEGER                                                                            \
    ",\"total_steps\":{\"type\":[\"integer\",\"null\"]},\"progress\":" NUMBER_OR_NULL              \
    ",\"eta_s\":" NUMBER_OR_NULL ",\"eta\":" TEXT_OR_NULL ",\"step_seconds\":" NUMBER_OR_NULL      \
    ",\"tokens_per_s\":" NUMBER_OR_NULL ",\"mfu\":" NUMBER_OR_NULL                                 \
    ",\"reward\":{\"type\":[\"object\",\"null\"]},\"loss\":{\"type\":[\"object\",\"null\"]}}}"

#define CHECKPOINT_REQUIRED "[\"step\",\"state\",\"verified\",\"bytes\",\"at\"]"
#define CHECKPOINT_PROPERTIES                                                                      \
    "\"step\":" INTEGER ",\"state\":{\"enum\":[\"partial\",\"complete\",\"verified\",\"broken\"]}" \
    ",\"verified\":" BOOLEAN ",\"bytes\":" INTEGER ",\"at\":" TEXT_OR_NULL                         \
    ",\"attempt\":{\"type\":[\"integer\",\"null\"]}"                                               \
    ",\"value\":" NUMBER_OR_NULL ",\"why\":" TEXT_OR_NULL

/* The last is what curl says when it is told nothing. */
#define SPEC_TYPES                                                                                 \
    "application/yaml, application/json, application/x-yaml, text/yaml, text/plain, "              \
    "application/x-www-form-urlencoded"

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/jobs",
     .least = HTTP_ROLE_USER,
     .max_body = SPEC_MAX,
     .handle = api_jobs_create,
     .summary = "submit a JobSpec",
     .params = submit_params,
     .request_type = SPEC_TYPES,
     .request_schema = "JobSpec",
     .pieces_type = "multipart/form-data",
     .pieces_max = 1ULL << 50,
     .pieces_schema = "SubmitForm",
     .reply_schema = "Submitted",
     .reply_status = 201},
    {.method = "GET",
     .pattern = "/v1/jobs",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_list,
     .summary = "list jobs, newest first",
     .params = list_params,
     .reply_schema = "JobList"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_get,
     .summary = "one job, by id, name or unique beginning",
     .params = wait_params,
     .reply_schema = "Job"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:stop",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_stop,
     .summary = "stop a job",
     .reply_schema = "Job",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/jobs:stop",
     .least = HTTP_ROLE_USER,
     .max_body = SPEC_MAX,
     .handle = api_jobs_stop_many,
     .summary = "stop all live jobs that fit a filter, in one transaction",
     .request_schema = "JobFilter",
     .reply_schema = "Stopped",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:hold",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_hold,
     .summary = "keep a job that waits from starting",
     .reply_schema = "Job"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:release",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_release,
     .summary = "let a job that is held wait for its turn again",
     .reply_schema = "Job"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:priority",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_priority,
     .summary = "change a job's priority, within its project's ceiling",
     .request_schema = "Priority",
     .reply_schema = "Job"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:retry",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_retry,
     .summary = "submit a job that has ended once more, as a new job of the same user",
     .params = retry_params,
     .request_schema = "Retry",
     .reply_schema = "Submitted",
     .reply_status = 201},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/why",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_why,
     .summary = "what it waits for, and the smallest change that would start it",
     .reply_schema = "Why"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/findings",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_findings,
     .summary = "why its attempts ended badly, each with evidence, advice and a patch",
     .reply_schema = "FindingList"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/checkpoints",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_checkpoints,
     .summary = "the checkpoints of a job, the oldest first",
     .reply_schema = "CheckpointList"},
    {.method = "GET",
     .pattern = "/v1/checkpoints",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_checkpoints,
     .summary = "which jobs have checkpoints, those that take most first; at most 1000",
     .params = checkpoint_params,
     .reply_schema = "CheckpointSums"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}/checkpoints:gc",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_checkpoints_gc,
     .summary = "remove the checkpoints that its retention lets go, or only say which",
     .request_schema = "CheckpointCleaning",
     .reply_schema = "CheckpointsCleaned"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}/checkpoints/{step}:verify",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_checkpoints_verify,
     .summary = "read every byte of a checkpoint",
     .reply_schema = "Checkpoint"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/logs",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_logs,
     .summary = "the driver's log or another, or a stream of it",
     .params = log_params,
     .reply_type = "application/octet-stream"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/logs/files",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_logfiles,
     .summary = "what its workers printed and what was gathered at its failure, file by file",
     .params = logfile_params,
     .reply_schema = "LogFiles"},
    {.method = "GET",
     .pattern = "/v1/logs",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_logs_search,
     .summary = "lines that match, in the logs of all jobs that you may see, newest first; a page "
                "ends with its hits or after two seconds",
     .params = search_params,
     .reply_schema = "LogHits"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/metrics",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_metrics,
     .summary = "the curves of a job",
     .params = metric_params,
     .reply_schema = "JobMetrics"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/events",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_events,
     .summary = "what happened to a job",
     .params = event_params,
     .reply_schema = "EventList"},
    {.method = "GET",
     .pattern = "/v1/events",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_events,
     .summary = "what happened",
     .params = event_params,
     .reply_schema = "EventList"},
    {.method = "GET",
     .pattern = "/v1/version",
     .least = HTTP_ROLE_NONE,
     .handle = api_version,
     .summary = "versions of argusd and Ray",
     .reply_schema = "Version"},
    {.method = "GET",
     .pattern = "/v1/openapi.json",
     .least = HTTP_ROLE_NONE,
     .handle = api_openapi,
     .summary = "this description"},
    {.method = "GET",
     .pattern = "/healthz",
     .least = HTTP_ROLE_NONE,
     .handle = api_healthz,
     .summary = "the process answers",
     .reply_type = "text/plain"},
    {.method = "GET",
     .pattern = "/readyz",
     .least = HTTP_ROLE_NONE,
     .handle = api_readyz,
     .summary = "jobs can be taken",
     .reply_schema = "Ready"},
    {.method = "GET",
     .pattern = "/metrics",
     .least = HTTP_ROLE_NONE,
     .handle = api_metrics,
     .summary = "Prometheus metrics",
     .reply_type = "text/plain"},
};

static const struct http_schema schemas[] = {
    {"Problem",
     "{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\",\"detail\",\"code\"],"
     "\"properties\":{\"type\":" TEXT ",\"title\":" TEXT ",\"status\":" INTEGER ",\"detail\":" TEXT
     ",\"code\":" TEXT ",\"field\":" TEXT_OR_NULL ",\"hint\":" TEXT_OR_NULL
     ",\"problems\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}"},
    {"JobSpec", "{\"type\":\"object\",\"anyOf\":[{\"required\":[\"workload\"]},{\"required\":["
                "\"preset\"]}],\"properties\":{\"workload\":" TEXT ",\"preset\":" TEXT "}}"},
    {"SubmitForm", "{\"type\":\"object\",\"required\":[\"spec\"],\"properties\":{\"spec\":" TEXT
                   ",\"code\":{\"type\":\"string\",\"format\":\"binary\"}}}"},
    {"Submitted", "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":" TEXT
                  ",\"state\":" STATE ",\"warnings\":{\"type\":\"array\"},\"retry_of\":" TEXT
                  ",\"changes\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}"},
    {"Retry", "{\"type\":\"object\",\"properties\":{\"apply_fix\":" BOOLEAN ",\"from\":" TEXT "}}"},
    {"JobItem",
     "{\"type\":\"object\",\"required\":" ITEM_REQUIRED ",\"properties\":{" ITEM_PROPERTIES "}}"},
    LIST_OF("JobList", "jobs", "JobItem"),
    {"Job", "{\"type\":\"object\",\"required\":" ITEM_REQUIRED ",\"properties\":{" ITEM_PROPERTIES
            ",\"submission_id\":" TEXT ",\"output_dir\":" TEXT
            ",\"attempts\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
            ",\"argv\":{\"type\":[\"array\",\"null\"]},\"spec\":" TEXT
            ",\"resolved_spec\":{\"type\":[\"object\",\"null\"]}"
            ",\"metrics\":" SUMMARY ",\"checkpoints\":{\"type\":[\"array\",\"null\"]}"
            ",\"goodput\":{\"type\":[\"object\",\"null\"]}"
            ",\"proof\":{\"type\":[\"object\",\"null\"]},\"exit\":{\"type\":[\"object\",\"null\"]}"
            ",\"finding\":{\"type\":[\"object\",\"null\"]},\"retry_of\":" TEXT_OR_NULL
            ",\"deadline\":" TEXT_OR_NULL "}}"},
    {"JobMetrics",
     "{\"type\":\"object\",\"required\":[\"id\",\"state\",\"summary\",\"keys\",\"series\","
     "\"superseded\","
     "\"cut\"],\"properties\":{\"id\":" TEXT ",\"state\":" STATE ",\"summary\":" SUMMARY
     ",\"keys\":" TEXTS ",\"series\":{\"type\":\"object\",\"additionalProperties\":{\"type\":"
     "\"object\",\"required\":[\"step\","
     "\"value\",\"min\",\"max\"]}},\"superseded\":{\"type\":\"array\",\"items\":{\"type\":"
     "\"object\","
     "\"required\":[\"attempt\",\"from_step\",\"to_step\"]}},\"cut\":" BOOLEAN "}}"},
    {"JobFilter",
     "{\"type\":\"object\",\"properties\":{\"user\":" TEXT ",\"project\":" TEXT ",\"pool\":" TEXT
     ",\"workload\":" TEXT ",\"state\":" TEXTS ",\"ids\":" TEXTS "}}"},
    {"Stopped",
     "{\"type\":\"object\",\"required\":[\"jobs\",\"more\"],\"properties\":{\"jobs\":{\"type\":"
     "\"array\",\"items\":{\"type\":\"object\",\"required\":[\"id\",\"state\"],\"properties\":{"
     "\"id\":" TEXT ",\"state\":" STATE "}}},\"more\":" BOOLEAN "}}"},
    {"Priority",
     "{\"type\":\"object\",\"required\":[\"priority\"],\"properties\":{\"priority\":" INTEGER "}}"},
    {"Why",
     "{\"type\":\"object\",\"required\":[\"id\",\"state\",\"code\",\"text\",\"position\",\"hint\","
     "\"hint_text\",\"eta\"],\"properties\":{\"id\":" TEXT ",\"state\":" STATE ",\"code\":" TEXT
     ",\"text\":" TEXT ",\"position\":{\"type\":[\"integer\",\"null\"]},\"hint\":{\"type\":["
     "\"object\",\"null\"]},\"hint_text\":" TEXT ",\"eta\":" ETA ",\"finding\":" TEXT_OR_NULL "}}"},
    {"Event",
     "{\"type\":\"object\",\"required\":[\"seq\",\"at\",\"kind\",\"actor\"],\"properties\":"
     "{\"seq\":" INTEGER ",\"at\":" TEXT ",\"job\":" TEXT_OR_NULL ",\"kind\":" TEXT
     ",\"actor\":" TEXT ",\"from\":" TEXT_OR_NULL ",\"to\":" TEXT_OR_NULL ",\"reason\":" REASON
     ",\"text\":" TEXT "}}"},
    LIST_OF("EventList", "events", "Event"),
    {"LogFiles",
     "{\"type\":\"object\",\"required\":[\"id\",\"attempt\",\"files\",\"cut\"],\"properties\":{"
     "\"id\":" TEXT ",\"attempt\":" INTEGER ",\"cut\":" BOOLEAN
     ",\"files\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"source\","
     "\"file\",\"node\",\"name\",\"rank\",\"actor\",\"pid\",\"bytes\"],\"properties\":{"
     "\"source\":{\"enum\":[\"worker\",\"scene\"]},\"file\":" TEXT ",\"node\":" TEXT
     ",\"name\":" TEXT ",\"rank\":{\"type\":[\"integer\",\"null\"]},\"actor\":" TEXT_OR_NULL
     ",\"pid\":{\"type\":[\"integer\",\"null\"]},\"bytes\":" INTEGER "}}}}}"},
    {"LogHits", "{\"type\":\"object\",\"required\":[\"hits\",\"jobs\",\"bytes\",\"next_cursor\"],"
                "\"properties\":{\"hits\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
                "\"required\":[\"job\",\"attempt\",\"offset\"],\"properties\":{\"job\":" TEXT
                ",\"attempt\":" INTEGER ",\"source\":" TEXT ",\"file\":" TEXT_OR_NULL
                ",\"node\":" TEXT_OR_NULL ",\"rank\":{\"type\":[\"integer\",\"null\"]},"
                "\"offset\":" INTEGER ",\"text\":" TEXT ",\"b64\":" TEXT "}}},\"attempt\":" INTEGER
                ",\"offset\":" INTEGER ",\"jobs\":" INTEGER ",\"bytes\":" INTEGER
                ",\"skipped_bytes\":" INTEGER ",\"next_cursor\":" TEXT_OR_NULL "}}"},
    {"FindingList",
     "{\"type\":\"object\",\"required\":[\"findings\"],\"properties\":{\"findings\":{\"type\":"
     "\"array\",\"items\":{\"type\":\"object\",\"required\":[\"class\",\"attempt\",\"sentence\","
     "\"at\",\"evidence\"],\"properties\":{\"class\":" TEXT ",\"attempt\":" INTEGER
     ",\"sentence\":" TEXT ",\"at\":" TEXT ",\"rule\":" TEXT_OR_NULL ",\"node\":" TEXT_OR_NULL
     ",\"rank\":" TEXT_OR_NULL ",\"advice\":" TEXT_OR_NULL
     ",\"evidence\":{\"type\":\"array\"}}}}}}"},
    {"Checkpoint", "{\"type\":\"object\",\"required\":" CHECKPOINT_REQUIRED
                   ",\"properties\":{" CHECKPOINT_PROPERTIES "}}"},
    {"CheckpointList",
     "{\"type\":\"object\",\"required\":[\"id\",\"bytes\",\"checkpoints\"],"
     "\"properties\":{\"id\":" TEXT ",\"bytes\":" INTEGER
     ",\"checkpoints\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
     "\"required\":" CHECKPOINT_REQUIRED ",\"properties\":{" CHECKPOINT_PROPERTIES "}}}}}"},
    {"CheckpointSums",
     "{\"type\":\"object\",\"required\":[\"bytes\",\"total\",\"jobs\"],"
     "\"properties\":{\"bytes\":" INTEGER ",\"total\":" INTEGER
     ",\"jobs\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":["
     "\"id\",\"user\",\"project\",\"checkpoints\",\"bytes\",\"newest\"],\"properties\":{"
     "\"id\":" TEXT ",\"user\":" TEXT ",\"project\":" TEXT ",\"checkpoints\":" INTEGER
     ",\"bytes\":" INTEGER ",\"newest\":{\"type\":[\"integer\",\"null\"]}}}}}}"},
    {"CheckpointCleaning", "{\"type\":\"object\",\"properties\":{\"dry_run\":" BOOLEAN "}}"},
    {"CheckpointsCleaned",
     "{\"type\":\"object\",\"required\":[\"id\",\"dry_run\",\"checkpoints\",\"removed\","
     "\"removed_bytes\"],\"properties\":{\"id\":" TEXT ",\"dry_run\":" BOOLEAN
     ",\"removed\":" INTEGER ",\"removed_bytes\":" INTEGER
     ",\"checkpoints\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":["
     "\"step\",\"state\",\"bytes\",\"goes\",\"kept_by\"],\"properties\":{\"step\":" INTEGER
     ",\"state\":" TEXT ",\"bytes\":" INTEGER ",\"goes\":" BOOLEAN ",\"kept_by\":" TEXT_OR_NULL
     "}}}}}"},
    {"Version", "{\"type\":\"object\",\"required\":[\"version\",\"ray\"],\"properties\":"
                "{\"version\":" TEXT ",\"ray\":{\"type\":\"object\"}}}"},
    {"Ready",
     "{\"type\":\"object\",\"required\":[\"ready\"],\"properties\":{\"ready\":" BOOLEAN "}}"},
};

const struct api_part *routes_jobs(void)
{
    static const struct api_part part = {rows, array_len(rows), schemas, array_len(schemas)};
    return &part;
}
