/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - the pages for browsers: files made by web/ and kept inside argusd, gzip-compressed.
 *
 * They are the same for everybody and need no token: what a page shows comes from the API. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "http/http.h"

struct web_file {
    const char *path; /* "/index.html", "/assets/app-C0ffee.js"; NULL ends the table */
    const char *type; /* media type */
    const char *etag; /* of its bytes */
    bool is_hashed;   /* its name has a hash of its bytes: it is never another file */
    const unsigned char *data;
    const size_t *size;
};

/* The file of this path in a table, borrowed; NULL: there is none. */
const struct web_file *web_find(const struct web_file *files, const char *path);

/* For struct http_options. A file by its path; any other path is the index, for the page that it
 * means is known there. Without files (argusd was built without them) nothing is found. */
extern const struct http_route web_pages;
