/* SPDX-License-Identifier: Apache-2.0 */
/* routes_machines.c - rows and schemas of nodes, pools and clusters; see routes.h. */
#include "argusd/routes.h"

#include "argusd/api.h"

#define TEXTS "{\"type\":\"array\",\"items\":" TEXT "}"

enum { NODESPEC_BODY_MAX = 1 << 20, ACTION_MAX = 4096 };

static const struct http_param wait_params[] = {
    {"wait", HTTP_PARAM_SPAN, "with If-None-Match: answer when it changes, at most 60s"},
    {0}};

static const struct http_param firewall_params[] = {
    {"argusd", HTTP_PARAM_STRING, "argusd's addresses as the machine sees them; else found out"},
    {"prometheus", HTTP_PARAM_STRING, "addresses of who reads the metrics, parted by commas"},
    {0}};

#define SPEC_TYPES                                                                                 \
    "application/yaml, application/json, application/x-yaml, text/yaml, text/plain, "              \
    "application/x-www-form-urlencoded"

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/nodes",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_nodes,
     .summary = "the machines: those of the registry, and those that only Ray lists",
     .reply_schema = "NodeList"},
    {.method = "POST",
     .pattern = "/v1/nodes",
     .least = HTTP_ROLE_ADMIN,
     .max_body = NODESPEC_BODY_MAX,
     .handle = api_nodes_create,
     .summary = "register one machine or a list of them; argusd brings them in over ssh",
     .request_type = SPEC_TYPES,
     .request_schema = "NodeSpec",
     .reply_schema = "NodeList",
     .reply_status = 201},
    {.method = "GET",
     .pattern = "/v1/nodes/{name}",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_nodes_get,
     .summary = "one machine",
     .params = wait_params,
     .reply_schema = "Node"},
    {.method = "GET",
     .pattern = "/v1/nodes/{name}/firewall",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_nodes_firewall,
     .summary = "who is to reach which of its ports",
     .params = firewall_params,
     .reply_schema = "Firewall"},
    {.method = "POST",
     .pattern = "/v1/nodes/{name}:drain",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_nodes_drain,
     .summary = "no new job from now on; when nothing runs on it any more it goes offline",
     .request_schema = "Drain",
     .reply_schema = "Node",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/nodes/{name}:undrain",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_nodes_undrain,
     .summary = "take a drained machine back",
     .reply_schema = "Node",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/nodes/{name}:remove",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_nodes_remove,
     .summary = "stop Ray there and forget the machine and its host key",
     .request_schema = "Remove",
     .reply_schema = "Node",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/nodes/{name}:check",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_nodes_check,
     .summary = "look at the machine now; the answer has the findings",
     .request_schema = "Check",
     .reply_schema = "Node"},
    {.method = "GET",
     .pattern = "/v1/pools",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_pools,
     .summary = "GPUs by use, of the cluster and of each label",
     .reply_schema = "PoolList"},
    {.method = "GET",
     .pattern = "/v1/clusters",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_clusters,
     .summary = "the Ray clusters",
     .reply_schema = "ClusterList"},
    {.method = "POST",
     .pattern = "/v1/clusters/{cluster}:up",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_cluster_up,
     .summary = "make sure that the managed head and all nodes run",
     .reply_schema = "ClusterList",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/clusters/{cluster}:down",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_cluster_down,
     .summary = "stop exactly what argusd started, nodes first, then the head",
     .request_schema = "Down",
     .reply_schema = "ClusterList",
     .reply_status = 202},
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
};

static const struct http_schema schemas[] = {
    {"Node",
     "{\"type\":\"object\",\"required\":[\"name\",\"state\",\"flags\",\"gpus\",\"reason\",\"ip\","
     "\"is_head\",\"registered\"],\"properties\":{\"name\":" TEXT ",\"pool\":" TEXT_OR_NULL
     ",\"labels\":" TEXTS ",\"state\":{\"enum\":[\"pending\",\"online\",\"draining\","
     "\"offline\"]},\"flags\":" TEXTS ",\"reason\":" REASON ",\"ip\":" TEXT ",\"is_head\":" BOOLEAN
     ",\"registered\":" BOOLEAN ",\"host_key\":" TEXT_OR_NULL ",\"jobs\":" TEXTS
     ",\"jobs_hidden\":" INTEGER
     ",\"findings\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/"
     "NodeFinding\"}}}}"},
    {"NodeFinding", "{\"type\":\"object\",\"required\":[\"code\",\"text\",\"fix\"],\"properties\":"
                    "{\"code\":" TEXT ",\"text\":" TEXT ",\"fix\":" TEXT "}}"},
    {"Firewall", "{\"type\":\"object\",\"required\":[\"node\",\"address\",\"rules\",\"unknown\"],"
                 "\"properties\":"
                 "{\"node\":" TEXT ",\"address\":" TEXT_OR_NULL ",\"unknown\":" TEXTS
                 ",\"rules\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/"
                 "FirewallRule\"}}}}"},
    {"FirewallRule",
     "{\"type\":\"object\",\"required\":[\"key\",\"first\",\"last\",\"from\",\"sources\","
     "\"closed\","
     "\"why\"],\"properties\":{\"key\":" TEXT ",\"first\":" INTEGER ",\"last\":" INTEGER
     ",\"from\":" TEXT ",\"sources\":" TEXTS ",\"closed\":" BOOLEAN ",\"why\":" TEXT "}}"},
    {"NodeSpec",
     "{\"type\":[\"object\",\"array\"],\"description\":\"argusd --list-nodespec has its "
     "keys; one, or a list of them\"}"},
    {"Drain", "{\"type\":\"object\",\"properties\":{\"deadline\":{\"type\":[\"string\",\"integer\","
              "\"null\"]},\"then\":{\"enum\":[\"wait\",\"stop\",\"restart\"]}}}"},
    {"Remove", "{\"type\":\"object\",\"properties\":{\"force\":" BOOLEAN "}}"},
    {"Check", "{\"type\":\"object\",\"properties\":{\"accept_key\":" BOOLEAN "}}"},
    {"Down", "{\"type\":\"object\",\"properties\":{\"stop_jobs\":" BOOLEAN "}}"},
    {"Pool",
     "{\"type\":\"object\",\"required\":[\"cluster\",\"pool\",\"gpus\",\"largest_gang\","
     "\"queued\",\"next_free\"],\"properties\":{\"pool\":" TEXT_OR_NULL ",\"type\":" TEXT_OR_NULL
     ",\"largest_gang\":" NUMBER ",\"queued\":" INTEGER ",\"next_free\":" TEXT_OR_NULL "}}"},
    LIST_OF("PoolList", "pools", "Pool"),
    {"Cluster", "{\"type\":\"object\",\"required\":[\"name\",\"address\",\"up\"],\"properties\":"
                "{\"name\":" TEXT ",\"address\":" TEXT ",\"up\":" BOOLEAN "}}"},
    LIST_OF("ClusterList", "clusters", "Cluster"),
    {"Actor", "{\"type\":\"object\",\"required\":[\"actor_id\",\"state\"],\"properties\":"
              "{\"actor_id\":" TEXT ",\"state\":" TEXT ",\"job\":" TEXT_OR_NULL
              ",\"job_hidden\":" BOOLEAN ",\"node\":" TEXT_OR_NULL "}}"},
    LIST_OF("ActorList", "actors", "Actor"),
    {"PlacementGroup",
     "{\"type\":\"object\",\"required\":[\"placement_group_id\",\"state\",\"bundles\"],"
     "\"properties\":{\"placement_group_id\":" TEXT ",\"state\":" TEXT ",\"job\":" TEXT_OR_NULL
     ",\"job_hidden\":" BOOLEAN ",\"bundles\":{\"type\":\"array\"}}}"},
    LIST_OF("PlacementGroupList", "placement_groups", "PlacementGroup"),
    {"Foreign", "{\"type\":\"object\",\"required\":[\"ray_id\",\"state\"],\"properties\":"
                "{\"ray_id\":" TEXT ",\"state\":" TEXT "}}"},
    LIST_OF("ForeignList", "foreign", "Foreign"),
    LIST_OF("NodeList", "nodes", "Node"),
};

const struct api_part *routes_machines(void)
{
    static const struct api_part part = {rows, array_len(rows), schemas, array_len(schemas)};
    return &part;
}
