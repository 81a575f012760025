// SPDX-License-Identifier: Apache-2.0
import { counts } from "../../shell/counts";
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/alerts"],
    title: () => t("alerts"),
    icon: "alerts",
    nav: { group: "watch", order: 40, count: () => counts.value.alerts, hot: true },
    key: "g a",
    load: () => import("./page"),
};
