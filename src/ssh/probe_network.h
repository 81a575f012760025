/* SPDX-License-Identifier: Apache-2.0 */
/* probe_network.h - inside of this layer: the lines of probe.sh's step 'network'. Pure. */
#pragma once
#include "core/job/network.h"
#include "ssh/answer.h"

/* Takes a line of that step; others, and those that cannot be, are left out. */
void probe_network_line(const struct answer *a, struct network_seen *seen);
