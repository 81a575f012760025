/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_shard.h - can one file of a checkpoint be read? */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* fd: a regular file of so many bytes; name: by its ending. Without `deep` only what is small: a
 * zip's directory and its small members, the header of safetensors. Deep reads every byte. 0;
 * -EINVAL with a sentence: no, it cannot; else what the system said, and that says nothing. */
must_check int ckpt_shard_check(int fd,
                                const char *name,
                                uint64_t bytes,
                                bool deep,
                                const volatile int *stop, /* NULL: never */
                                struct err *err);
