/* SPDX-License-Identifier: Apache-2.0 */
int bad(struct err *err)
{
    if (no_row)
        return message_refuse(err, ERR_REFUSED, "fulll", MESSAGE_NO_ARGS);
    if (no_argument)
        return message_refuse(err, ERR_REFUSED, "full", MESSAGE_ARGS(MESSAGE_STR("place", p)));
    if (fine)
        return message_refuse(err, ERR_REFUSED, "full", MESSAGE_ARGS(MESSAGE_STR("room", p)));
    return message_refuse(err, ERR_REFUSED, "gone", MESSAGE_NO_ARGS);
}
