/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.h - the secrets that Ray's workers of an attempt read at their start. Blocking. */
#pragma once
#include "base/err.h"
#include "base/strv.h"

/* <root>/argus/secrets/<ray id>, 0600 in a directory 0700: a JSON object, name to value. */
char *fsroot_secrets_path(const char *root, const char *ray_id);
must_check int fsroot_secrets_write(const char *root,
                                    const char *ray_id,
                                    const struct pairs *env,
                                    struct err *err);
/* fsroot_secrets_write() with further texts that must never be shown (launch.h); hidden may be
 * NULL. */
must_check int fsroot_secrets_write_hidden(const char *root,
                                           const char *ray_id,
                                           const struct pairs *env,
                                           const struct strv *hidden,
                                           struct err *err);
/* A missing file is no failure. Removes the shepherd's own file (attempts/<k>/.secrets.json) as
 * well. */
must_check int fsroot_secrets_remove(const char *root, const char *ray_id, struct err *err);
/* Adds the Ray id of each file there is; that there is no directory is fine. */
must_check int fsroot_secrets_list(const char *root, struct strv *ret, struct err *err);
