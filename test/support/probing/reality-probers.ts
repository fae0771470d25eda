/** Those who are not to learn that a server speaks REALITY. */
import { randomBytes } from "node:crypto";
import { duplexPair } from "node:stream";
import { once } from "node:events";
import { connect } from "node:tls";
import { plainRecord, RECORD } from "#transport/tls13/records.ts";
import { helloWithToken, plainHello, SITE } from "../reality.ts";
import type { Prober, ProberKind } from "./dest.ts";

const DAY_MS = 86_400_000;
/** One in so many waits for the site to end the connection. */
const HOLDING = 25;
const ENDS = ["fin", "hold", "reset"] as const;

const endOf = (turn: number): Prober["ends"] => (turn % HOLDING === HOLDING - 1 ? "hold" : "fin");
const change = plainRecord(RECORD.changeCipherSpec, Buffer.of(1));
const sealed = (size: number): Buffer => plainRecord(RECORD.applicationData, randomBytes(size));

/** An observer that replays the hello of a client: it cannot go on as the client would. */
const CONTINUATIONS: readonly ((turn: number) => Buffer | undefined)[] = [
  () => undefined,
  () => sealed(53), // as long as a Finished by SHA-256
  () => Buffer.concat([change, sealed(53)]),
  () => sealed(69),
  () => sealed(20 + Math.floor(Math.random() * 1000)),
  (turn) => Buffer.concat(Array.from({ length: 1 + (turn % 60) }, () => change)),
  () => plainRecord(RECORD.alert, Buffer.of(2, 40)),
  () => plainRecord(RECORD.alert, Buffer.of(1, 0)),
  () => plainRecord(RECORD.handshake, randomBytes(60)),
  () => plainRecord(RECORD.changeCipherSpec, Buffer.of(2)),
  () => plainRecord(RECORD.changeCipherSpec, Buffer.of(1, 1)),
  () => Buffer.concat([change, sealed(53).subarray(0, 30)]),
  () => Buffer.concat([change, sealed(53).subarray(0, 3)]),
  () => Buffer.of(23, 3, 3, 0xff, 0xff, 1),
  () => Buffer.from("GET / HTTP/1.1\r\n\r\n"),
  () => randomBytes(100),
  () => plainHello(),
];

/** A hello of the runtime's own client. */
async function runtimeHello(): Promise<Buffer> {
  const [near, far] = duplexPair();
  const client = connect({ socket: near, servername: SITE, maxVersion: "TLSv1.2" });
  client.on("error", () => {}); // it gets no answer
  const [hello] = (await once(far, "data")) as [Buffer];
  client.destroy();
  far.destroy();
  return hello;
}

/** The server must limit clocks to less than a day. */
export async function realityProbers(): Promise<readonly ProberKind[]> {
  const older = await runtimeHello();
  const repeated = helloWithToken();
  const cut = helloWithToken();
  const otherKey = randomBytes(32).toString("base64url");
  const hello = (name: string, make: () => Buffer): ProberKind => ({
    name,
    next: (turn) => ({ says: make(), ends: endOf(turn) }),
  });
  return [
    hello("random bytes", () => randomBytes(1 + Math.floor(Math.random() * 3000))),
    hello("plain HTTP", () => Buffer.from(`GET / HTTP/1.1\r\nhost: ${SITE}\r\n\r\n`)),
    hello("TLS 1.2", () => older),
    hello("wrong name", () => helloWithToken({ serverName: "other.test" })),
    hello("wrong short id", () => helloWithToken({ shortId: "ffffffffffffffff" })),
    hello("old time", () => helloWithToken({ nowMs: Date.now() - DAY_MS })),
    hello("no token", () => plainHello()),
    hello("token for another key", () => helloWithToken({ publicKey: otherKey })),
    {
      name: "repeated hello",
      isAdmitted: true,
      next(turn) {
        const answers = CONTINUATIONS[turn % CONTINUATIONS.length]?.(turn);
        const ends = turn % 10 === 9 ? ENDS[((turn / 10) % ENDS.length) | 0] : "fin";
        const common = { says: repeated, ends: ends ?? "fin" } as const;
        return answers === undefined ? common : { ...common, answers };
      },
    },
    {
      name: "hello and more",
      next: (turn) => ({ says: Buffer.concat([repeated, randomBytes(1 + (turn % 100))]), ends: endOf(turn) }),
    },
    {
      name: "hello cut short",
      next: (turn) => ({ says: cut.subarray(0, 1 + (turn % (cut.length - 1))), ends: endOf(turn) }),
    },
  ];
}
