/* SPDX-License-Identifier: Apache-2.0 */
static const struct message_row rows[] = {
    SAY("say_incident", "INCIDENT", "事故"),
};
