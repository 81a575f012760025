// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/events"],
    title: () => t("events"),
    icon: "events",
    nav: { group: "watch", order: 41 },
    key: "g e",
    load: () => import("./page"),
};
