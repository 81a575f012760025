/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - the one route table, in parts by noun, and words of their schemas.
 * openapi.json is made from it, and the tests hold live replies against it. */
#pragma once
#include "http/http.h"
#include "http/openapi.h"

struct api_part {
    const struct http_route *rows;
    size_t n_rows;
    const struct http_schema *schemas;
    size_t n_schemas;
};

/* The list in meson.build names the files; each has a part_<file>. NULL at the end. */
extern const struct api_part *const API_PARTS[];

/* Pages, by their handlers: a row of GET /v1/clusters, GET /v1/version, GET /readyz. */
extern const struct field_table cluster_table, actor_table, placement_group_table, foreign_table;
extern const struct field_table why_table, why_hint_table; /* GET /v1/jobs/{id}/why */
extern const struct field_table event_table, logfiles_table;
extern const struct field_table checkpoint_list_table, checkpoint_sums_table,
    checkpoints_cleaned_table;
extern const struct field_table job_metrics_table, metric_series_table, log_hits_table;
extern const struct field_table file_table, file_put_table, file_removed_table;
extern const struct field_table whoami_table, verified_table;
extern const struct field_table version_table;
/* Bodies of actions, by their handlers. */
extern const struct field_table drainplan_table;
extern const struct field_table node_drain_form, node_remove_form, node_check_form, adopt_form,
    cluster_down_form, retry_form, checkpoint_cleaning_form, file_form;
extern const struct field_table ready_table;

/* All rows; free() them after the server is closed. */
struct http_route *routes_join(size_t *ret_n);
/* openapi.json */
void routes_openapi(struct buf *out);

#define TEXT "{\"type\":\"string\"}"
#define TEXT_OR_NULL "{\"type\":[\"string\",\"null\"]}"
#define NUMBER "{\"type\":\"number\"}"
#define NUMBER_OR_NULL "{\"type\":[\"number\",\"null\"]}"
#define INTEGER "{\"type\":\"integer\"}"
#define INTEGER_OR_NULL "{\"type\":[\"integer\",\"null\"]}"
#define BOOLEAN "{\"type\":\"boolean\"}"
#define BOOLEAN_OR_NULL "{\"type\":[\"boolean\",\"null\"]}"
#define REF(name) "{\"$ref\":\"#/components/schemas/" name "\"}"
#define REF_OR_NULL(name) "{\"anyOf\":[" REF(name) ",{\"type\":\"null\"}]}"
#define LIST(item) "{\"type\":\"array\",\"items\":" item "}"
#define LIST_OR_NULL(item) "{\"type\":[\"array\",\"null\"],\"items\":" item "}"
#define TEXTS LIST(TEXT)
#define TEXT_OR_TEXTS "{\"anyOf\":[" TEXT "," TEXTS "]}"
/* Names that the data give. */
#define MAP(item) "{\"type\":\"object\",\"additionalProperties\":" item "}"
/* A value that Argus hands on as it got it. */
#define AS_IT_CAME(doc) "{\"description\":\"" doc "\"}"
#define OBJECT_AS_IT_CAME(doc)                                                                     \
    "{\"type\":[\"object\",\"null\"],\"additionalProperties\":" AS_IT_CAME(doc) "}"
/* Closed: KEY("a", TEXT) "," KEY("b", NUMBER). required: "\"a\"", or nothing. */
#define KEY(name, schema) "\"" name "\":" schema
#define OBJECT(required, members)                                                                  \
    "{\"type\":\"object\",\"required\":[" required "],\"properties\":{" members "}}"
#define WORDS(list) "{\"enum\":[" list "]}"
#define REASON REF("Reason")
#define LIST_AND(list, key, item, others)                                                          \
    {                                                                                              \
        .name = list, .json = OBJECT("\"" key "\"", KEY(key, LIST(REF(item))) others)              \
    }
#define LIST_OF(list, key, item) LIST_AND(list, key, item, "")

/* Rows of the body of an action, by the names that its handler asks for: they make its schema, and
 * a member of another name is refused. */
#define SAYS(key, ftype, ...)                                                                      \
    {                                                                                              \
        .name = key, .type = ftype, __VA_ARGS__                                                    \
    }
#define MUST_TEXT(key) SAYS(key, FIELD_STR, .flags = FIELD_REQUIRED)
#define MUST_INTEGER(key) SAYS(key, FIELD_INT, .flags = FIELD_REQUIRED)
#define OPT_TEXT(key) SAYS(key, FIELD_STR, .flags = 0)
#define OPT_BOOLEAN(key) SAYS(key, FIELD_BOOL, .flags = 0)
#define OPT_AS(key, text) SAYS(key, FIELD_JSON, .flags = 0, .schema = text)
#define ACTION_FORM(its_rows)                                                                      \
    {                                                                                              \
        .rows = (its_rows), .n = array_len(its_rows)                                               \
    }
