/* SPDX-License-Identifier: Apache-2.0 */
/* clustercall.h - Ray clusters on the server: find one, show it, start and stop it. */
#pragma once
#include "argus/cli.h"

/* By name; NULL = the only one. *ret is a new reference. */
must_check int clustercall_find(struct cli *cli, const char *name, json_t **ret, struct err *err);
/* To cli->out. */
void clustercall_print(struct cli *cli, const json_t *cluster);
/* POST /v1/clusters/<name><verb>; body is taken, NULL = none. Prints what became of it. */
must_check int clustercall_post(struct cli *cli,
                                const json_t *cluster,
                                const char *verb,
                                json_t *body,
                                struct err *err);
/* Until Ray answers; why it does not is told on stderr. ERR_TIMEOUT. */
must_check int clustercall_wait_up(struct cli *cli,
                                   const json_t *cluster,
                                   usec_t timeout,
                                   struct err *err);
