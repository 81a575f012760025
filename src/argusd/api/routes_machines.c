/* SPDX-License-Identifier: Apache-2.0 */
/* routes_machines.c - rows and schemas of nodes, pools and clusters; see routes.h. */
#include "argusd/api/routes.h"

#include "argusd/api/handlers.h"

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
     .request_schema = "NodeOrder",
     .reply_schema = "NodeList",
     .reply_status = 201,
     .other_schema = "NodeList"},
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
    {.method = "POST",
     .pattern = "/v1/clusters/{cluster}/foreign/{ray_id}:adopt",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_cluster_adopt,
     .summary = "record whose a job is that Argus did not submit; nothing is done to it",
     .request_schema = "Adopt",
     .reply_schema = "Foreign"},
};

static const struct field drain_rows[] = {
    OPT_AS("deadline", "{\"type\":[\"string\",\"integer\",\"null\"]}"),
    OPT_AS("then", WORDS("\"wait\",\"stop\",\"restart\""))};
SHAPE(drain)

static const struct field remove_rows[] = {OPT_BOOLEAN("force")};
SHAPE(remove)

static const struct field check_rows[] = {OPT_BOOLEAN("accept_key")};
SHAPE(check)

static const struct field adopt_rows[] = {HAS_TEXT("project"), OPT_TEXT("user")};
SHAPE(adopt)

static const struct field down_rows[] = {OPT_BOOLEAN("stop_jobs")};
SHAPE(down)

#define STALE "," KEY("stale", BOOLEAN)
#define PARTIAL "," KEY("is_partial", BOOLEAN)

static const struct http_schema schemas[] = {
    {.name = "NodeSpec", .table = &nodespec_table, .is_form = true},
    {.name = "NodeOrder",
     .json = "{\"anyOf\":[" REF("NodeSpec") "," LIST(
         REF("NodeSpec")) "," OBJECT("\"nodes\"", KEY("nodes", LIST(REF("NodeSpec")))) "]}"},
    LIST_AND("PoolList", "pools", "Pool", STALE),
    LIST_OF("ClusterList", "clusters", "Cluster"),
    LIST_AND("ActorList", "actors", "Actor", PARTIAL),
    LIST_AND("PlacementGroupList", "placement_groups", "PlacementGroup", PARTIAL),
    LIST_OF("ForeignList", "foreign", "Foreign"),
    LIST_AND("NodeList", "nodes", "Node", STALE "," KEY("reason", TEXT_OR_NULL)),
    {.name = "NodeDrain", .table = &nodes_drain_table},
    {.name = "NodeSpecShown", .table = &nodespec_shown_table},
    {.name = "NodeFacts", .table = &node_facts_table},
    {.name = "NodeReason", .table = &nodes_reason_table},
    {.name = "Node", .table = &nodes_node_table},
    {.name = "FirewallRule", .table = &nodes_rule_table},
    {.name = "Firewall", .table = &nodes_firewall_table},
    {.name = "Drain", .table = &drain_table, .is_form = true},
    {.name = "Remove", .table = &remove_table, .is_form = true},
    {.name = "Check", .table = &check_table, .is_form = true},
    {.name = "Down", .table = &down_table, .is_form = true},
    {.name = "Pool", .table = &nodes_pool_table},
    {.name = "Cluster", .table = &cluster_table},
    {.name = "Actor", .table = &actor_table},
    {.name = "PlacementGroup", .table = &placement_group_table},
    {.name = "Foreign", .table = &foreign_table},
    {.name = "Adopt", .table = &adopt_table, .is_form = true},
};

const struct api_part part_routes_machines = {rows, array_len(rows), schemas, array_len(schemas)};
