/* SPDX-License-Identifier: Apache-2.0 */
/* routes_jobs.c - rows and schemas of jobs, logs, events and the server itself; see routes.h. */
#include "argusd/api/routes.h"

#include "argusd/api/handlers.h"
#include "argusd/submit/submit.h"
#include "argusd/submit/submit_answer.h"

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
     .request_schema = "JobOrder",
     .pieces_type = "multipart/form-data",
     .pieces_max = 1ULL << 50,
     .pieces_schema = "SubmitForm",
     .reply_schema = "Submitted",
     .reply_status = 201,
     .other_schema = "PlanOrSubmitted"},
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
     .reply_status = 202,
     .other_schema = "Job"},
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
     .reply_status = 201,
     .other_schema = "PlanOrSubmitted"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:archive",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_archive,
     .summary = "pack the directory of a job that is over into one verified archive",
     .reply_schema = "Job",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:unarchive",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_unarchive,
     .summary = "bring the directory of an archived job back, byte for byte",
     .reply_schema = "Job",
     .reply_status = 202},
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
     .reply_type = "application/octet-stream",
     .stream_schema = "LogMessage"},
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
     .reply_schema = "EventList",
     .stream_schema = "Event"},
    {.method = "GET",
     .pattern = "/v1/events",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_events,
     .summary = "what happened",
     .params = event_params,
     .reply_schema = "EventList",
     .stream_schema = "Event"},
    {.method = "GET",
     .pattern = "/v1/version",
     .least = HTTP_ROLE_NONE,
     .handle = api_version,
     .summary = "version of argusd; with a token, of Ray too, and where the shared root is",
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
};

static const struct field retry_rows[] = {OPT_BOOLEAN("apply_fix"), OPT_AS("from", TEXT_OR_NULL)};
SHAPE(retry)

static const struct field job_metrics_superseded_rows[] = {
    HAS_INTEGER("attempt"), HAS_INTEGER("from_step"), HAS_INTEGER("to_step")};
SHAPE(job_metrics_superseded)

static const struct field job_metrics_rows[] = {
    HAS_TEXT("id"),
    HAS("state", "JobState"),
    MAY("summary", "Training"),
    HAS_TEXTS("keys"),
    HAS_AS("series",
           "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\",\"required\":["
           "\"step\",\"value\",\"min\",\"max\"],\"properties\":{\"step\":{\"type\":\"array\","
           "\"items\":{\"type\":\"integer\"}},\"value\":{\"type\":\"array\",\"items\":{\"type\":["
           "\"number\",\"null\"]}},\"min\":{\"type\":\"array\",\"items\":{\"type\":[\"number\","
           "\"null\"]}},\"max\":{\"type\":\"array\",\"items\":{\"type\":[\"number\",\"null\"]}}},"
           "\"additionalProperties\":false}}"),
    HAS_LIST("superseded", job_metrics_superseded_table),
    HAS_BOOLEAN("cut")};
SHAPE(job_metrics)

static const struct field job_filter_rows[] = {OPT_TEXT("user"),
                                               OPT_TEXT("project"),
                                               OPT_TEXT("pool"),
                                               OPT_TEXT("workload"),
                                               OPT_AS("state", TEXT_OR_TEXTS),
                                               OPT_AS("ids", TEXT_OR_TEXTS)};
SHAPE(job_filter)

static const struct field priority_rows[] = {HAS_INTEGER("priority")};
SHAPE(priority)

static const struct field log_hits_hits_rows[] = {
    HAS_TEXT("job"),       HAS_INTEGER("attempt"), HAS_TEXT("source"),
    MAY_TEXT("file"),      MAY_TEXT("node"),       MAY_INTEGER("rank"),
    HAS_INTEGER("offset"), OPT_TEXT("text"),       OPT_TEXT("b64")};
SHAPE(log_hits_hits)

static const struct field log_hits_rows[] = {HAS_LIST("hits", log_hits_hits_table),
                                             OPT_INTEGER("attempt"),
                                             OPT_INTEGER("offset"),
                                             HAS_INTEGER("jobs"),
                                             HAS_INTEGER("bytes"),
                                             HAS_INTEGER("skipped_bytes"),
                                             MAY_TEXT("next_cursor")};
SHAPE(log_hits)

static const struct field checkpoint_cleaning_rows[] = {OPT_BOOLEAN("dry_run")};
SHAPE(checkpoint_cleaning)

static const struct field log_piece_rows[] = {OPT_INTEGER("attempt"), HAS_INTEGER("offset"),
                                              HAS_TEXT("b64")};
SHAPE(log_piece)
static const struct field log_end_rows[] = {HAS("state", "JobState"), MAY_INTEGER("exit_code"),
                                            HAS("reason", "Reason")};
SHAPE(log_end)

static const struct http_schema schemas[] = {
    {.name = "SubmitForm",
     .json = OBJECT("\"spec\"",
                    KEY("spec", TEXT) "," KEY("code",
                                              "{\"type\":\"string\",\"format\":"
                                              "\"binary\"}"))},
    {.name = "PlanOrSubmitted", .json = "{\"anyOf\":[" REF("Plan") "," REF("Submitted") "]}"},
    {.name = "LogMessage", .json = "{\"anyOf\":[" REF("LogPiece") "," REF("LogEnd") "]}"},
    {.name = "LogPiece", .table = &log_piece_table},
    {.name = "LogEnd", .table = &log_end_table},
    LIST_AND("JobList", "jobs", "JobItem", "," KEY("next_cursor", TEXT_OR_NULL)),
    LIST_AND("EventList", "events", "Event", "," KEY("next", INTEGER)),
    LIST_OF("FindingList", "findings", "Finding"),
    {.name = "Submitted", .table = &submit_answer_table},
    {.name = "Retry", .table = &retry_table, .is_form = true},
    {.name = "JobMetrics", .table = &job_metrics_table},
    {.name = "JobFilter", .table = &job_filter_table, .is_form = true},
    {.name = "Stopped", .table = &stopped_table},
    {.name = "Priority", .table = &priority_table, .is_form = true},
    {.name = "Why", .table = &why_table},
    {.name = "Event", .table = &event_table},
    {.name = "LogFiles", .table = &logfiles_table},
    {.name = "LogHits", .table = &log_hits_table},
    {.name = "CheckpointList", .table = &checkpoint_list_table},
    {.name = "CheckpointSums", .table = &checkpoint_sums_table},
    {.name = "CheckpointCleaning", .table = &checkpoint_cleaning_table, .is_form = true},
    {.name = "CheckpointsCleaned", .table = &checkpoints_cleaned_table},
    {.name = "Version", .table = &version_table},
    {.name = "Ready", .table = &ready_table},
};

const struct api_part part_routes_jobs = {rows, array_len(rows), schemas, array_len(schemas)};
