/* SPDX-License-Identifier: Apache-2.0 */
int other(struct err *err)
{
    return err_set(err, ERR_CONFLICT, "a room that is not held to it");
}
