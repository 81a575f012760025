/* SPDX-License-Identifier: Apache-2.0 */
/* form.h - a submit that comes as a form: part `spec`, and part `code`, an archive.
 *
 * The spec is in memory and no larger than any spec; the archive goes to the shared root piece by
 * piece as an upload that nobody else sees, with the ceilings of uploads, and is gone when the form
 * is, also after a kill. A body that does not say how long it is (chunked) grows below them. */
#pragma once
#include "argusd/content/uploads.h"

struct form {
    struct uploads *us;
    struct buf spec;
    char upload[UPLOAD_ID_MAX]; /* "": no archive came */
    char *path;                 /* of the archive, and what it was called; NULL = not said */
    char *file;
    char sha256[HASH_HEX]; /* of it */
    uint64_t bytes;        /* of it */
};
void form_free(struct form *f); /* and the bytes; NULL is fine */

/* On the loop, once. f is yours; NULL: nothing is left, and err says why. req NULL: the peer is
 * gone, or was answered. */
typedef void (*form_f)(struct http_req *req, struct form *f, const struct err *err, void *arg);
/* Read the body of req, of a route that takes a form in pieces. */
void form_receive(struct uploads *us, struct http_req *req, form_f done, void *arg);
