/* SPDX-License-Identifier: Apache-2.0 */
/* shares.h - how much of the server each address and each user has now.
 *
 * A share is counted under a name: of an address for connections, of a user for streams, bodies
 * and polls. Who has nothing left is forgotten, so the table is as large as what is open. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/strv.h"

enum share_kind {
    SHARE_CONNECTIONS,
    SHARE_STREAMS,
    SHARE_BODIES,
    SHARE_POLLS,
    SHARE_RELAYS,
    SHARE_KINDS
};
enum { SHARE_NAME_MAX = 64 };

struct shares;

struct shares *shares_new(void);
void shares_free(struct shares *t); /* NULL is fine */

/* One more for `name`, copied. False: it has `most` already; 0 = no limit. */
bool shares_take(struct shares *t, enum share_kind kind, const char *name, unsigned most);
/* One that was taken goes back. */
void shares_give(struct shares *t, enum share_kind kind, const char *name);
bool shares_has_room(const struct shares *t, enum share_kind kind, const char *name, unsigned most);

/* Bytes of bodies that wait in memory for `name`. False: with n more it would have over `most`. */
bool shares_take_bytes(struct shares *t, const char *name, size_t n, size_t most);
void shares_give_bytes(struct shares *t, const char *name, size_t n);

/* The name under which the connections of an address are counted: IPv4 whole, IPv6 by its /64,
 * which is what one machine is given. "": `exempt` (addresses, NULL = none) has it, or it is
 * no IP address. */
void shares_address(const struct sockaddr *a,
                    const struct strv *exempt,
                    char ret[static SHARE_NAME_MAX]);
