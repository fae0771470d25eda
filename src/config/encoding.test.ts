import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "#core/errors.ts";
import { decodeConfig, encodeConfig } from "./encoding.ts";

const TEXT = "mixed-port: 7890\nproxies: [{name: \u9999\u6e2f, type: direct}]\n";

test("UTF-8 and UTF-16 with a byte order mark are read", () => {
  const little = Buffer.from(`\ufeff${TEXT}`, "utf16le");
  for (const bytes of [Buffer.from(TEXT), Buffer.from(`\ufeff${TEXT}`), little, Buffer.from(little).swap16()])
    assert.equal(decodeConfig(bytes, "c.yaml"), TEXT);
});

test("what is neither is refused with its place", () => {
  const samples: readonly (readonly [bytes: Uint8Array, position: string])[] = [
    [Buffer.from("mixed-port: 7890\nsecret: caf\xe9\n", "latin1"), "2:12"],
    [Buffer.from(TEXT, "utf16le"), "1:2"],
    [Uint8Array.of(0x1f, 0x8b, 8, 0), "1:2"],
    [Buffer.from("a: \0\n"), "1:4"],
    [Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("\0\0")]), "1:1"],
  ];
  for (const [bytes, position] of samples)
    assert.throws(
      () => decodeConfig(bytes, "c.yaml"),
      (error) =>
        error instanceof ConfigError &&
        error.message === `c.yaml:${position} (document): this is no text in UTF-8; save the file as UTF-8`,
      position,
    );
});

test("a text goes back into the encoding that its file has", () => {
  const text = "mode: rule # \u6ce8\u91ca\n";
  const little = Buffer.from(`\ufeff${text}`, "utf16le");
  const files = [Buffer.from(text), Buffer.from(`\ufeff${text}`), little, Buffer.from(little).swap16()];
  for (const bytes of files) {
    assert.equal(decodeConfig(bytes, "c"), text);
    assert.deepEqual(Buffer.from(encodeConfig(text, bytes)), bytes);
  }
});
