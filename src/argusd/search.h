/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - the search in the log of one job, for the handler of logs; see api_search.c. */
#pragma once
struct api;
struct http_req;
struct job;

/* Answers with the lines of attempt k that match ?grep=, up to ?limit= of them from ?cursor= on. */
void search_job(struct http_req *req, struct api *a, const struct job *job, int k);
