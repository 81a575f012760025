// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/notebooks"],
    title: () => t("notebooks"),
    icon: "notebooks",
    nav: { group: "work", order: 22 },
    key: "g b",
    acts: [{ to: "/notebooks?do=start", says: () => t("a_notebook") }],
    load: () => import("./page"),
};
