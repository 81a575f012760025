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

/* The whole answer to one GET. Where it breaks off, or the caller's Ctrl-C is caught, no file
 * stays; what stdout was given is out. ERR_USAGE, ERR_REFUSED: see download_check_name(). */
must_check int download_file(struct cli *cli, const struct download_ask *ask, struct err *err);

/* May a file get this name? ERR_USAGE: it is a directory's; ERR_REFUSED: a file or a link has it
 * and may not be replaced. */
must_check int download_check_name(const char *to, bool replace, struct err *err);
/* What was written to fd, the file `part`, is on disk and gets its name. */
must_check int download_keep(int fd, const char *part, const char *to, struct err *err);
