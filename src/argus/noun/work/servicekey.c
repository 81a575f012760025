/* SPDX-License-Identifier: Apache-2.0 */
/* servicekey.c - keys of services: what opens requests to one service, and nothing else. The text
 * of one is printed once, alone, when it is made. */
#include "argus/noun/noun.h"

#include <inttypes.h>

#include "argus/show/member.h"

static const struct opt KEY_NEW_OPTS[] = {
    {.name = "name",
     .type = OPT_TEXT,
     .arg = "TEXT",
     .to = "body:name",
     .doc = "what the key is for: website, ci …"},
    {.name = "requests-per-minute",
     .type = OPT_COUNT,
     .arg = "N",
     .to = "body:requests_per_minute",
     .doc = "requests with this key in a minute, at most; as one user has if not given"},
    {.name = "tokens-per-minute",
     .type = OPT_COUNT,
     .arg = "N",
     .to = "body:tokens_per_minute",
     .doc = "tokens with this key in a minute, at most; as one user has if not given"},
    {.name = "expires",
     .type = OPT_SPAN,
     .arg = "SPAN",
     .to = "body:expires",
     .doc = "30d, 12h …; never if not given"},
    OPT_OUTPUT(struct listing_opts),
};
static const struct opt KEY_LS_OPTS[] = {
    {.name = "service",
     .type = OPT_TEXT,
     .arg = "NAME",
     .to = "query:service",
     .doc = "list the keys of this service alone"},
    LISTING_OPTS,
};

static void service_key_state(struct table *t, const json_t *key, const struct when *w)
{
    const char *state = member_str(key, "state");
    (void)w;
    table_add(t, str_eq(state, "works") ? STYLE_PLAIN : STYLE_YELLOW, state);
}

/* What the key says itself; "-": the service's limit holds. */
static void service_key_limit(struct table *t, const json_t *key, const char *member)
{
    int64_t most = json_get_int(key, member, 0);
    if (most)
        table_addf(t, STYLE_PLAIN, "%" PRId64, most);
    else
        table_add(t, STYLE_DIM, NULL);
}

static void service_key_requests(struct table *t, const json_t *key, const struct when *w)
{
    (void)w;
    service_key_limit(t, key, "requests_per_minute");
}

static void service_key_tokens(struct table *t, const json_t *key, const struct when *w)
{
    (void)w;
    service_key_limit(t, key, "tokens_per_minute");
}

static const struct column SERVICE_KEYS[] = {
    {.title = "say_id", .key = "id"},
    {.title = "say_serve_service", .flags = COLUMN_FLEX, .least = 8, .key = "service"},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 6, .key = "name"},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "user", .rank = 1},
    {.title = "say_state", .draw = service_key_state},
    {.title = "say_serve_rate", .flags = COLUMN_RIGHT, .draw = service_key_requests, .rank = 2},
    {.title = "say_serve_token_rate", .flags = COLUMN_RIGHT, .draw = service_key_tokens, .rank = 2},
    {.title = "say_expires", .key = "expires_at", .as = CELL_TIME, .rank = 3},
    {.title = "say_last_use", .key = "last_use_at", .as = CELL_TIME, .rank = 4},
};

static void service_key_print(struct cli *cli, const json_t *key, const struct seen *seen)
{
    const char *service = member_str(key, "service");
    (void)seen;
    (void)fprintf(cli->out, "%s\n", member_str(key, "key"));
    cli_say(cli, "say_service_key_once", member_str(key, "id"), service, service);
}

static const struct command SERVICEKEY_COMMANDS[] = {
    {
        .name = "service key new",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "make a key that opens requests to one service, shown once",
        .text = "Prints the key alone to stdout: a client sends it where it would send a token. It "
                "opens requests below /v1/services/NAME/ and nothing else, in your name, with "
                "limits of its own. It ends with the service, and is void while you may not call "
                "it.",
        .example = "KEY=$(argus service key new sums --name website --requests-per-minute 60)\tfor "
                   "one program",
        OPTS(KEY_NEW_OPTS),
        .ask = {.method = "POST",
                .path = "/v1/service-keys",
                .arg_to = "body:service",
                .print = service_key_print},
    },
    {
        .name = "service key ls",
        .args = "",
        .summary = "list the keys of services, with their last use",
        .text = "Lists the keys of the services that you may see. The text of a key is never shown "
                "again. A key is void while whoever made it may not call the service.",
        OPTS(KEY_LS_OPTS),
        .ask = {.path = "/v1/service-keys",
                .table = {.key = "keys", COLUMNS(SERVICE_KEYS), .none = "say_no_service_keys"}},
    },
    {
        .name = "service key rm",
        .args = "ID…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "remove keys of services",
        .text = "Name keys by the ids of 'argus service key ls'. Whoever may change the service "
                "may remove its keys.",
        .example = "argus service key rm 3f2a9c01b7de\tit opens nothing from now on",
        .ask = {.method = "DELETE",
                .path = "/v1/service-keys/{}",
                .done = "say_done_removed",
                .subject = "key {id}"},
    },
};

NOUN(servicekey, SERVICEKEY_COMMANDS);
