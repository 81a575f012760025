// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/jobs/{id}"],
    title: () => t("job"),
    icon: "jobs",
    under: "/jobs",
    load: () => import("./page"),
};
