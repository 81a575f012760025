// SPDX-License-Identifier: Apache-2.0
import { counts } from "../../shell/counts";
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/queue"],
    title: () => t("queue"),
    icon: "queue",
    nav: { group: "", order: 2, count: () => counts.value.waiting },
    key: "g q",
    load: () => import("./page"),
};
