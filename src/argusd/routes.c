/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c - the one route table, and the schemas of what is sent and answered.
 * openapi.json is made from here, and the tests hold live replies against it. */
#include "argusd/api.h"
#include "base/version.h"
#include "http/openapi.h"

enum { SPEC_MAX = 1 << 20 };

static const struct http_param submit_params[] = {
    {"dry_run", HTTP_PARAM_BOOLEAN, "check only: the resolved spec, its demand and all problems"},
    {"require_fit", HTTP_PARAM_BOOLEAN, "422 if the gang is larger than the pool is now"},
    {"no_trial", HTTP_PARAM_BOOLEAN, "accepted; this version runs no trial"},
    {0}};
static const struct http_param list_params[] = {
    {"limit", HTTP_PARAM_INTEGER, "rows of a page, 1 to 1000; 50 if not given"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before"},
    {"state", HTTP_PARAM_STRING,
     "states, comma-separated or repeated; live: all that are not over"},
    {"user", HTTP_PARAM_STRING, "only this user's"},
    {"project", HTTP_PARAM_STRING, "only of this project"},
    {"cluster", HTTP_PARAM_STRING, "only on this cluster"},
    {"pool", HTTP_PARAM_STRING, "only for this pool"},
    {"workload", HTTP_PARAM_STRING, "only of this workload"},
    {"since", HTTP_PARAM_STRING, "submitted at or after: a time, or a span before now (2h)"},
    {"until", HTTP_PARAM_STRING, "submitted before"},
    {"q", HTTP_PARAM_STRING, "part of the id or the name"},
    {0}};
static const struct http_param wait_params[] = {
    {"wait", HTTP_PARAM_SPAN, "with If-None-Match: answer when it changes, at most 60s"},
    {0}};
static const struct http_param log_params[] = {
    {"follow", HTTP_PARAM_BOOLEAN, "an event stream: log events with offset and b64, then end"},
    {"attempt", HTTP_PARAM_INTEGER, "which attempt; the newest if not given"},
    {"offset", HTTP_PARAM_INTEGER, "byte to begin at"},
    {"limit", HTTP_PARAM_INTEGER, "bytes at most, up to 8 MiB; 1 MiB if not given"},
    {"tail", HTTP_PARAM_INTEGER, "the last so many lines of the last limit bytes"},
    {"source", HTTP_PARAM_STRING, "driver"},
    {"last_event_id", HTTP_PARAM_STRING, "as the Last-Event-ID header: go on at this byte"},
    {0}};
static const struct http_param event_params[] = {
    {"follow", HTTP_PARAM_BOOLEAN, "an event stream"},
    {"since", HTTP_PARAM_INTEGER, "only events after this number"},
    {"limit", HTTP_PARAM_INTEGER, "events of a page, 1 to 1000; 200 if not given"},
    {"newest_first", HTTP_PARAM_BOOLEAN, "the newest ones, newest first"},
    {"wait", HTTP_PARAM_SPAN, "answer when there is one, at most 60s"},
    {"job", HTTP_PARAM_STRING, "only of the job with this id"},
    {"last_event_id", HTTP_PARAM_STRING, "as the Last-Event-ID header"},
    {0}};

/* The last is what curl says when it is told nothing. */
#define SPEC_TYPES                                                                                 \
    "application/yaml, application/json, application/x-yaml, text/yaml, text/plain, "              \
    "application/x-www-form-urlencoded"

static const struct http_route routes[] = {
    {.method = "POST",
     .pattern = "/v1/jobs",
     .least = HTTP_ROLE_USER,
     .max_body = SPEC_MAX,
     .handle = api_jobs_create,
     .summary = "submit a JobSpec",
     .params = submit_params,
     .request_type = SPEC_TYPES,
     .request_schema = "JobSpec",
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
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/logs",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_logs,
     .summary = "the driver's log, or a stream of it",
     .params = log_params,
     .reply_type = "application/octet-stream"},
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
     .pattern = "/v1/nodes",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_nodes,
     .summary = "the machines, as Ray lists them",
     .reply_schema = "NodeList"},
    {.method = "GET",
     .pattern = "/v1/clusters",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_clusters,
     .summary = "the Ray clusters",
     .reply_schema = "ClusterList"},
    {.method = "GET",
     .pattern = "/v1/clusters/{cluster}/nodes",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_cluster_nodes,
     .summary = "the machines of a cluster",
     .reply_schema = "NodeList"},
    {.method = "GET",
     .pattern = "/v1/clusters/{cluster}/actors",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_cluster_actors,
     .summary = "Ray's actors, each with its job",
     .reply_schema = "ActorList"},
    {.method = "GET",
     .pattern = "/v1/clusters/{cluster}/placement_groups",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_cluster_groups,
     .summary = "Ray's placement groups, each with its job",
     .reply_schema = "PlacementGroupList"},
    {.method = "GET",
     .pattern = "/v1/clusters/{cluster}/foreign",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_cluster_foreign,
     .summary = "Ray jobs that Argus did not submit",
     .reply_schema = "ForeignList"},
    {.method = "GET",
     .pattern = "/v1/whoami",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_whoami,
     .summary = "who this token is",
     .reply_schema = "Whoami"},
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

#define TEXT "{\"type\":\"string\"}"
#define TEXT_OR_NULL "{\"type\":[\"string\",\"null\"]}"
#define NUMBER "{\"type\":\"number\"}"
#define INTEGER "{\"type\":\"integer\"}"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define REASON                                                                                     \
    "{\"type\":\"object\",\"required\":[\"code\",\"text\"],\"properties\":{\"code\":" TEXT         \
    ",\"text\":" TEXT "}}"
#define STATE                                                                                      \
    "{\"enum\":[\"QUEUED\",\"STARTING\",\"RUNNING\",\"STOPPING\",\"SUCCEEDED\",\"FAILED\","        \
    "\"STOPPED\",\"TIMEOUT\"]}"
#define ITEM_PROPERTIES                                                                            \
    "\"id\":" TEXT ",\"name\":" TEXT_OR_NULL ",\"user\":" TEXT ",\"project\":" TEXT                \
    ",\"workload\":" TEXT ",\"cluster\":" TEXT ",\"state\":" STATE                                 \
    ",\"flags\":{\"type\":\"array\",\"items\":" TEXT "},\"reason\":" REASON                        \
    ",\"position\":" INTEGER ",\"pool\":" TEXT_OR_NULL ",\"priority\":" INTEGER                    \
    ",\"nnodes\":" INTEGER ",\"n_gpus_per_node\":" NUMBER ",\"gpus\":" NUMBER                      \
    ",\"queued_at\":" TEXT_OR_NULL ",\"started_at\":" TEXT_OR_NULL ",\"ended_at\":" TEXT_OR_NULL   \
    ",\"attempt\":" INTEGER ",\"restarts\":" INTEGER
#define ITEM_REQUIRED                                                                              \
    "[\"id\",\"user\",\"workload\",\"state\",\"flags\",\"reason\",\"nnodes\",\"gpus\","            \
    "\"queued_at\",\"attempt\",\"restarts\"]"
#define LIST_OF(name, key, item)                                                                   \
    {                                                                                              \
        name, "{\"type\":\"object\",\"required\":[\"" key "\"],\"properties\":{\"" key             \
              "\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/" item "\"}}}}"   \
    }

static const struct http_schema schemas[] = {
    {"Problem",
     "{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\",\"detail\",\"code\"],"
     "\"properties\":{\"type\":" TEXT ",\"title\":" TEXT ",\"status\":" INTEGER ",\"detail\":" TEXT
     ",\"code\":" TEXT ",\"field\":" TEXT_OR_NULL ",\"hint\":" TEXT_OR_NULL
     ",\"problems\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}"},
    {"JobSpec",
     "{\"type\":\"object\",\"required\":[\"workload\"],\"properties\":{\"workload\":" TEXT "}}"},
    {"Submitted", "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":" TEXT
                  ",\"state\":" STATE ",\"warnings\":{\"type\":\"array\"}}}"},
    {"JobItem",
     "{\"type\":\"object\",\"required\":" ITEM_REQUIRED ",\"properties\":{" ITEM_PROPERTIES "}}"},
    LIST_OF("JobList", "jobs", "JobItem"),
    {"Job", "{\"type\":\"object\",\"required\":" ITEM_REQUIRED ",\"properties\":{" ITEM_PROPERTIES
            ",\"submission_id\":" TEXT ",\"output_dir\":" TEXT
            ",\"attempts\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
            ",\"argv\":{\"type\":[\"array\",\"null\"]},\"spec\":" TEXT
            ",\"resolved_spec\":{\"type\":[\"object\",\"null\"]}"
            ",\"proof\":{\"type\":[\"object\",\"null\"]},\"exit\":{\"type\":[\"object\",\"null\"]}"
            ",\"finding\":{\"type\":[\"object\",\"null\"]},\"deadline\":" TEXT_OR_NULL "}}"},
    {"Event",
     "{\"type\":\"object\",\"required\":[\"seq\",\"at\",\"kind\",\"actor\"],\"properties\":"
     "{\"seq\":" INTEGER ",\"at\":" TEXT ",\"job\":" TEXT_OR_NULL ",\"kind\":" TEXT
     ",\"actor\":" TEXT ",\"from\":" TEXT_OR_NULL ",\"to\":" TEXT_OR_NULL ",\"reason\":" REASON
     ",\"text\":" TEXT "}}"},
    LIST_OF("EventList", "events", "Event"),
    {"Node", "{\"type\":\"object\",\"required\":[\"name\",\"state\",\"gpus\",\"ip\",\"is_head\"],"
             "\"properties\":{\"name\":" TEXT ",\"state\":{\"enum\":[\"pending\",\"online\","
             "\"draining\",\"offline\"]},\"ip\":" TEXT ",\"is_head\":" BOOLEAN "}}"},
    {"Cluster", "{\"type\":\"object\",\"required\":[\"name\",\"address\",\"up\"],\"properties\":"
                "{\"name\":" TEXT ",\"address\":" TEXT ",\"up\":" BOOLEAN "}}"},
    LIST_OF("ClusterList", "clusters", "Cluster"),
    {"Actor", "{\"type\":\"object\",\"required\":[\"actor_id\",\"state\"],\"properties\":"
              "{\"actor_id\":" TEXT ",\"state\":" TEXT ",\"job\":" TEXT_OR_NULL
              ",\"node\":" TEXT_OR_NULL "}}"},
    LIST_OF("ActorList", "actors", "Actor"),
    {"PlacementGroup",
     "{\"type\":\"object\",\"required\":[\"placement_group_id\",\"state\",\"bundles\"],"
     "\"properties\":{\"placement_group_id\":" TEXT ",\"state\":" TEXT ",\"job\":" TEXT_OR_NULL
     ",\"bundles\":{\"type\":\"array\"}}}"},
    LIST_OF("PlacementGroupList", "placement_groups", "PlacementGroup"),
    {"Foreign", "{\"type\":\"object\",\"required\":[\"ray_id\",\"state\"],\"properties\":"
                "{\"ray_id\":" TEXT ",\"state\":" TEXT "}}"},
    LIST_OF("ForeignList", "foreign", "Foreign"),
    LIST_OF("NodeList", "nodes", "Node"),
    {"Whoami",
     "{\"type\":\"object\",\"required\":[\"user\",\"role\"],\"properties\":{\"user\":" TEXT
     ",\"role\":{\"enum\":[\"viewer\",\"user\",\"admin\"]}}}"},
    {"Version", "{\"type\":\"object\",\"required\":[\"version\",\"ray\"],\"properties\":"
                "{\"version\":" TEXT ",\"ray\":{\"type\":\"object\"}}}"},
    {"Ready",
     "{\"type\":\"object\",\"required\":[\"ready\"],\"properties\":{\"ready\":" BOOLEAN "}}"},
};

const struct http_route *api_routes(size_t *ret_n)
{
    *ret_n = array_len(routes);
    return routes;
}

void api_openapi_text(struct buf *out)
{
    http_openapi(routes, array_len(routes), schemas, array_len(schemas), ARGUS_VERSION, out);
}
