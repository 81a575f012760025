/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - lines of one job's logs that match a pattern; see search.c. */
#pragma once
#include "argusd/kit/api.h"

/* Answers with the lines of attempt k that match ?grep=, up to ?limit= of them from ?cursor= on. */
void search_job(struct http_req *req, struct api *a, const struct job *job, int k);
