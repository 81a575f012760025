/* SPDX-License-Identifier: Apache-2.0 */
/* reach.h - which addresses argusd may call, by who named them. Pure.
 *
 * A name is resolved first: what is judged is the address that the connection goes to. What says
 * something about a machine to whoever asks from that machine (loopback, link-local, the metadata
 * services of clouds, the networks behind it) is no place that a user may send argusd to, unless
 * argus.yaml lists the network. Addresses of IPv4 inside of IPv6 (mapped, NAT64, 6to4) are judged
 * as what they stand for. */
#pragma once
#include <stdbool.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/strv.h"

enum reach {
    REACH_ANYWHERE, /* our own choice */
    REACH_NAMED,    /* argus.yaml names it: all but what is no server of anybody: link-local,
                       metadata, multicast, the unspecified address */
    REACH_MACHINES, /* a machine of the cluster, as Ray lists it: no loopback either */
    REACH_OUTSIDE,  /* a user named it: public addresses alone */
};

/* networks: those that are allowed to all but REACH_ANYWHERE's others, too, as
 * reach_check_network() takes them; NULL: none. */
bool reach_allows(enum reach how, const struct strv *networks, const struct sockaddr *to);
/* The same of a text, which is one IPv4 or IPv6 address and nothing else: else false, whoever named
 * it. What is allowed may stand in a URL. */
bool reach_allows_text(enum reach how, const struct strv *networks, const char *text);
/* Does one of these networks hold the address in the text? False for what is no address. */
bool reach_is_within(const struct strv *networks, const char *text);
/* Is the text one address, and nothing else? */
bool reach_is_address(const char *text);
/* Two texts of one address; false where either is none. */
bool reach_is_same(const char *a, const char *b);
/* "10.0.0.0/8", "fd00::/8", or one address. ERR_BAD_REQUEST. */
must_check int reach_check_network(const char *text, struct err *err);
