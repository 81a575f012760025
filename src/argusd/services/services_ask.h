/* SPDX-License-Identifier: Apache-2.0 */
/* services_ask.h - one request to a service and its whole answer, to try it: the handler of
 * POST /v1/services/{name}:ask. */
#pragma once
struct field_table;
struct http_req;

/* {"text": …}: a chat of one message, of a model. {"path": …, "body": …}: any request; without a
 * body it is a GET. "version": the one that is asked, else the one that has the traffic. */
extern const struct field_table service_ask_form;
void services_ask(struct http_req *req, void *app);
