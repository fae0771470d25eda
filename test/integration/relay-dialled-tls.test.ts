/** Connections whose way out speaks TLS: by node:tls and the pump, and by the library and the workers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { connect } from "node:tls";
import type { Dialer } from "#core/outbound.ts";
import type { TlsProvider } from "#core/tls.ts";
import type { Protocol } from "#core/protocol.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { openThreads, pathsOver, type Path } from "../support/carriers.ts";
import { echoed, outcome } from "../support/client.ts";
import {
  arrivesWhole,
  keepsToALimit,
  openEchoes,
  readsSlowly,
  uploadsInSilence,
  type OpenWay,
} from "../support/connections.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";
import { openRelayed } from "../support/relayed.ts";
import { openTlsOrigin } from "../support/tls-origin.ts";
import { clientTls, password, serverTls, uuid } from "../support/tls-sides.ts";
import { nativeTls } from "../support/native-tls.ts";
import { portableTls, tlsProvider } from "../support/tls.ts";

const VISION = "xtls-rprx-vision";

interface Spoken {
  readonly name: string;
  readonly protocol: Protocol;
  readonly server: object;
  readonly client: object;
}

const SPOKEN: readonly Spoken[] = [
  { name: "trojan", protocol: trojan, server: { users: [{ password }] }, client: { password } },
  { name: "vless", protocol: vless, server: { users: [{ uuid }] }, client: { uuid } },
  {
    name: "trojan with a browser's hello",
    protocol: trojan,
    server: { users: [{ password }] },
    client: { password, "client-fingerprint": "chrome" },
  },
  {
    name: "vless with a browser's hello",
    protocol: vless,
    server: { users: [{ uuid }] },
    client: { uuid, "client-fingerprint": "firefox" },
  },
  {
    name: "vless with vision",
    protocol: vless,
    server: { users: [{ uuid, flow: VISION }] },
    client: { uuid, flow: VISION },
  },
];

const ways: readonly (Path & { readonly tls: TlsProvider })[] = [
  { name: "node:tls, pump", backend: null, tls: portableTls },
  ...(nativeTls === null
    ? []
    : [{ name: "pump", backend: null }, ...pathsOver(await openThreads(1))].map((path) => ({
        ...path,
        name: `native, ${path.name}`,
        tls: tlsProvider,
      }))),
];

/** A client's plain connection, relayed by an outbound to a server that dials the origin. */
function openWay({ protocol, server, client }: Spoken, { backend, tls }: (typeof ways)[number]): OpenWay {
  return async (originPort, options) => {
    const serving = await openServer(protocol, { ...serverTls, ...server });
    const place = { server: "127.0.0.1", port: serving.port, ...clientTls, ...client };
    const relayed = await openRelayed(serving.port, {
      backend,
      ...options,
      async back(socket) {
        const dialer: Dialer = {
          connect: async () => socket,
          associate: () => Promise.reject(new Error("no datagrams")),
        };
        const outbound = await openClient(protocol, place, { dialer, tls });
        const destination = { host: null, ip: LOOPBACK_V4, port: originPort };
        return await outbound.connect(destination, { signal: AbortSignal.timeout(20_000), metadata: null });
      },
    });
    return {
      relays: [relayed],
      dial: () => relayed.dial(),
      async [Symbol.asyncDispose]() {
        await relayed[Symbol.asyncDispose]();
        await serving[Symbol.asyncDispose]();
      },
    };
  };
}

const isLate = ({ backend }: Path): boolean => backend !== null && backend.afterBytes > 0;

for (const way of ways)
  test(`vless with vision, ${way.name}: TLS inside leaves the outer one behind`, async () => {
    const takenBefore = way.backend?.taken ?? 0;
    await using origin = await openTlsOrigin();
    await using opened = await openWay(SPOKEN.at(-1) as Spoken, way)(origin.port);
    const accepted = origin.accepted();
    const client = connect({ socket: await opened.dial(), rejectUnauthorized: false });
    client.on("error", () => {});
    const there = await accepted;
    there.pipe(there);
    await echoed(client, 4 << 20);
    await echoed(client, 1 << 20);
    if (isLate(way)) assert.ok((way.backend?.taken ?? 0) > takenBefore, "nothing was carried");
    client.destroy();
  });

for (const spoken of SPOKEN)
  for (const way of ways) {
    const name = `${spoken.name}, ${way.name}`;
    const open = openWay(spoken, way);

    test(`${name}: whatever both sides write arrives whole, half-closes too`, () =>
      arrivesWhole(open, { numRuns: 8 }));

    test(`${name}: bulk both ways at once, to a client that reads slowly`, async () => {
      const takenBefore = way.backend?.taken ?? 0;
      await readsSlowly(open);
      // At once there is still the request to be said; and what vision carries here is no TLS, so it keeps its own.
      if (isLate(way) && !spoken.name.includes("vision"))
        assert.ok((way.backend?.taken ?? 0) > takenBefore, "nothing was carried");
    });

    test(`${name}: an upload to a far side that says nothing`, () => {
      const before = way.backend?.taken ?? 0;
      return uploadsInSilence(open, () => !isLate(way) || (way.backend?.taken ?? 0) >= before + 1);
    });

    test(`${name}: a limit holds`, () => keepsToALimit(open));

    test(`${name}: a fault of the origin, and one of the client`, async () => {
      await using origin = await openEchoes();
      await using opened = await open(origin.port);
      const first = await opened.dial();
      await echoed(first as Parameters<typeof echoed>[0], 100_000);
      const over = Promise.race([once(first, "end"), outcome(first as Parameters<typeof outcome>[0])]);
      origin.latest().resetAndDestroy();
      await over;
      first.destroy();
      const second = await opened.dial();
      await echoed(second as Parameters<typeof echoed>[0], 100_000);
      const gone = Promise.race([once(origin.latest(), "end"), outcome(origin.latest())]);
      second.destroy();
      await gone;
      await opened.relays[0]?.untilSettled(2);
    });
  }
