// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/services", "/services/{name}"],
    title: () => t("services"),
    icon: "services",
    nav: { group: "work", order: 20 },
    key: "g v",
    acts: [{ to: "/services?do=add", says: () => t("a_service") }],
    load: () => import("./page"),
};
