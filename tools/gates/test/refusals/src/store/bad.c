/* SPDX-License-Identifier: Apache-2.0 */
int bad(struct err *err)
{
    if (broken)
        return err_set(err, ERR_STORE, "store failed: %s", why);
    return err_set(err, ERR_CONFLICT, "the store is in use");
}
