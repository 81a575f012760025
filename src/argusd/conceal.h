/* SPDX-License-Identifier: Apache-2.0 */
/* conceal.h - what is said about one job names others: "starts when job 'x' ends". To who may
 * not see them they are told without their names. What is stored stays as it is: each reader
 * is shown his own version. */
#pragma once
#include "argusd/api.h"
#include "base/buf.h"

/* text, or a version of it in *ret, which is yours to release. about: the job that it is said of,
 * NULL = none. A text that is NULL is fine. */
const char *conceal_text(const struct api_eyes *eyes,
                         const char *about,
                         const char *text,
                         struct buf *ret);

/* As a member of a JSON object, "" for NULL. eyes may be NULL: then it is said as it is. */
void conceal_put(struct jout *j,
                 const char *key,
                 const struct api_eyes *eyes,
                 const char *about,
                 const char *text);
