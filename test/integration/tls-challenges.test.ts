/** TLS-ALPN-01 at a TLS listener: who asks for the protocol of a validation is shown its certificate, and nothing else changes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { after, test } from "node:test";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { ChallengeBook } from "#acme/challenge-book.ts";
import { makeCertificate } from "../support/certificate.ts";
import { openListenerTls } from "../support/listener-tls.ts";
import { nativeTls as native } from "../support/native-tls.ts";

const proof = makeCertificate({ names: ["proved.test"] });
const pair = { certificate: proof.cert, privateKey: proof.key };
const challenges = new ChallengeBook();
const tls = await openListenerTls(native, ["h2"], challenges);
const refusals: string[] = [];
const server = createServer((socket) => {
  tls.accept(socket).then(
    ({ stream }) => stream.on("error", () => {}).end("served"),
    (error: Error) => refusals.push(error.message),
  );
}).listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address() as AddressInfo;
after(() => {
  server.close();
  tls[Symbol.dispose]();
});

/** What a client is shown and agrees on, and what it gets until the end. */
async function look(options: ConnectionOptions): Promise<readonly [string, string | false | null, string]> {
  const socket: TLSSocket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options });
  const parts: Buffer[] = [];
  socket.on("data", (part: Buffer) => parts.push(part));
  await once(socket, "secureConnect");
  const { CN = "" } = socket.getPeerCertificate().subject;
  if (!socket.readableEnded) await once(socket, "end");
  socket.destroy();
  return [String(CN), socket.alpnProtocol, Buffer.concat(parts).toString()];
}

const ACME = { ALPNProtocols: ["acme-tls/1"], servername: "proved.test" };
const CLIENT = { ALPNProtocols: ["h2"], servername: "server.test" };

test("only the protocol and the name of a validation are answered by its certificate, and then it ends", async () => {
  assert.deepEqual(await look(CLIENT), ["server.test", "h2", "served"]);
  await assert.rejects(look(ACME), "nothing is validated yet");
  {
    using _ = challenges.add("proved.test", pair);
    assert.deepEqual(await look(ACME), ["proved.test", "acme-tls/1", ""]);
    assert.match(refusals.at(-1) ?? "", /an authority has validated a name by TLS-ALPN-01/);
    assert.deepEqual(await look({ ...CLIENT, servername: "proved.test" }), ["server.test", "h2", "served"]);
    assert.deepEqual(await look(CLIENT), ["server.test", "h2", "served"]);
    await assert.rejects(look({ ...ACME, servername: "other.test" }));
    await assert.rejects(look({ ...ACME, ALPNProtocols: ["acme-tls/1", "http/1.1"] }));
  }
  await assert.rejects(look(ACME), "the validation is over");
});

test(
  "workers have no contexts meanwhile, QUIC has",
  { skip: native === null ? "SKIP: no FFI" : false },
  () => {
    const changes: boolean[] = [];
    using _ = tls.contexts.watch(() => changes.push(challenges.isEmpty));
    const isShared = (onAlpn: bigint): boolean => {
      const shared = tls.contexts.share(onAlpn);
      shared?.release();
      return shared !== null;
    };
    assert.deepEqual([isShared(0n), isShared(1n)], [true, true]);
    {
      using _first = challenges.add("proved.test", pair);
      using _second = challenges.add("second.test", pair);
      assert.deepEqual([isShared(0n), isShared(1n)], [true, false]);
    }
    assert.deepEqual([isShared(0n), isShared(1n)], [true, true]);
    assert.deepEqual(changes, [false, true]);
  },
);
