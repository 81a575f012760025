// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/settings"],
    title: () => t("settings"),
    icon: "settings",
    nav: { group: "watch", order: 60 },
    key: "g ,",
    acts: [{ to: "/settings?do=token", says: () => t("a_token") }],
    load: () => import("./page"),
};
