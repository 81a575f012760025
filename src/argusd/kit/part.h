/* SPDX-License-Identifier: Apache-2.0 */
/* part.h - what a file of handlers brings to the API: its routes and its schemas, as rows, and the
 * words of schemas. api/routes.h joins the parts. */
#pragma once
#include "base/field.h"
#include "http/http.h"
#include "http/openapi.h"

struct api_part {
    const struct http_route *rows;
    size_t n_rows;
    const struct http_schema *schemas;
    size_t n_schemas;
};

/* Media types of a body that is a text of our keys. The last is what curl says when it is told
 * nothing. */
#define TEXT_TYPES                                                                                 \
    "application/yaml, application/json, application/x-yaml, text/yaml, text/plain, "              \
    "application/x-www-form-urlencoded"

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
