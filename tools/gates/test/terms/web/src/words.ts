// SPDX-License-Identifier: Apache-2.0
export const t = words({
    incident: ["Incident", "事件"],
    user: ["User", "用户"],
});
