/* SPDX-License-Identifier: Apache-2.0 */
/* full.h - for unit tests: a disk that is full and then is not, by a limit on the size of files. */
#pragma once
#include <signal.h>
#include <sys/resource.h>

#include "base/unit.h"

/* No file may grow beyond so many bytes; RLIM_INFINITY: as it was. */
static inline void limit_files(rlim_t bytes)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}; /* a write is to fail, not to kill */
    struct rlimit lim;
    assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &lim), 0);
    lim.rlim_cur = bytes == RLIM_INFINITY ? lim.rlim_max : bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &lim), 0);
}
