/* SPDX-License-Identifier: Apache-2.0 */
/* download.h - an answer of the server as a file here. It is written beside its name under another
 * one and gets its name when it is whole, so nobody sees half of it; a file that is there is
 * replaced only when that is asked for. */
#pragma once
#include "argus/cli/cli.h"

struct download_ask {
    const char *path;   /* "/v1/events:export?format=csv" */
    const char *accept; /* media types, as in a request */
    const char *to;     /* the local file; "-" is stdout */
    bool replace;       /* a file that is there */
};

/* The whole answer to one GET. Where it breaks off, or the caller's Ctrl-C is caught, nothing
 * stays. ERR_REFUSED: the file is there and may not be replaced. */
must_check int download_file(struct cli *cli, const struct download_ask *ask, struct err *err);

/* ERR_REFUSED: there is a file, directory or link of this name. */
must_check int download_check_name(const char *to, struct err *err);
/* What was written to fd, the file `part`, is on disk and gets its name. */
must_check int download_keep(int fd, const char *part, const char *to, struct err *err);
