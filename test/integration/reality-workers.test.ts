/** Clients of a REALITY server whose records workers go on with: as the other ways of moving bytes. */
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import type { SecurityServer } from "#transport/security.ts";
import { acceptedSocket } from "../support/accepted.ts";
import { openThreads, type Path, pathsOver } from "../support/carriers.ts";
import { arrivesWhole, type OpenWay, readsSlowly } from "../support/connections.ts";
import { dialReality, openSecurity, openSite } from "../support/reality.ts";
import { openRelayed } from "../support/relayed.ts";

const paths: readonly Path[] = [{ name: "pump", backend: null }, ...pathsOver(await openThreads(1))];
const SUITES = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

const wayTo =
  (security: SecurityServer, { backend }: Path): OpenWay =>
  async (originPort, options) => {
    const relayed = await openRelayed(originPort, {
      backend,
      ...options,
      front: async (socket) => (await security.accept(acceptedSocket(socket))).stream,
    });
    return {
      relays: [relayed],
      async dial() {
        const socket = connect({ port: relayed.port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
        await once(socket, "connect");
        return await dialReality(socket);
      },
      [Symbol.asyncDispose]: () => relayed[Symbol.asyncDispose](),
    };
  };

for (const path of paths)
  for (const ciphers of SUITES)
    test(`${path.name}, ${ciphers}: whatever both sides write arrives whole, half-closes too`, async () => {
      await using site = await openSite({ ciphers });
      using security = await openSecurity({ dest: site.port });
      const { backend } = path;
      await arrivesWhole(wayTo(security, path), {
        numRuns: 8,
        pauseMs: path.name === "handed over" ? 5 : 0,
        taken: backend === null ? undefined : () => backend.taken,
      });
    });

for (const path of paths)
  test(`${path.name}: bulk to a client that does not read at first`, async () => {
    await using site = await openSite();
    using security = await openSecurity({ dest: site.port });
    await readsSlowly(wayTo(security, path));
  });
