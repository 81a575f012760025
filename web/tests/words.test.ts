// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { fill } from "../src/base/words";

test("arguments stand where the text has them", () => {
    expect(fill("{1} of {0}", [3, "b"])).toBe("b of 3");
    expect(fill("{0}{2}", ["a"])).toBe("a");
});

test("one is not several", () => {
    const text = "{0} {0|GPU comes|GPUs come} back";
    expect(fill(text, [1])).toBe("1 GPU comes back");
    expect(fill(text, ["1"])).toBe("1 GPU comes back");
    expect(fill(text, [0])).toBe("0 GPUs come back");
    expect(fill(text, ["1,024"])).toBe("1,024 GPUs come back");
    expect(fill("{1} {1|node|nodes} of {0}", [1, 2])).toBe("2 nodes of 1");
});
