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

const struct api_part *routes_code(void);
const struct api_part *routes_files(void);
const struct api_part *routes_jobs(void);
const struct api_part *routes_machines(void);
const struct api_part *routes_people(void);
const struct api_part *routes_presets(void);
const struct api_part *routes_data(void);
const struct api_part *routes_secrets(void);

/* All rows; free() them after the server is closed. */
struct http_route *routes_join(size_t *ret_n);
/* openapi.json */
void routes_openapi(struct buf *out);

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
#define ETA                                                                                        \
    "{\"type\":[\"object\",\"null\"],\"required\":[\"p50\",\"p90\"],\"properties\":{\"p50\":" TEXT \
    ",\"p90\":" TEXT "}}"
#define ITEM_PROPERTIES                                                                            \
    "\"id\":" TEXT ",\"name\":" TEXT_OR_NULL ",\"user\":" TEXT ",\"project\":" TEXT                \
    ",\"workload\":" TEXT ",\"cluster\":" TEXT ",\"state\":" STATE                                 \
    ",\"flags\":{\"type\":\"array\",\"items\":" TEXT "},\"reason\":" REASON                        \
    ",\"position\":" INTEGER ",\"eta\":" ETA ",\"pool\":" TEXT_OR_NULL ",\"priority\":" INTEGER    \
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
