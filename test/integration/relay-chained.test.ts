/** A node that dials by another one: workers take sealed messages over sealed messages once, and leave them where there are more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Duplex } from "node:stream";
import { vmess } from "#protocols/vmess/index.ts";
import { lateWorker } from "../support/carriers.ts";
import { arrivesWhole, type OpenWay, readsSlowly, uploadsInSilence } from "../support/connections.ts";
import { encryptedForm } from "../support/encrypted-forms.ts";
import { dialling, type Form } from "../support/node-chain.ts";
import { behindPlugin } from "../support/plugin-forms.ts";
import { openServer } from "../support/protocol-pair.ts";
import { openRelayed } from "../support/relayed.ts";
import { uuid } from "../support/tls-sides.ts";

const WS = { network: "ws", "ws-opts": { path: "/up" } };
const vmessForm = (server: object, client: object): Form => ({
  protocol: vmess,
  server: { users: [{ uuid }], ...server },
  client: { uuid, cipher: "aes-128-gcm", ...client },
});
const bareVmess = vmessForm({}, {});
const vmessInWs = vmessForm({ "ws-path": "/up" }, WS);
const encryptedInWs = encryptedForm("native", { "ws-path": "/up" }, WS);
const { plugin: _none, ...shadowsocks } = behindPlugin("2022-blake3-aes-128-gcm", "WebSocket");
const bareShadowsocks: Form = { ...shadowsocks, client: { ...shadowsocks.client, plugin: "" } };

const backend = await lateWorker();
const skip = backend === null ? "SKIP sealed messages in a worker: needs Linux and node:ffi" : false;
const taken = (): number => backend?.taken ?? 0;

/** The relay dials `last` by `first`; their listeners relay by the event loop. */
const chain =
  (first: Form, last: Form): OpenWay =>
  async (originPort, options = {}) => {
    await using undo = new AsyncDisposableStack();
    const near = undo.use(await openServer(first.protocol, first.server));
    const far = undo.use(await openServer(last.protocol, last.server));
    const byFirst = dialling(first, near.port, far.port);
    const byLast = dialling(last, far.port, originPort);
    const back = async (wire: Duplex): Promise<Duplex> => byLast(await byFirst(wire));
    const relayed = undo.use(await openRelayed(near.port, { backend, ...options, back }));
    const opened = undo.move();
    return {
      relays: [relayed],
      dial: () => relayed.dial(),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    };
  };

for (const [name, first, last] of [
  ["VMess by VMess", bareVmess, bareVmess],
  ["VMess in WebSocket by Shadowsocks", bareShadowsocks, vmessInWs],
  ["VLESS Encryption in WebSocket by VMess", bareVmess, encryptedInWs],
] as const) {
  test(`${name}: whatever both sides write arrives whole, half-closes too`, { skip }, () =>
    arrivesWhole(chain(first, last), { numRuns: 6, pauseMs: 1, taken }),
  );

  test(`${name}: an upload to a far side that says nothing goes by a worker`, { skip }, () => {
    const before = taken();
    return uploadsInSilence(chain(first, last), () => taken() > before);
  });

  test(`${name}: bulk both ways at once, to a client that reads slowly`, { skip }, () =>
    readsSlowly(chain(first, last)),
  );
}

for (const [name, first, last] of [
  ["VMess in WebSocket by VMess in WebSocket", vmessInWs, vmessInWs],
  ["VLESS Encryption in WebSocket by VMess in WebSocket", vmessInWs, encryptedInWs],
  ["VLESS Encryption in WebSocket by the same", encryptedInWs, encryptedInWs],
] as const)
  test(`${name}: stays in the event loop, and arrives whole`, { skip }, async () => {
    const before = taken();
    await arrivesWhole(chain(first, last), { numRuns: 6, pauseMs: 1 });
    await readsSlowly(chain(first, last));
    assert.equal(taken(), before);
  });
