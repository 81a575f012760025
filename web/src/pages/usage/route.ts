// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/usage"],
    title: () => t("usage"),
    icon: "usage",
    nav: { group: "machines", order: 11 },
    key: "g u",
    load: () => import("./page"),
};
