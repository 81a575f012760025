/* SPDX-License-Identifier: Apache-2.0 */
/* seen.h - what a look at a file of a job came to. UNREADABLE is not ABSENT: a file that cannot be
 * looked at, and a witness that cannot be heard, have said nothing. */
#pragma once

enum fsroot_seen { FSROOT_ABSENT, FSROOT_UNREADABLE, FSROOT_PRESENT };
