/* SPDX-License-Identifier: Apache-2.0 */
/* ownnets.h - the networks that `argusd init` writes as ray.networks: those that this machine is
 * in.
 *
 * Nodes that joined Ray by themselves are most often there, so that a new server asks them for
 * their figures. Never a link's own network, where clouds tell a machine its keys. Loopback is
 * there only where Ray is on this machine and the machine is in no other network: else what a
 * raylet says would lead argusd to servers that are meant for this machine alone. */
#pragma once
#include <stdbool.h>

#include "base/strv.h"

enum { OWNNETS_MAX = 32 };
struct sockaddr;

/* Adds the network of an address of an interface, once, as "10.0.0.0/24"; none for loopback, for a
 * link's own, for a mask without a bit, or beyond OWNNETS_MAX. */
void ownnets_add(struct strv *to, const struct sockaddr *address, const struct sockaddr *mask);
/* Those of this machine. has_ray: Ray's URL is of loopback. */
void ownnets_find(bool has_ray, struct strv *ret);
