// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/"],
    title: () => t("overview"),
    icon: "overview",
    nav: { group: "", order: 1 },
    key: "g o",
    load: () => import("./page"),
};
