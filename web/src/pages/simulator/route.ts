// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/simulator", "/simulator/{id}"],
    title: () => t("simulator"),
    icon: "simulator",
    nav: { group: "machines", order: 12 },
    key: "g i",
    under: "/simulator",
    load: () => import("./page"),
};
