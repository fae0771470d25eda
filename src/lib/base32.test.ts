import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeBase32, encodeBase32 } from "./base32.ts";

test("RFC 4648 §10: the vectors, both ways, in any case and with padding and blanks", () => {
  const vectors = {
    "": "",
    f: "MY======",
    fo: "MZXQ====",
    foo: "MZXW6===",
    foob: "MZXW6YQ=",
    fooba: "MZXW6YTB",
    foobar: "MZXW6YTBOI======",
  };
  for (const [text, encoded] of Object.entries(vectors)) {
    assert.equal(encodeBase32(Buffer.from(text)), encoded.replaceAll("=", ""));
    for (const form of [encoded, encoded.toLowerCase(), `${encoded.slice(0, 4)} ${encoded.slice(4)}\n`])
      assert.equal(decodeBase32(form)?.toString(), text);
  }
  for (const wrong of ["MZXW1", "MZ0", "ü"]) assert.equal(decodeBase32(wrong), null);
});
