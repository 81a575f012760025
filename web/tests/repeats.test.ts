// SPDX-License-Identifier: Apache-2.0
// What of an answer it had said before.
import { describe, expect, it } from "vitest";
import { marked } from "../src/pages/job/repeats";

const again = (text: string) =>
    marked(text)
        .filter((p) => p.again)
        .map((p) => p.text);

describe("repeats", () => {
    it("join to the text again", () => {
        for (const text of [
            "",
            " ",
            "a",
            " a b  c d e a b  c d ",
            "so it is so it is so it is\n",
            "回答是回答是回答是回答是回答是回答是回答是回答是回答是",
        ])
            expect(
                marked(text)
                    .map((p) => p.text)
                    .join(""),
            ).toBe(text);
    });
    it("are runs of four words", () => {
        expect(again("one two three four five")).toEqual([]);
        expect(again("a b c d x a b c y")).toEqual([]);
        expect(again("a b c d x a  b c d y")).toEqual(["a  b c d"]);
    });
    it("are letters where there are no blanks", () => {
        expect(again("答案是四二，再说一遍再来一次吧好不好呢；答案是四二")).toEqual(["答案是四二"]);
        expect(again("!".repeat(100))).toEqual(["!".repeat(99)]);
    });
});
