/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of commands name is in openapi.json: the route that a row asks, the parameters and
 * members that its options fill in, the list and the columns of its table. A member that argusd
 * renames fails here and not before a person, who would see "-".
 *
 * Literals in functions are the gate `keys`'s. */
#include <stdlib.h>
#include <string.h>

#include "argus/cli/command.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "base/unit.h"

enum { CONTRACT_MAX = 16 << 20, ROUTES_MAX = 16 };

struct contract {
    json_t *doc;
    struct buf wrong; /* a line for each name that the contract does not have */
    size_t n;         /* names that were looked up */
};

/* ---- schemas ---- */

/* The next word of "a/b/c", which a mark parts, to be freed; NULL behind the last. */
static char *word_next(const char **at, char mark)
{
    size_t n = 0;
    if (!**at)
        return NULL;
    while ((*at)[n] && (*at)[n] != mark)
        n++;
    char *word = xstrndup(*at, n);
    *at += (*at)[n] ? n + 1 : n;
    return word;
}

/* The value at "a/b/c". */
static json_t *doc_at(const json_t *doc, const char *path, char mark)
{
    const json_t *within = doc;
    json_t *at = NULL;
    for (char *word; (word = word_next(&path, mark)); free(word))
        within = at = json_object_get(within, word);
    return at;
}

static const json_t *schema_of_ref(const json_t *doc, const json_t *schema)
{
    const char *ref = json_get_str(schema, "$ref", NULL);
    if (!ref)
        return schema;
    return doc_at(doc, ref + strlen("#/"), '/');
}

/* The first schema among this one and its alternatives that `find` likes. */
static const json_t *schema_find(const json_t *doc,
                                 const json_t *schema,
                                 const json_t *(*find)(const json_t *schema, const char *key),
                                 const char *key)
{
    static const char *const ways[] = {"anyOf", "oneOf", "allOf"};
    schema = schema_of_ref(doc, schema);
    const json_t *found = schema ? find(schema, key) : NULL;
    for (size_t i = 0; !found && i < array_len(ways); i++) {
        const json_t *one;
        size_t k;
        json_array_foreach (json_get_array(schema, ways[i]), k, one)
            if (!found)
                found = schema_find(doc, one, find, key);
    }
    return found;
}

/* An open object has every member. */
static const json_t *schema_member(const json_t *schema, const char *key)
{
    const json_t *member = json_object_get(json_get_object(schema, "properties"), key);
    return member ? member : json_get_object(schema, "additionalProperties");
}

static const json_t *schema_items(const json_t *schema, const char *key)
{
    (void)key;
    return json_get_object(schema, "items");
}

/* "usage.gpus" */
static const json_t *schema_at(const json_t *doc, const json_t *schema, const char *path)
{
    for (char *word; schema && (word = word_next(&path, '.')); free(word))
        schema = schema_find(doc, schema, schema_member, word);
    return schema;
}

/* ---- routes ---- */

/* "/v1/users/{user}/quota" and "/v1/users/{}/quota" are one path. is_word: what the row takes as an
 * argument may be a word of the path, "/v1/ops/drain_node" for "/v1/ops/{}". */
static bool path_is(const char *a, const char *b, bool is_word)
{
    while (*a && *b && *b != '?') {
        if (*b == '{' && (*a == '{' || is_word)) {
            a += *a == '{' ? strcspn(a, "}") + 1 : strcspn(a, "/:");
            b += strcspn(b, "}") + 1;
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return !*a && (!*b || *b == '?');
}

/* The routes that a row may ask: one, or one for each word that its argument may be. */
struct routes {
    const json_t *v[ROUTES_MAX];
    size_t n;
};

static struct routes routes_of(const json_t *doc, const char *method, const char *path)
{
    struct routes all = {0};
    _cleanup_(freep) char *lower = xstrdup(method);
    for (char *c = lower; *c; c++)
        *c = (char)(*c | 0x20);
    for (int is_word = 0; !all.n && is_word < 2; is_word++) {
        const char *at;
        json_t *methods;
        json_object_foreach (json_object_get(doc, "paths"), at, methods) {
            const json_t *route = json_object_get(methods, lower);
            if (!route || !path_is(at, path, is_word))
                continue;
            assert_true(all.n < ROUTES_MAX);
            all.v[all.n++] = route;
        }
    }
    return all;
}

static const json_t *route_json(const json_t *part)
{
    return json_object_get(json_object_get(json_object_get(part, "content"), "application/json"),
                           "schema");
}

/* The schema of the reply of success. */
static const json_t *route_reply(const json_t *doc, const json_t *route)
{
    const char *status;
    json_t *reply;
    json_object_foreach (json_object_get(route, "responses"), status, reply)
        if (status[0] == '2')
            return route_json(schema_of_ref(doc, reply));
    return NULL;
}

static bool route_has_query(const json_t *doc, const json_t *route, const char *name, size_t len)
{
    const json_t *one;
    size_t i;
    json_array_foreach (json_get_array(route, "parameters"), i, one) {
        const json_t *p = schema_of_ref(doc, one);
        const char *there = json_get_str(p, "name", "");
        if (str_eq(json_get_str(p, "in", ""), "query") && strlen(there) == len &&
            !strncmp(there, name, len))
            return true;
    }
    return false;
}

/* ---- rows ---- */

static void contract_hold(struct contract *c,
                          const struct command *row,
                          bool is_there,
                          const char *name)
{
    c->n++;
    if (!is_there)
        assert_true(buf_addf(&c->wrong, "argus %s: %s\n", row->name, name) >= 0);
}

/* "/v1/jobs?all=1&limit=5" */
static void check_path_query(struct contract *c, const struct command *row, const json_t *route)
{
    const char *query = strchr(row->ask.path, '?');
    while (query && *++query) {
        size_t n = strcspn(query, "=&");
        contract_hold(c, row, route_has_query(c->doc, route, query, n), row->ask.path);
        query = strchr(query, '&');
    }
}

static bool route_has_place(const json_t *doc, const json_t *route, const char *to)
{
    const char *key = strchr(to, ':') + 1;
    size_t n = strcspn(key, "=");
    if (str_starts(to, "query:"))
        return route_has_query(doc, route, key, n);
    const json_t *body = route_json(json_object_get(route, "requestBody"));
    _cleanup_(freep) char *name = xstrndup(key, n);
    return body && schema_find(doc, body, schema_member, name);
}

/* An option may be for one of the words that the row's argument may be. */
static void check_place(struct contract *c,
                        const struct command *row,
                        const struct routes *routes,
                        const char *to)
{
    bool is_there = false;
    if (!to || str_starts(to, "path:"))
        return;
    for (size_t i = 0; i < routes->n; i++)
        is_there |= route_has_place(c->doc, routes->v[i], to);
    contract_hold(c, row, is_there, to);
}

static void check_table(struct contract *c, const struct command *row, const json_t *reply)
{
    const struct listing *t = &row->ask.table;
    const json_t *list = schema_find(c->doc, reply, schema_member, t->key);
    const json_t *item = list ? schema_find(c->doc, list, schema_items, NULL) : NULL;
    contract_hold(c, row, item, t->key);
    for (size_t i = 0; item && i < t->n_columns; i++) {
        const struct column *k = &t->columns[i];
        if (k->key)
            contract_hold(c, row, schema_at(c->doc, item, k->key), k->key);
        if (k->most)
            contract_hold(c, row, schema_at(c->doc, item, k->most), k->most);
    }
    if (item && t->having)
        contract_hold(c, row, schema_at(c->doc, item, t->having), t->having);
}

/* "user {name}": a member of the reply, or what the row's argument is called. */
static void check_line(struct contract *c,
                       const struct command *row,
                       const json_t *reply,
                       const char *line)
{
    for (const char *at = line; at && (at = strchr(at, '{')); at++) {
        _cleanup_(freep) char *name = xstrndup(at + 1, strcspn(at + 1, "}"));
        contract_hold(c, row, reply && schema_at(c->doc, reply, name), line);
    }
}

static void check_reply(struct contract *c,
                        const struct command *row,
                        const char *path,
                        const json_t *route)
{
    const struct ask *ask = &row->ask;
    const json_t *reply = route_reply(c->doc, route);
    if (ask->table.key)
        check_table(c, row, reply);
    if (ask->onto) {
        struct routes before = routes_of(c->doc, "GET", path);
        assert_int_equal(before.n, 1);
        contract_hold(
            c, row, schema_find(c->doc, route_reply(c->doc, before.v[0]), schema_member, ask->onto),
            ask->onto);
    }
    check_line(c, row, reply, ask->subject);
    check_line(c, row, reply, ask->next);
}

/* ask_make_body() gives each POST and PUT a body, if only an empty one. */
static void check_body(struct contract *c, const struct command *row, const json_t *route)
{
    const char *method = row->ask.method;
    if (str_eq(method, "POST") || str_eq(method, "PUT"))
        contract_hold(c, row, json_object_get(route, "requestBody") != NULL, "a body");
}

static void check_route(struct contract *c, const struct command *row, const char *path)
{
    const struct ask *ask = &row->ask;
    struct routes routes = routes_of(c->doc, ask->method ? ask->method : "GET", path);
    contract_hold(c, row, routes.n, path);
    if (routes.n)
        check_place(c, row, &routes, ask->arg_to);
    for (size_t i = 0; routes.n && i < row->n_opts; i++)
        check_place(c, row, &routes, row->opts[i].to);
    for (size_t i = 0; i < routes.n; i++) {
        check_path_query(c, row, routes.v[i]);
        check_body(c, row, routes.v[i]);
        check_reply(c, row, path, routes.v[i]);
    }
}

/* The path, or for "/v1/{of}/quota" one with each option that says what it is of. */
static void check_row(struct contract *c, const struct command *row)
{
    const char *of = strstr(row->ask.path, "{of}");
    if (!of) {
        check_route(c, row, row->ask.path);
        return;
    }
    for (size_t i = 0; i < row->n_opts; i++) {
        if (!row->opts[i].to || !str_starts(row->opts[i].to, "path:"))
            continue;
        _cleanup_(freep) char *path =
            xasprintf("%.*s%s/{}%s", (int)(of - row->ask.path), row->ask.path,
                      row->opts[i].to + strlen("path:"), of + strlen("{of}"));
        check_route(c, row, path);
    }
}

static void contract_open(struct contract *c)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(CONTRACT_MAX);
    struct err err = {0};
    *c = (struct contract){.wrong = BUF_INIT(1 << 20)};
    const char *path = getenv("ARGUS_OPENAPI");
    assert_non_null(path);
    assert_int_equal(file_read(path, &text, &err), 0);
    assert_int_equal(json_parse(buf_str(&text), text.len, CONTRACT_MAX, &c->doc, &err), 0);
}

static void contract_check(struct contract *c)
{
    const struct command *row;
    for (size_t i = 0; (row = command_at(i)); i++)
        if (row->ask.path)
            check_row(c, row);
}

static void contract_close(struct contract *c)
{
    json_decref(c->doc);
    buf_release(&c->wrong);
}

static void test_rows_keep_the_contract(void **state)
{
    (void)state;
    struct contract c;
    contract_open(&c);
    contract_check(&c);
    if (c.wrong.len)
        fail_msg("openapi.json does not have:\n%s", buf_str(&c.wrong));
    assert_true(c.n > 300);
    contract_close(&c);
}

/* Rename `from` to `to` in the object at this path of the document. */
static void contract_rename(struct contract *c, const char *path, const char *from, const char *to)
{
    json_t *at = doc_at(c->doc, path, ' ');
    json_t *value = json_incref(json_object_get(at, from));
    assert_non_null(value);
    assert_int_equal(json_object_del(at, from), 0);
    assert_int_equal(json_object_set_new(at, to, value), 0);
}

/* What is renamed in openapi.json is told, with the command that names it. */
static void test_a_renamed_member_is_told(void **state)
{
    static const struct renamed {
        const char *path, *name, *wrong;
    } renamed[] = {
        {"components schemas QuotaForm properties", "gpus_ceiling",
         "argus quota set: body:gpus_ceiling\n"},
        {"components schemas QuotaList properties", "quotas", "argus quota ls: quotas\n"},
        {"components schemas Usage properties", "gpu_hours_this_month",
         "argus quota ls: usage.gpu_hours_this_month\n"},
        {"paths", "/v1/quotas", "argus quota ls: /v1/quotas\n"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(renamed); i++) {
        struct contract c;
        contract_open(&c);
        contract_rename(&c, renamed[i].path, renamed[i].name, "renamed");
        contract_check(&c);
        assert_non_null(strstr(buf_str(&c.wrong), renamed[i].wrong));
        contract_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_keep_the_contract),
        cmocka_unit_test(test_a_renamed_member_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
