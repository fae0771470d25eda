import assert from "node:assert/strict";
import { test } from "node:test";
import type { BrowserTls, LibraryTls } from "#core/tls-recipe.ts";
import { BrowserTlsTable } from "./browser-tls.ts";
import { NodeTlsTable } from "./node-tls.ts";

const skip = process.platform === "linux" ? false : "SKIP TLS of nodes: needs Linux";
const server = { serverName: "server.test", nameCertVerify: null, fingerprint: null, skipCertVerify: true };
const common = { sni: "server.test", server } as const;
const ofLibrary = (id: string): LibraryTls => ({
  ...common,
  kind: "tls",
  id,
  context: 0n,
  alpn: new Uint8Array(),
});
const ofBrowser = (id: string, browser: string): BrowserTls => ({
  ...common,
  kind: "records",
  id,
  browser,
  store: 0n,
  protocols: null,
  reality: null,
});

test(
  "a thread keeps the sessions of the 64 nodes that it has dialled last, and none of one with a pin",
  { skip },
  () => {
    const table = new NodeTlsTable();
    const [first, second] = ["0", "1"].map((id) => table.ticketsOf(ofLibrary(id)));
    for (let id = 2; id < 64; id++) table.ticketsOf(ofLibrary(`${id}`));
    assert.notEqual(first ?? null, null);
    assert.equal(table.ticketsOf(ofLibrary("0")), first);
    table.ticketsOf(ofLibrary("64"));
    assert.equal(table.ticketsOf(ofLibrary("0")), first);
    assert.notEqual(table.ticketsOf(ofLibrary("1")), second);
    const pinned = { ...server, fingerprint: "ab".repeat(32) };
    assert.equal(table.ticketsOf({ ...ofLibrary("pinned"), server: pinned }), null);
  },
);

test("a browser that this thread does not know is left to the main thread", { skip }, () => {
  const table = new BrowserTlsTable();
  assert.equal(table.hold(ofBrowser("0", "chrome")), true);
  assert.equal(table.hold(ofBrowser("1", "a browser of another version")), false);
  const handshake = table.begin(ofBrowser("0", "chrome"));
  handshake?.connection.start();
  assert.equal(handshake?.connection.takeOutput()?.[0], 22); // a handshake record
  handshake?.connection[Symbol.dispose]();
});
