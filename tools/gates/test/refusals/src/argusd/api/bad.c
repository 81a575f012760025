/* SPDX-License-Identifier: Apache-2.0 */
int bad(struct err *err)
{
    if (sentence)
        return err_set(err, ERR_REFUSED, "there are %d users", n);
    if (broken)
        return err_set(&q->err,
                       ERR_BAD_REQUEST, "it is no number");
    if (disk)
        return err_set(err, -errno, "'%s' cannot be written: %s", path, strerror(errno));
    if (ours)
        return err_set(err, ERR_INTERNAL, "the list is longer than it can be");
    if (start)
        return err_set(err, ERR_USAGE, "'%s' holds no key of ours", path);
    http_problem(req, err.code, &err, "path", NULL, 0);
    http_problem(req, err.code, &err, NULL, &ps, api_barrier(s->a));
    return message_refuse(err, ERR_REFUSED, "gone", MESSAGE_NO_ARGS);
}
