/* SPDX-License-Identifier: Apache-2.0 */
/* root.h - the shared root itself: is it there, and what must be in it.
 *
 * `root` is the configured shared_root, here and in all of fsroot. Blocking. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct fsroot_status {
    uint64_t free_bytes, total_bytes;
    usec_t write_took; /* of that probe file, 1 at the least */
    bool prepared;     /* fsroot_prepare() was here: false later on means "not mounted" */
};

/* There, a directory, and a probe file can be written, synced and removed. now: a monotonic clock;
 * it times the probe. */
must_check int fsroot_check(const char *root,
                            usec_t (*now)(void),
                            struct fsroot_status *ret,
                            struct err *err);

/* Checks a prepared root: -ENOENT with a sentence when the marker is gone with the mount, another
 * code when that cannot be looked at ("root_unseen"). */
must_check int fsroot_check_mounted(const char *root, struct err *err);

/* common/{datasets,models,code} users/ hf/ jobs/ argus/{bin,hook,backup,archive}. A link that has
 * one of these names stays, and nothing is made behind it. */
must_check int fsroot_prepare(const char *root, struct err *err);
/* users/<user>/{datasets,models,code}, with links as above. */
must_check int fsroot_user_prepare(const char *root, const char *user, struct err *err);
