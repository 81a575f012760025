// SPDX-License-Identifier: Apache-2.0
// page.tsx - services: the list of them with what else there is in Ray Serve, or one service.
import { Services } from "./list";
import { ServicePage } from "./service";
import "../../library/library.css";
import "./page.css";

export default function Page({ names }: { names: Record<string, string> }) {
    return names.name ? <ServicePage key={names.name} name={names.name} /> : <Services />;
}
