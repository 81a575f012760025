/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.c - see lineage.h. Back: each model is asked for by its name; its base model is the next
 * link, until one is not known, was seen already, or the chain is as long as anybody reads. Onward:
 * what the server says of who uses the model that was asked for. */
#include "argus/model/lineage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argus/cli/ask.h"
#include "argus/cli/cli.h"
#include "argus/net/client.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/str.h"

enum { LINKS_MAX = 16, LINE_MAX = 4096, WHAT_WIDTH = 10, NAME_WIDTH = 44, HASH_SHOWN = 16 };

/* One line of the chain: {depth, what, name, hash, said}. */
static void lineage_add(json_t *chain,
                        int depth,
                        const char *what,
                        const char *name,
                        const char *hash,
                        bool said)
{
    json_t *link = json_pack("{s:i,s:s,s:s,s:s?,s:b}", "depth", depth, "what", what, "name", name,
                             "hash", hash && *hash ? hash : NULL, "said", said);
    if (link)
        (void)json_array_append_new(chain, link); /* both are there */
}

/* What names a thing: a registered one by its reference, another by its path. */
static const char *lineage_name(const json_t *x)
{
    static const char *const keys[] = {"ref", "name", "id", "path"};
    if (json_is_string(x))
        return json_string_value(x);
    for (size_t i = 0; i < array_len(keys); i++)
        if (json_get_str(x, keys[i], NULL))
            return json_get_str(x, keys[i], "");
    return NULL;
}

/* Whether the last line is that of this thing: files of one data set are one. */
static bool lineage_ends_with(const json_t *chain, const char *what, const json_t *x)
{
    const json_t *last = json_array_get(chain, json_array_size(chain) - 1);
    return str_eq(member_str(last, "what"), what) &&
           str_eq(member_str(last, "name"), lineage_name(x));
}

static void lineage_add_things(json_t *chain, int depth, const char *what, json_t *of, bool said)
{
    const json_t *x;
    size_t i;
    if (json_is_array(of)) {
        json_array_foreach (of, i, x)
            if (lineage_name(x) && !lineage_ends_with(chain, what, x))
                lineage_add(chain, depth, what, lineage_name(x),
                            json_is_object(x) ? json_get_str(x, "hash", NULL) : NULL, said);
        return;
    }
    if (of && lineage_name(of))
        lineage_add(chain, depth, what, lineage_name(of),
                    json_is_object(of) ? json_get_str(of, "hash", NULL) : NULL, said);
}

/* "val-core/service/win/mean@1 0.75", a line for each. */
static void lineage_add_eval(json_t *chain, int depth, const json_t *lineage, bool said)
{
    json_t *values = json_object_get(json_object_get(lineage, "eval"), "values");
    const char *metric;
    json_t *value;
    char name[LINE_MAX];
    json_object_foreach (values, metric, value) {
        if (!json_is_number(value))
            continue;
        (void)snprintf(name, sizeof(name), "%s %.6g", metric, json_number_value(value)); /* cut */
        lineage_add(chain, depth, "eval", name, NULL, said);
    }
}

/* Adds one model and what it was made of. Returns what it names as its base, if that is registered:
 * heap, else NULL. */
static char *lineage_add_model(json_t *chain, int depth, const json_t *model)
{
    json_t *l = json_object_get(model, "lineage"), *base = json_object_get(l, "model");
    bool said = !str_eq(json_get_str(model, "lineage_by", ""), "argusd");
    const char *job = json_get_str(l, "job", NULL), *merge = json_get_str(l, "merge", NULL);
    char name[LINE_MAX];
    lineage_add(chain, depth++, "model", member_str(model, "ref"), json_get_str(model, "hash", ""),
                false);
    if (!json_is_object(l)) {
        const char *source = json_get_str(model, "source", NULL);
        if (source)
            lineage_add(chain, depth, "source", source, NULL, false);
        return NULL;
    }
    if (merge)
        lineage_add(chain, depth++, "merge", merge, NULL, said);
    if (job) {
        int64_t step = json_get_int(l, "step", 0);
        if (step)
            (void)snprintf(name, sizeof(name), "%s step %" PRId64, job, step); /* cut: fine */
        lineage_add(chain, depth++, "training", step ? name : job, NULL, said);
    }
    lineage_add_eval(chain, depth, l, said);
    lineage_add_things(chain, depth, "code", json_object_get(l, "snapshot"), said);
    lineage_add_things(chain, depth, "data", json_object_get(l, "data"), said);
    if (json_get_int(l, "more_data", 0)) {
        (void)snprintf(name, sizeof(name), "+%" PRId64, json_get_int(l, "more_data", 0)); /* fits */
        lineage_add(chain, depth, "data", name, NULL, said);
    }
    const char *ref = json_is_object(base) ? json_get_str(base, "ref", NULL) : NULL;
    if (ref)
        return xstrdup(ref);
    lineage_add_things(chain, depth, "base", base, said);
    return NULL;
}

static bool lineage_has(const json_t *chain, const char *ref)
{
    const json_t *link;
    size_t i;
    json_array_foreach (chain, i, link)
        if (str_eq(member_str(link, "what"), "model") && str_eq(member_str(link, "name"), ref))
            return true;
    return false;
}

static int lineage_depth(const json_t *chain)
{
    const json_t *last = json_array_get(chain, json_array_size(chain) - 1);
    return (int)json_get_int(last, "depth", 0);
}

/* A base model that is gone, or that one may not see, ends the chain with its name. */
static int lineage_follow(struct cli *cli, const char *name, json_t *chain, struct err *err)
{
    const int first = json_array_size(chain) ? lineage_depth(chain) + 1 : 0;
    _cleanup_(freep) char *next = xstrdup(name);
    for (int i = 0; next && i < LINKS_MAX; i++) {
        _cleanup_(json_unrefp) json_t *model = NULL;
        _cleanup_(freep) char *path = ask_path("/v1/models/{}", next);
        int depth = i ? lineage_depth(chain) : first;
        int r = lineage_has(chain, next) ? ERR_NOT_FOUND
                                         : client_get(cli->client, path, &model, i ? NULL : err);
        if (r < 0 && !i)
            return r;
        if (r < 0) {
            lineage_add(chain, depth, "base", next, NULL, false);
            return 0;
        }
        free(next);
        next = lineage_add_model(chain, depth, model);
    }
    return 0;
}

/* The name of a service in its endpoint, with or without the server before it; NULL: it is none. */
static char *lineage_service(const char *text)
{
    static const char *const before[] = {"/v1/services/", "service/"};
    for (size_t i = 0; i < array_len(before); i++) {
        const char *at = strstr(text, before[i]);
        if (at && (at == text || i == 0))
            return xstrndup(at + strlen(before[i]), strcspn(at + strlen(before[i]), "/?"));
    }
    return NULL;
}

/* The version that answers, or is to; then the model that it serves, or its code. */
static int lineage_follow_service(struct cli *cli, const char *name, json_t *chain, struct err *err)
{
    _cleanup_(json_unrefp) json_t *service = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/services/{}", name);
    int r = client_get(cli->client, path, &service, err);
    if (r < 0)
        return r;
    int64_t current = json_get_int(service, "current", 0);
    const json_t *v, *spec = NULL;
    size_t i;
    if (!current)
        current = json_get_int(service, "wanted", 0);
    json_array_foreach (json_get_array(service, "versions"), i, v)
        if (json_get_int(v, "n", 0) == current)
            spec = json_get_object(v, "spec");
    char said[LINE_MAX];
    (void)snprintf(said, sizeof(said), "%s v%" PRId64, name, current); /* cut: fine */
    lineage_add(chain, 0, "service", said, json_get_str(spec, "model_hash", NULL), false);
    const char *model = json_get_str(spec, "model", NULL), *code = json_get_str(spec, "code", NULL);
    if (model)
        return lineage_follow(cli, model, chain, err);
    lineage_add(chain, 1, "app", json_get_str(spec, "app", ""), NULL, false);
    if (code)
        lineage_add(chain, 1, "code", code, NULL, false);
    return 0;
}

/* One line of what became of the model: {what, name, owner, made, said} and what else is known. */
static void lineage_add_use(json_t *chain, const json_t *use)
{
    char name[LINE_MAX];
    const char *step = json_get_str(use, "step", NULL), *endpoint = NULL;
    int64_t version = json_get_int(use, "version", 0);
    if (version)
        (void)snprintf(name, sizeof(name), "%s v%" PRId64, member_str(use, "name"), version);
    else
        (void)snprintf(name, sizeof(name), "%s%s%s", member_str(use, "name"), step ? " " : "",
                       str_or(step, "")); /* cut: fine */
    if (json_get_bool(use, "has_traffic", false))
        endpoint = json_get_str(use, "endpoint", NULL);
    json_t *link = json_pack(
        "{s:s,s:s,s:s,s:s?,s:s?,s:b,s:b}", "what", member_str(use, "kind"), "name", name, "owner",
        member_str(use, "owner"), "state", json_get_str(use, "state", NULL), "endpoint", endpoint,
        "made", json_get_bool(use, "made", false), "said", json_get_bool(use, "said", false));
    if (link)
        (void)json_array_append_new(chain, link); /* both are there */
}

/* What became of the model that was asked for. A server that does not know the question says
 * nothing of it. */
static int lineage_add_uses(struct cli *cli, const char *name, json_t *chain, struct err *err)
{
    _cleanup_(json_unrefp) json_t *page = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/models/{}/uses", name);
    const json_t *use;
    size_t i;
    int r = client_get(cli->client, path, &page, err);
    if (r < 0)
        return r == ERR_NOT_FOUND ? 0 : r;
    json_array_foreach (json_get_array(page, "uses"), i, use)
        lineage_add_use(chain, use);
    return 0;
}

static void lineage_write_use(struct buf *line, const json_t *link)
{
    const char *arrow = json_get_bool(link, "made", false) ? "<-" : "->"; /* it made the model */
    (void)buf_addf(line, "%s %-*s %-*s %s%s", arrow, WHAT_WIDTH - 3,      /* cut: fine */
                   member_str(link, "what"), NAME_WIDTH, member_str(link, "name"),
                   str_or(json_get_str(link, "endpoint", NULL), json_get_str(link, "state", "")),
                   json_get_bool(link, "said", false) ? " (said)" : "");
}

static void lineage_write_link(struct buf *line, const json_t *link)
{
    int indent = 2 * (int)json_get_int(link, "depth", 0);
    const char *hash = json_get_str(link, "hash", "");
    int width = NAME_WIDTH - indent > 0 ? NAME_WIDTH - indent : 1;
    (void)buf_addf(line, "%*s%-*s %-*s %.*s%s", indent, "", WHAT_WIDTH, /* cut: fine */
                   member_str(link, "what"), width, member_str(link, "name"), HASH_SHOWN, hash,
                   json_get_bool(link, "said", false) ? " (said)" : "");
}

static void lineage_print(struct cli *cli, const json_t *chain)
{
    const json_t *link;
    size_t i;
    json_array_foreach (chain, i, link) {
        struct buf line = BUF_INIT(2 * LINE_MAX), clean = BUF_INIT(4 * LINE_MAX);
        if (json_object_get(link, "made"))
            lineage_write_use(&line, link);
        else
            lineage_write_link(&line, link);
        text_clean(&clean, buf_str(&line));
        (void)fprintf(cli->out, "%s\n", buf_str(&clean));
        buf_release(&line);
        buf_release(&clean);
    }
}

int lineage_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct listing_opts *o = opts;
    _cleanup_(json_unrefp) json_t *chain = json_array();
    _cleanup_(freep) char *service = lineage_service(args->v[0]);
    int r = cli_open(cli, err);
    if (r == 0)
        r = service ? lineage_follow_service(cli, service, chain, err)
                    : lineage_follow(cli, args->v[0], chain, err);
    if (r == 0 && !service)
        r = lineage_add_uses(cli, args->v[0], chain, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, chain, o->output);
    else
        lineage_print(cli, chain);
    return 0;
}
