// SPDX-License-Identifier: Apache-2.0
import type { PageRoute } from "../../shell/pages";
import { t } from "../../words/shared";

export const route: PageRoute = {
    paths: ["/files"],
    title: () => t("files"),
    icon: "files",
    nav: { group: "library", order: 33 },
    key: "g f",
    load: () => import("./page"),
};
