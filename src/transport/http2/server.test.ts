import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { SILENT } from "#core/log.ts";
import { serveH2 } from "#transport/mux/h2mux.ts";
import { serveHttp2 } from "./server.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const PREFACE = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  hex("000000 04 00 00000000"),
]);
/** POST http://a/ with a body to come, as stream 1 (RFC 9113 §6.2; RFC 7541 appendix A). */
const HEADERS = hex("000006 01 04 00000001 83 86 84 41 01 61");
const RESET = hex("000004 03 00 00000001 00000008");
const NO_CARRIERS = { grpcServiceName: null, h2: null, streamOne: null, xhttp: null };

const servers = {
  "a listener's carriers": (wire: ReturnType<typeof duplexPair>[0]) =>
    serveHttp2(wire, NO_CARRIERS, () => assert.fail("a tunnel")),
  h2mux: (wire: ReturnType<typeof duplexPair>[0]) =>
    serveH2(wire, { onStream: () => assert.fail("a tunnel"), onClosed() {}, log: SILENT }),
};

for (const [name, serve] of Object.entries(servers))
  for (const [fault, end] of [
    ["its reset", false],
    ["the end", true],
  ] as const)
    test(`${name}: a request and ${fault} in one piece cost that peer its request`, async () => {
      const [near, far] = duplexPair();
      serve(near);
      far.on("error", () => {}).resume();
      near.on("error", () => {});
      if (end) far.end(Buffer.concat([PREFACE, HEADERS]));
      else far.write(Buffer.concat([PREFACE, HEADERS, RESET]));
      for (let count = 0; count < 5; count++) await turn(); // a throw there would end the process
      near.destroy();
      far.destroy();
    });
