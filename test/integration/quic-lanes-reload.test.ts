/** Threads of QUIC at one port in the real program: what reloads leave of their clients. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { toDestination } from "#net/address/ip.ts";
import { openNode, USERS } from "../support/hysteria2-listener.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { freePort } from "../support/peer.ts";
import { quicCertificate } from "../support/quic-tls.ts";
import { startCore } from "../support/start-core.ts";

const OBFS = { obfs: "salamander", "obfs-password": "obfspass" };
const context = () => ({ signal: AbortSignal.timeout(10_000), metadata: null });

test("a reload keeps the clients of all threads, one that adds a disguise takes new ones, and the end is in order", async () => {
  await using origin = await openTcpOrigin(echo);
  const to = toDestination("127.0.0.1", origin.port);
  const port = await freePort();
  const configOf = (users: object, more: object = {}): string => {
    const listener = { name: "hy", type: "hysteria2", listen: "127.0.0.1", port, users, ...more };
    const files = { certificate: "cert.pem", "private-key": "key.pem" };
    return JSON.stringify({ workers: 3, listeners: [{ ...listener, ...files }], rules: ["MATCH,DIRECT"] });
  };
  await using undo = new AsyncDisposableStack();
  const open = async (options: Readonly<Record<string, unknown>> = {}) => {
    const node = undo.use(await openNode(port, options));
    const stream = await node.connect(to, context());
    stream.on("error", () => {});
    const asks = async (text: string): Promise<void> => {
      stream.write(text);
      const [answer] = await once(stream, "data", { signal: AbortSignal.timeout(10_000) });
      assert.equal(String(answer), text);
    };
    await asks("first");
    return asks;
  };
  const seed = (home: string): void => {
    writeFileSync(join(home, "cert.pem"), quicCertificate.cert);
    writeFileSync(join(home, "key.pem"), quicCertificate.key);
  };
  await using core = await startCore(configOf(USERS), { seed });
  const clients = await Promise.all(Array.from({ length: 8 }, () => open()));
  await core.reload(configOf({ ...USERS, eve: "another" }));
  for (const asks of clients) await asks("behind the reload");
  await Promise.all(Array.from({ length: 8 }, () => open({ password: "another" })));
  await core.reload(configOf(USERS, OBFS));
  await Promise.all(Array.from({ length: 8 }, () => open(OBFS)));
  assert.equal(await core.stop(), 0);
});
