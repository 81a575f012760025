/* SPDX-License-Identifier: Apache-2.0 */
/* specschema.c - GET /v1/jobspec.schema.json: the JobSpec as a JSON schema of its own, for editors.
 *
 * Made of the table of its keys, as the description of the API is. What the table cannot say is
 * added here: the second forms of two keys, and that a spec which names a preset may fill its
 * holes. */
#include "argusd/api/specschema.h"

#include <stdlib.h>

#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/str.h"
#include "core/spec/spec.h"

enum { SCHEMA_MAX = 1 << 20 };

/* "checkpoint: none" and a shell line as entrypoint. */
static void add_second_form(json_t *properties, const char *key, const char *form)
{
    json_t *first = json_object_get(properties, key), *second = json_loads(form, 0, NULL);
    if (!first || !second)
        return;
    json_t *says = json_object_get(first, "description");
    json_t *both = json_pack("{s:[O,o]}", "anyOf", first, second);
    if (says)
        (void)json_object_set(both, "description", says); /* as below: only memory can fail */
    (void)json_object_set_new(properties, key, both);
}

/* Without a preset every key is one of these. */
static json_t *closed_unless_preset(const json_t *properties, const json_t *required)
{
    json_t *names = json_array();
    const char *key;
    json_t *v;
    json_object_foreach ((json_t *)(uintptr_t)properties, key, v) /* only read */
        (void)json_array_append_new(names, json_string(key));
    return json_pack("{s:{s:o},s:O?}", "propertyNames", "enum", names, "required", required);
}

static json_t *specschema_tree(void)
{
    struct buf text = BUF_INIT(SCHEMA_MAX);
    struct jout j = jout_begin(&text);
    json_t *s = NULL;
    field_form_schema(&spec_table, FIELD_ALL, &j, NULL);
    if (!text.failed)
        s = json_loads(buf_str(&text), 0, NULL);
    buf_release(&text);
    if (!s)
        return NULL;
    json_t *properties = json_object_get(s, "properties");
    add_second_form(properties, "checkpoint", "{\"const\":\"none\"}");
    add_second_form(properties, "entrypoint", "{\"type\":\"string\"}");
    json_t *rest = closed_unless_preset(properties, json_object_get(s, "required"));
    (void)json_object_del(s, "required");
    (void)json_object_del(s, "additionalProperties");
    (void)json_object_set_new(s, "if", json_pack("{s:[s]}", "required", "preset"));
    (void)json_object_set_new(s, "else", rest);
    (void)json_object_set_new(s, "$schema",
                              json_string("https://json-schema.org/draft/2020-12/schema"));
    (void)json_object_set_new(s, "title", json_string("JobSpec"));
    return s;
}

void specschema_make(struct buf *out)
{
    _cleanup_(json_unrefp) json_t *s = specschema_tree();
    char *text = s ? json_dumps(s, JSON_COMPACT) : NULL;
    (void)buf_adds(out, str_or(text, "{}")); /* it fits */
    free(text);
}

/* Anybody may ask: it is made once. */
static void api_jobspec_schema(struct http_req *req, void *app)
{
    const struct api *a = app;
    http_reply_borrowed(req, 200, "application/json", a->jobspec_schema.data,
                        a->jobspec_schema.len);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobspec.schema.json",
     .least = HTTP_ROLE_NONE,
     .handle = api_jobspec_schema,
     .summary = "the JobSpec as a JSON schema, for editors that check and complete YAML"},
};
const struct api_part part_specschema = {rows, array_len(rows), NULL, 0};
