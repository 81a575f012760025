// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/pipelines", "/pipelines/{name}", "/pipelines/{name}/{run}"],
    title: () => t("pipelines"),
    icon: "pipelines",
    nav: { group: "work", order: 21 },
    key: "g l",
    acts: [{ to: "/pipelines?do=add", says: () => t("a_pipeline") }],
    load: () => import("./page"),
};
