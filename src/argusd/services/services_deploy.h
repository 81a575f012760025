/* SPDX-License-Identifier: Apache-2.0 */
/* services_deploy.h - a new service, or the next version of one: the handler of POST /v1/services
 * and of POST /v1/services/{name}:deploy.
 *
 * A body that names a job is answered once the merge of its checkpoint is submitted, or was before:
 * from then on nobody need wait for it. */
#pragma once
struct http_req;

void services_deploy(struct http_req *req, void *app);
