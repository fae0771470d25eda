/**
 * What a handshake costs the side that dials: the runtime's libssl, the engine with a browser's ClientHello, and `node:tls`,
 * one after the other in the same rounds. The server is another process, so its half is not counted. All verify the same
 * chain of two certificates (P-256) for a name. A connection is: connect, handshake, a byte there and back, close; one at a
 * time. The row `no TLS` is the same without a handshake, to be taken off the others. `anew`: by a node that was never used, which has
 * no session to resume and has seen no chain. Whole handshakes are held against whole ones of libssl, others against those
 * that go on with a session.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import * as z from "zod";
import { SILENT } from "#core/log.ts";
import type { TlsClient, TlsProvider } from "#core/tls.ts";
import { openTrust } from "#net/dial/trust.ts";
import { TlsLibrary } from "#platform/tls.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import { tlsClientFields } from "#transport/tls/fields.ts";
import { canResume } from "#transport/tls13/fingerprints/build-hello.ts";
import { Fingerprints } from "#transport/tls13/fingerprints/names.ts";
import { makeTlsProvider } from "#transport/tls/provider.ts";
import { makeCertificate } from "../test/support/certificate.ts";
import { textFiles } from "../test/support/text-files.ts";
import { endOf, forkServer } from "./relay-subjects.ts";

export const NAME = "tls-dial";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 5);
const CONNECTIONS = 300;
const WARM_UP = 100;
const BROWSERS = ["chrome", "firefox", "chrome120"];

interface Subject {
  readonly name: string;
  /** Null: no TLS. */
  readonly client: (() => TlsClient) | null;
  readonly port: number;
  /** Each handshake is a whole one. */
  readonly isWhole?: true;
}

export async function run(out: (line: string) => void): Promise<void> {
  const authority = makeCertificate({ names: ["authority"], ca: true });
  const between = makeCertificate({ names: ["between"], issuer: authority, ca: true });
  const own = makeCertificate({ names: ["server.test"], issuer: between });
  const secure = await forkServer("./tls-accept.ts", [own.cert + between.cert, own.key]);
  const plain = await forkServer("./tls-accept.ts");
  await using opened = new AsyncDisposableStack();
  opened.defer(() => endOf(secure.child));
  opened.defer(() => endOf(plain.child));
  const trust = await openTrust([authority.cert], textFiles, "bench");
  const library = new TlsLibrary();
  const byLibrary = makeTlsProvider(() => library.native);
  const byRuntime = makeTlsProvider(() => null);
  const maker = async (browser: string, provider: TlsProvider): Promise<() => TlsClient> => {
    const fields = z.object(tlsClientFields).parse({ "client-fingerprint": browser });
    const context = { node: "bench", server: "server.test", files: textFiles, trust };
    const options = await readTlsClient(fields, context);
    return () => provider.makeClient(options, SILENT);
  };
  const { port } = secure;
  const makeLibssl = await maker("none", byLibrary);
  const [libssl, runtime] = [makeLibssl(), (await maker("none", byRuntime))()];
  const subjects: Subject[] = [
    { name: "libssl", client: () => libssl, port },
    { name: "no TLS", client: null, port: plain.port },
    { name: "libssl, anew", client: makeLibssl, port, isWhole: true },
    { name: "node:tls", client: () => runtime, port },
  ];
  for (const browser of BROWSERS) {
    const make = await maker(browser, byLibrary);
    const kept = make();
    const template = new Fingerprints().template(browser);
    const whole = template !== null && canResume(template) ? {} : ({ isWhole: true } as const);
    subjects.push({ name: browser, client: () => kept, port, ...whole });
    subjects.push({ name: `${browser}, anew`, client: make, port, isWhole: true });
  }
  await compare(subjects, out);
}

async function compare(subjects: readonly Subject[], out: (line: string) => void): Promise<void> {
  const costs = new Map<Subject, number[]>(subjects.map((subject) => [subject, []]));
  for (const subject of subjects) await spend(subject, WARM_UP);
  for (let round = 0; round < ROUNDS; round++)
    for (const subject of subjects) costs.get(subject)?.push(await spend(subject, CONNECTIONS));
  const medians = subjects.map((subject) => median(costs.get(subject) ?? []));
  const [resumed = 0, bare = 0, whole = 0] = medians;
  for (const [at, { name, isWhole = false }] of subjects.entries()) {
    const cost = medians[at] ?? Number.NaN;
    const ratio = ((cost - bare) / ((isWhole ? whole : resumed) - bare)).toFixed(2);
    const like = isWhole ? "a whole one of libssl" : "one of libssl with a session";
    out(`connection by ${name}: CPU µs ${cost.toFixed(0)}; handshake ${ratio} × ${like}`);
  }
}

/** CPU time of this process for a connection, in µs. */
async function spend({ client, port }: Subject, connections: number): Promise<number> {
  const before = process.cpuUsage();
  for (let left = connections; left > 0; left--) {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    await once(socket, "connect");
    await exchange(client === null ? socket : await secured(client(), socket));
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / connections;
}

async function secured(client: TlsClient, socket: Socket): Promise<Duplex> {
  return (await client.open(socket, { signal: AbortSignal.timeout(10_000) })).stream;
}

async function exchange(stream: Duplex): Promise<void> {
  stream.on("error", () => {});
  stream.resume().end(".");
  await once(stream, "end");
  stream.destroy();
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
