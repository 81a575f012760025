/* SPDX-License-Identifier: Apache-2.0 */
/* keyfile.h - a key of ours in a file of state_dir that nobody else can open: 32 bytes as hex. */
#pragma once
#include "base/digest/seal.h"
#include "base/err.h"

/* ERR_USAGE: others can open it, it belongs to somebody else, or it holds no key; -ENOENT. */
must_check int keyfile_read(const char *path,
                            unsigned char ret[static SEAL_KEY_BYTES],
                            struct err *err);
/* This one; what was there is replaced. ERR_STORE. */
must_check int keyfile_write(const char *path,
                             const unsigned char key[static SEAL_KEY_BYTES],
                             struct err *err);
/* A new one, at random. ERR_STORE. */
must_check int keyfile_make(const char *path,
                            unsigned char ret[static SEAL_KEY_BYTES],
                            struct err *err);
