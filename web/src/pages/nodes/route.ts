// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/nodes"],
    title: () => t("nodes"),
    icon: "nodes",
    nav: { group: "machines", order: 10 },
    key: "g n",
    acts: [{ to: "/nodes?do=add", says: () => t("a_node"), least: "admin" }],
    load: () => import("./page"),
};
