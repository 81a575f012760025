// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/data", "/data/{name}"],
    title: () => t("data"),
    icon: "data",
    nav: { group: "library", order: 31 },
    key: "g d",
    acts: [{ to: "/data?do=import", says: () => t("a_data") }],
    load: () => import("./page"),
};
