// SPDX-License-Identifier: Apache-2.0
import { pick } from "../../base/words";
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/people"],
    title: () => pick("Accounts", "项目与用户"),
    icon: "users",
    nav: { group: "watch", order: 50 },
    key: "g p",
    acts: [
        { to: "/people?do=project", says: () => t("a_project"), least: "admin" },
        { to: "/people?view=users&do=user", says: () => t("a_user"), least: "admin" },
    ],
    load: () => import("./page"),
};
