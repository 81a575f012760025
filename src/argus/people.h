/* SPDX-License-Identifier: Apache-2.0 */
/* people.h - what the commands about users, tokens, projects and quotas share: the calls, and
 * their tables. */
#pragma once
#include "argus/cli.h"

/* Ask with a body (stolen; NULL = none) and give the answer, a new reference. kind and name are
 * path segments: "/v1/<kind>[/<name>]<rest>"; name may be NULL. */
must_check int people_call(struct cli *cli,
                           const char *method,
                           const char *kind,
                           const char *name,
                           const char *rest,
                           json_t *body,
                           json_t **ret,
                           struct err *err);
/* The same for changes: prints "<noun> <name> <what>" and forgets the answer. */
must_check int people_change(struct cli *cli,
                             const char *method,
                             const char *kind,
                             const char *name,
                             json_t *body,
                             const char *what,
                             struct err *err);

/* A body in the making: a value that was not given is left out. */
void people_set_text(json_t *body, const char *key, const char *value);
void people_set_list(json_t *body, const char *key, const struct strv *list);
/* "none" and "-" are no limit. ERR_USAGE. */
must_check int people_set_number(json_t *body, const char *key, const char *value, struct err *err);

/* Print the answer's rows as the format says. */
void people_print_users(struct cli *cli, const json_t *answer, int output, bool utc);
void people_print_tokens(struct cli *cli, const json_t *answer, int output, bool utc);
void people_print_secrets(struct cli *cli, const json_t *answer, int output, bool utc);
void people_print_projects(struct cli *cli, const json_t *answer, int output);
void people_print_quotas(struct cli *cli, const json_t *answer, int output);
/* One project or user: its members and limits, line by line. */
void people_print_account(struct cli *cli, const json_t *account);
