/* SPDX-License-Identifier: Apache-2.0 */
/* firewall.h - the answer of GET /v1/nodes/{name}/firewall as text for people and packet filters.
 * What goes to a shell or to nft is put together from numbers and addresses alone: an answer with
 * anything else in their place is refused. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

enum { FIREWALL_MAX = 1 << 20 };

/* ERR_TOO_LARGE, ERR_REFUSED (a source is no address); out is of no use then. */
typedef int firewall_f(const json_t *answer, struct buf *out, struct err *err);
must_check int firewall_plain(const json_t *answer, struct buf *out, struct err *err);
/* Commands for sh; a chain of its own, made anew. */
must_check int firewall_iptables(const json_t *answer, struct buf *out, struct err *err);
/* For nft -f -; a table of its own, made anew. */
must_check int firewall_nft(const json_t *answer, struct buf *out, struct err *err);
