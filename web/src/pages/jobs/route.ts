// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/jobs"],
    title: () => t("jobs"),
    icon: "jobs",
    nav: { group: "", order: 3 },
    key: "g j",
    load: () => import("./page"),
};
