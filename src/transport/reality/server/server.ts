/**
 * The accepting side of REALITY. A client that cannot prove to know the server's public key is connected with dest, a site of
 * another owner, byte by byte; who can is answered in the shape of dest's own handshake.
 */
import type { Duplex } from "node:stream";
import type { AcceptedConnection, LeftToDest } from "#core/accepted.ts";
import { asError, AuthError, ProtocolError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import type { RealityRules } from "#core/reality-rules.ts";
import { destinationText, type Ip } from "#core/session.ts";
import type { TlsAccepted } from "#core/tls.ts";
import { describe, guardErrors } from "#net/listen/accept.ts";
import { proxyHeader } from "#net/listen/proxy-header.ts";
import { RecordStream } from "#transport/record-stream.ts";
import { Answers } from "./answers.ts";
import { attend } from "./attend.ts";
import { alpnKind, DestBoard } from "./dest-board.ts";
import { certificateRecord } from "./dest-flight.ts";
import type { DestHandshake } from "./dest-handshake.ts";
import { DestProbe } from "./dest-probe.ts";
import { DestWay } from "./dest-way.ts";
import { relay } from "./fallback-relay.ts";
import { KeptRealityClient } from "./kept-client.ts";
import type { RealityServerOptions } from "./options.ts";
import { OwnCertificate } from "./own-certificate.ts";
import { Tap } from "./tap.ts";
import { type Finished, Visit } from "./visit.ts";

const DIAL_TIMEOUT_MS = 10_000;
/** As the index of a kind of ALPN: browsers, and those who imitate them. */
const H2 = alpnKind(["h2"]);
/** Both ends of a connection without a client, in PROXY protocol. */
const NO_CLIENT = { ip: "127.0.0.1" as Ip, port: 0 };

export interface RealityServerEnv {
  /** Where the options name no way to dest. */
  readonly dialer: Dialer;
  /** An outbound or group by its name, as `InboundEnv` has it. */
  readonly through: (name: string) => Dialer;
  readonly nowMs: () => number;
  readonly log: Log;
}

export class RealityServer implements Disposable {
  readonly #options: RealityServerOptions;
  readonly #env: RealityServerEnv;
  readonly #dialer: Dialer;
  readonly #names: readonly string[];
  readonly #certificate: OwnCertificate;
  readonly #probe: DestProbe;
  readonly #answers: Answers;
  readonly #board: DestBoard;
  /** Null: threads are told of none. */
  #way: DestWay | null = null;
  /** Of dest, and told already; asked again, dest mostly says the same. */
  readonly #warned = new Set<string>();

  /** Asks dest at once what it sends behind a handshake, and whether that can be imitated. */
  constructor(options: RealityServerOptions, env: RealityServerEnv) {
    this.#options = options;
    this.#env = env;
    const { mldsa65Seed, proxy, serverNames } = options;
    const { nowMs } = env;
    this.#dialer = proxy === "" ? env.dialer : env.through(proxy);
    this.#names = [...serverNames];
    this.#certificate = new OwnCertificate(mldsa65Seed);
    this.#board = DestBoard.make(this.#names.length);
    this.#probe = new DestProbe({
      dial: (signal) => this.#dialForProbe(signal),
      onAnswer: (name, alpn, answer) => this.#onAnswer(name, alpn, answer),
    });
    this.#answers = new Answers({
      rules: options,
      certificate: this.#certificate,
      nowMs,
      later: ({ serverName, protocols }) => this.#probe.lengths(serverName, alpnKind(protocols)),
    });
    for (const name of serverNames) this.#probe.lengths(name, H2);
  }

  /**
   * By what workers do the same, up to the end of a handshake; null: the way to dest is none for them. From then on they are told
   * how dest is reached.
   */
  openRules(): RealityRules | null {
    const { dest, proxy, rawPrivateKey, shortIds, maxTimeDifferenceMs, mldsa65Seed, xver } = this.#options;
    if (proxy !== "" || xver > 0) return null;
    this.#way ??= new DestWay({ dest, dialer: this.#dialer, nowMs: this.#env.nowMs, board: this.#board });
    return {
      privateKey: Uint8Array.from(rawPrivateKey),
      serverNames: this.#names,
      shortIds: [...shortIds],
      maxTimeDifferenceMs,
      certificateKey: Uint8Array.from(this.#certificate.privateKey),
      mldsa65Seed: mldsa65Seed && Uint8Array.from(mldsa65Seed),
      board: this.#board.memory,
    };
  }

  /** A client whose handshake a worker has done; null: `accept` is to be called. */
  keep(connection: AcceptedConnection, bypassable: boolean): TlsAccepted | null {
    const { records = null } = connection;
    if (records === null) return null;
    const name = this.#names[records.name] ?? "";
    this.#probe.lengths(name, records.alpn);
    return new KeptRealityClient(connection, records, name, bypassable);
  }

  /** As `SecurityServer.accept`: rejects where the client is connected with dest, or dest cannot be reached. */
  async accept(connection: AcceptedConnection, bypassable: boolean): Promise<TlsAccepted> {
    const stream = connection.stream();
    guardErrors(stream);
    const client = new Tap(stream);
    const { left = null } = connection;
    if (left !== null) return this.#relayLeft(client, left);
    client.listen(); // while dest is dialled
    const dest = new Tap(await this.#dial(connection, stream));
    const visit = new Visit(this.#answers, {
      toClient: (bytes) => void (client.stream.destroyed || client.stream.write(bytes)),
      toDest: (bytes) => void (dest.stream.destroyed || dest.stream.write(bytes)),
    });
    await attend(visit, { client, dest });
    if (visit.stage === "left") {
      relay(client, dest, visit.unsaid, this.#options);
      throw visit.why;
    }
    dest.stream.destroy();
    return secured(client, visit.takeFinished(), bypassable);
  }

  #relayLeft(client: Tap, { dest, toClient, toDest, why }: LeftToDest): never {
    guardErrors(dest);
    if (toDest.length > 0) dest.write(toDest);
    relay(client, new Tap(dest), toClient, this.#options);
    throw new AuthError(why);
  }

  [Symbol.dispose](): void {
    this.#probe[Symbol.dispose]();
    this.#way?.[Symbol.dispose]();
  }

  async #dialForProbe(signal: AbortSignal): Promise<Duplex> {
    const { dest, xver } = this.#options;
    const stream = await this.#dialer.connect(dest, { signal, metadata: null });
    guardErrors(stream);
    if (xver > 0) stream.write(proxyHeader(xver, NO_CLIENT, NO_CLIENT));
    return stream;
  }

  async #dial({ source, local }: AcceptedConnection, client: Duplex): Promise<Duplex> {
    const { dest, xver } = this.#options;
    const asked = { network: "tcp", type: "Inner", user: null, destination: dest } as const;
    const metadata = describe({ name: "", ruleList: null, target: null }, { source, local }, asked);
    const late = new AbortController();
    // An AbortSignal.timeout costs a multiple of it.
    const timer = setTimeout(() => late.abort(new Error("dest did not answer in time")), DIAL_TIMEOUT_MS);
    try {
      const stream = await this.#dialer.connect(dest, { signal: late.signal, metadata });
      guardErrors(stream);
      if (xver > 0) stream.write(proxyHeader(xver, source, local));
      return stream;
    } catch (cause) {
      client.destroy();
      throw new ProtocolError(`dest cannot be reached: ${asError(cause).message}`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Where dest cannot be imitated its site is all that clients see, so that must not come as a surprise. */
  #judgeDest(name: string, answer: DestHandshake | Error): void {
    const asked = name === "" ? "a client without a name" : name;
    if (answer instanceof Error)
      return this.#warn(`to ${asked} it answers with no handshake of TLS 1.3: ${answer.message}`);
    if (answer.flight === null)
      return this.#warn(
        `its handshake for ${asked} cannot be imitated: it must choose X25519 or X25519MLKEM768 at once`,
      );
    const { bytes, leastBytes } = certificateRecord(answer.flight, this.#certificate.bytes);
    if (bytes >= leastBytes) return;
    const better = this.#options.mldsa65Seed === null ? "" : ", or no mldsa65-seed";
    this.#warn(
      `it shows its certificates for ${asked} in a record of ${bytes} bytes, and ${leastBytes} are needed: another site${better} would be right`,
    );
  }

  #warn(what: string): void {
    if (this.#warned.has(what)) return;
    this.#warned.add(what);
    const { where, dest } = this.#options;
    this.#env.log.warning(
      `${where}: reality-config.dest: ${destinationText(dest)}: ${what}; no client is let in like this`,
    );
  }

  #onAnswer(name: string, alpn: number, answer: DestHandshake | Error): void {
    if (!(answer instanceof Error)) this.#board.writeLater(this.#names.indexOf(name), alpn, answer.later);
    this.#judgeDest(name, answer);
  }
}

/** The stream of a client that has finished. */
function secured(client: Tap, { admitted, connection }: Finished, bypassable: boolean): TlsAccepted {
  const { hasEnded } = client;
  const stream = new RecordStream(client.release(), connection);
  guardErrors(stream);
  if (hasEnded) stream.destroy();
  return { stream, alpn: null, serverName: admitted.serverName || null, bypass: bypassable ? stream : null };
}
