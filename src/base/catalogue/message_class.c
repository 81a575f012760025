/* SPDX-License-Identifier: Apache-2.0 */
/* message_class.c - the classes of failure (err.h), where nothing more is known; see
 * message_rows.h. */
#include "base/catalogue/message_rows.h"

static const struct message_row rows[] = {
    SAY("class_internal", "internal error", "内部错误"),
    SAY("class_usage", "wrong usage", "用法错误"),
    SAY("class_bad_request", "the request cannot be read", "不能读取请求"),
    SAY("class_unauthorised", "a valid token is needed", "需要有效的令牌"),
    SAY("class_forbidden", "this token may not do that", "此令牌不能这样做"),
    SAY("class_not_found", "there is no such thing", "没有此对象"),
    SAY("class_method_not_allowed", "this method is not allowed here", "此处不允许此方法"),
    SAY("class_conflict", "it is already there", "已经存在"),
    SAY("class_too_large", "the body is too large", "请求体太大"),
    SAY("class_unsupported_media_type", "this content type is not understood", "不认识此内容类型"),
    SAY("class_bad_spec", "the spec has problems", "规格有问题"),
    SAY("class_refused", "refused", "被拒绝"),
    SAY("class_pool_too_small", "the pool is too small", "资源池太小"),
    SAY("class_range_not_satisfiable", "the file has no such bytes", "文件没有这些字节"),
    SAY("class_too_many_requests", "too many at once, try again", "同时太多，请重试"),
    SAY("class_headers_too_large", "the headers are too large", "请求头太大"),
    SAY("class_unavailable", "not available now, try again", "暂不可用，请重试"),
    SAY("class_not_yet", "not yet: the server has just started", "尚未就绪：服务器刚刚启动"),
    SAY("class_unreachable", "the server cannot be reached", "不能连接服务器"),
    SAY("class_no_space", "there is no space left", "没有剩余空间"),
    SAY("class_timeout", "timed out", "超时"),
};
const struct message_family message_class = MESSAGE_FAMILY(rows);
