// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/submit"],
    title: () => t("new_job"),
    icon: "plus",
    key: "g s",
    load: () => import("./page"),
};
